//! Shortens a JSON-RPC message that is longer than a message may be, while it is read and in bounded memory
//! (CALL-5).
//!
//! The frame of a message is kept: the message itself, its `result`, and the lists in that. Values in the
//! frame are units: members, and items of the lists. Units are kept until the budget is used up. The unit
//! that is being read then is left out, unless it is a text, which is cut. After that, only small members of
//! the frame are kept, such as an `id` or `isError` at the end of the message.

use bytes::Bytes;

use crate::message::{Message, Response};

/// Longest member of the frame that is kept after the budget is used up, in bytes: an id, a flag, or a small
/// `_meta`.
const MAX_LATE_MEMBER_BYTES: usize = 4 * 1024;

/// Bytes of all that is kept after the budget is used up, and of what follows a cut text in its unit.
const MAX_LATE_BYTES: usize = 64 * 1024;

/// Longest key of a member of the frame, in bytes. Those of the protocol have a few letters.
const MAX_FRAME_KEY_BYTES: usize = 1024;

/// Longest number or word, in bytes. What is longer is no JSON that anybody writes, and is not read to its end.
const MAX_WORD_BYTES: usize = 1024;

/// Containers of the frame inside each other: the message, its result, and a list in that.
const MAX_FRAME_DEPTH: usize = 3;

/// Containers inside each other in a unit. No message may be nested deeper.
const MAX_UNIT_DEPTH: usize = crate::message::MAX_DEPTH;

/// A message without what was left out of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TruncatedMessage {
    /// Valid JSON, if the message was.
    pub(super) line: Bytes,
    /// Bytes that were left out.
    pub(super) missing: usize,
}

impl TruncatedMessage {
    /// A message of which nothing was left out.
    pub(super) fn whole(line: Bytes) -> Self {
        Self { line, missing: 0 }
    }

    /// The answer that is left, if the message is a result. Nothing else is of use without a part of it.
    pub(super) fn answer(self) -> Option<Response> {
        match Message::read(&self.line) {
            Ok(Message::Response(Response { id, outcome: Ok(result) })) => {
                Some(Response { id, outcome: Ok(result.shortened_by(self.missing)) })
            }
            _ => None,
        }
    }
}

/// Reads a message that is too long, and keeps a part of it that is a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageTruncator {
    kept: Vec<u8>,
    budget: usize,
    /// Whether the budget is used up.
    is_full: bool,
    /// Bytes that may still be kept after that.
    late_room: usize,
    /// Bytes that were read.
    seen: usize,
    frame: Vec<FrameContainer>,
    key: Vec<u8>,
    phase: Phase,
}

#[derive(Debug, PartialEq, Eq)]
struct FrameContainer {
    is_object: bool,
    has_items: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// Before the message, or in a container of the frame between two units.
    Between,
    /// In a key of the frame; whether the next character is escaped.
    Key { is_escaped: bool },
    /// After a key of the frame.
    AfterKey,
    /// In a unit.
    Unit(FrameValue),
    /// The message is complete.
    Over,
    /// It is no message.
    Broken,
}

/// A value in the frame that is being read.
#[derive(Debug, PartialEq, Eq)]
struct FrameValue {
    /// Length of what was kept before it.
    start: usize,
    /// The containers that are open in it: whether each is an object.
    open: Vec<bool>,
    string: Option<StringState>,
    expects_key: bool,
    /// Whether the last key was `text`.
    is_text: bool,
    /// Bytes of the number or word that is being read.
    word: usize,
    keeping: KeepPolicy,
}

/// How much of a unit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepPolicy {
    Whole,
    /// No more than up to this length of what is kept.
    UpTo(usize),
    /// Nothing of the string that is being read.
    AfterString,
    Nothing,
}

#[derive(Debug, PartialEq, Eq)]
struct StringState {
    is_key: bool,
    escape: Escape,
    /// Whether the escape before stands for the first half of a character.
    is_after_half: bool,
    /// Length of what is kept at the last place where the string can be cut.
    cut: usize,
    /// The first letters, to know a key by.
    first: [u8; 5],
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// Digits that have been read of `\uXXXX`, and their value.
    Digits(u8, u16),
}

impl MessageTruncator {
    /// Keeps about as many bytes as the budget says.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            kept: Vec::new(),
            budget,
            is_full: false,
            late_room: MAX_LATE_BYTES,
            seen: 0,
            frame: Vec::new(),
            key: Vec::new(),
            phase: Phase::Between,
        }
    }

    /// Reads the next bytes of the message.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len());
        for byte in bytes {
            if self.phase == Phase::Broken {
                // It is not going to be a message: nothing of it is needed.
                self.kept = Vec::new();
                return;
            }
            self.take(*byte);
        }
    }

    /// Whether it is not going to be a message, whatever follows.
    pub(super) fn is_broken(&self) -> bool {
        self.phase == Phase::Broken
    }

    /// What is kept of the message, if it was complete and looked like one.
    pub(super) fn finish(self) -> Option<TruncatedMessage> {
        let missing = self.seen.saturating_sub(self.kept.len());
        let line = Bytes::from(self.kept);
        (self.phase == Phase::Over).then_some(TruncatedMessage { line, missing })
    }

    fn take(&mut self, byte: u8) {
        match &mut self.phase {
            Phase::Between => self.take_between(byte),
            Phase::Key { is_escaped } => {
                let ends = byte == b'"' && !*is_escaped;
                *is_escaped = byte == b'\\' && !*is_escaped;
                self.key.push(byte);
                if ends {
                    self.phase = Phase::AfterKey;
                } else if self.key.len() > MAX_FRAME_KEY_BYTES {
                    self.phase = Phase::Broken;
                }
            }
            Phase::AfterKey => match byte {
                b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => self.begin_value(byte),
            },
            Phase::Unit(_) => self.take_in_unit(byte),
            Phase::Over if byte.is_ascii_whitespace() => {}
            Phase::Over | Phase::Broken => self.phase = Phase::Broken,
        }
    }

    fn take_between(&mut self, byte: u8) {
        let is_in_object = self.frame.last().map(|container| container.is_object);
        match (byte, is_in_object) {
            (b' ' | b'\t' | b'\r' | b'\n', _) | (b',', Some(_)) => {}
            (b'{', None) => self.open_frame(byte),
            (b'"', Some(true)) => {
                self.key.clear();
                self.key.push(byte);
                self.phase = Phase::Key { is_escaped: false };
            }
            (b'}', Some(true)) | (b']', Some(false)) => {
                self.kept.push(byte);
                self.frame.pop();
                match self.frame.last_mut() {
                    Some(container) => container.has_items = true,
                    None => self.phase = Phase::Over,
                }
            }
            (_, Some(false)) => self.begin_value(byte),
            _ => self.phase = Phase::Broken,
        }
    }

    /// Begins the value of a member, or an item of a list.
    fn begin_value(&mut self, byte: u8) {
        let is_frame = match self.frame.len() {
            1 => byte == b'{',
            2 => byte == b'[',
            _ => false,
        };
        let start = self.kept.len();
        let is_member = self.frame.last().is_some_and(|container| container.is_object);
        if self.frame.last().is_some_and(|container| container.has_items) {
            self.kept.push(b',');
        }
        if is_member {
            self.kept.extend_from_slice(&self.key);
            self.kept.push(b':');
        }
        if is_frame {
            return self.open_frame(byte);
        }
        let keeping = match (self.is_full, is_member) {
            (false, _) => KeepPolicy::Whole,
            (true, true) => KeepPolicy::UpTo(start + MAX_LATE_MEMBER_BYTES.min(self.late_room)),
            (true, false) => KeepPolicy::Nothing,
        };
        self.phase = Phase::Unit(FrameValue {
            start,
            open: Vec::new(),
            string: None,
            expects_key: false,
            is_text: is_member && self.key == br#""text""#,
            word: 0,
            keeping,
        });
        self.take_in_unit(byte);
    }

    fn open_frame(&mut self, byte: u8) {
        if self.frame.len() >= MAX_FRAME_DEPTH {
            self.phase = Phase::Broken;
            return;
        }
        self.kept.push(byte);
        self.frame.push(FrameContainer { is_object: byte == b'{', has_items: false });
        self.phase = Phase::Between;
    }

    fn take_in_unit(&mut self, byte: u8) {
        let Phase::Unit(unit) = &mut self.phase else { return };
        let place = match unit.string {
            Some(_) => unit.take_in_string(byte, self.kept.len()),
            None => unit.take_outside(byte),
        };
        match place {
            BytePosition::Inside | BytePosition::Last => {
                if !matches!(unit.keeping, KeepPolicy::Nothing | KeepPolicy::AfterString) {
                    self.kept.push(byte);
                }
                self.keep_within_bounds(place == BytePosition::Last);
                if place == BytePosition::Last {
                    self.end_unit();
                }
            }
            BytePosition::After => {
                self.end_unit();
                self.take(byte);
            }
            BytePosition::Broken => self.phase = Phase::Broken,
        }
    }

    /// Cuts or leaves out the unit that is being read, if too much has been kept.
    fn keep_within_bounds(&mut self, is_last: bool) {
        let Phase::Unit(unit) = &mut self.phase else { return };
        match unit.keeping {
            KeepPolicy::Whole if self.kept.len() > self.budget && !is_last => {
                self.is_full = true;
                match &unit.string {
                    Some(string) if unit.is_text && !string.is_key => {
                        self.kept.truncate(string.cut);
                        self.kept.push(b'"');
                        unit.keeping = KeepPolicy::AfterString;
                    }
                    _ if self.frame.last().is_some_and(|container| container.is_object) => {
                        unit.keeping = KeepPolicy::UpTo(unit.start + MAX_LATE_MEMBER_BYTES);
                    }
                    _ => unit.leave_out(&mut self.kept),
                }
            }
            KeepPolicy::AfterString if unit.string.is_none() => {
                unit.keeping = KeepPolicy::UpTo(self.kept.len() + self.late_room);
            }
            _ => {}
        }
        if let KeepPolicy::UpTo(length) = unit.keeping
            && self.kept.len() > length
        {
            unit.leave_out(&mut self.kept);
        }
    }

    fn end_unit(&mut self) {
        let Phase::Unit(unit) = &self.phase else { return };
        if unit.keeping == KeepPolicy::Nothing {
            self.kept.truncate(unit.start);
        } else {
            if let KeepPolicy::UpTo(_) = unit.keeping {
                let size = self.kept.len() - unit.start;
                self.late_room = self.late_room.saturating_sub(size.min(MAX_LATE_MEMBER_BYTES));
            }
            if let Some(container) = self.frame.last_mut() {
                container.has_items = true;
            }
        }
        self.is_full |= self.kept.len() > self.budget;
        self.phase = Phase::Between;
    }
}

/// Where a byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BytePosition {
    Inside,
    /// The last byte of the unit.
    Last,
    /// The first byte after it.
    After,
    Broken,
}

impl FrameValue {
    fn leave_out(&mut self, kept: &mut Vec<u8>) {
        kept.truncate(self.start);
        self.keeping = KeepPolicy::Nothing;
    }

    fn take_outside(&mut self, byte: u8) -> BytePosition {
        let is_in_word = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        self.word = if is_in_word { self.word + 1 } else { 0 };
        if self.word > MAX_WORD_BYTES {
            return BytePosition::Broken;
        }
        match byte {
            b'"' => {
                let is_key = self.expects_key;
                self.string = Some(StringState::new(is_key));
                return BytePosition::Inside;
            }
            b'{' | b'[' if self.open.len() >= MAX_UNIT_DEPTH => return BytePosition::Broken,
            b'{' | b'[' => {
                self.open.push(byte == b'{');
                self.expects_key = byte == b'{';
                return BytePosition::Inside;
            }
            _ => {}
        }
        let Some(is_object) = self.open.last().copied() else {
            // A number or a word ends before what cannot be in it.
            let is_over = matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            return if is_over { BytePosition::After } else { BytePosition::Inside };
        };
        match byte {
            b'}' | b']' if (byte == b'}') != is_object => BytePosition::Broken,
            b'}' | b']' => {
                self.open.pop();
                self.expects_key = false;
                if self.open.is_empty() { BytePosition::Last } else { BytePosition::Inside }
            }
            b',' => {
                self.expects_key = is_object;
                BytePosition::Inside
            }
            _ => BytePosition::Inside,
        }
    }

    fn take_in_string(&mut self, byte: u8, kept: usize) -> BytePosition {
        let Some(string) = &mut self.string else { return BytePosition::Broken };
        if !string.take(byte, kept) {
            return BytePosition::Inside;
        }
        if string.is_key {
            self.is_text = string.length == 4 && string.first.starts_with(b"text");
            self.expects_key = false;
        }
        self.string = None;
        if self.open.is_empty() { BytePosition::Last } else { BytePosition::Inside }
    }
}

impl StringState {
    fn new(is_key: bool) -> Self {
        Self {
            is_key,
            escape: Escape::None,
            is_after_half: false,
            cut: usize::MAX,
            first: [0; 5],
            length: 0,
        }
    }

    /// Whether a byte ends the string.
    fn take(&mut self, byte: u8, kept: usize) -> bool {
        let is_continuation = byte & 0xC0 == 0x80;
        if self.escape == Escape::None && !is_continuation && !(self.is_after_half && byte == b'\\')
        {
            self.cut = kept;
            self.is_after_half = false;
        }
        if let Some(place) = self.first.get_mut(self.length) {
            *place = byte;
        }
        match (self.escape, byte) {
            (Escape::None, b'"') => return true,
            (Escape::None, b'\\') => self.escape = Escape::Begun,
            (Escape::None, _) => {}
            (Escape::Begun, b'u') => self.escape = Escape::Digits(0, 0),
            (Escape::Begun, _) => {
                self.escape = Escape::None;
                self.is_after_half = false;
            }
            (Escape::Digits(count, value), digit) => {
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                let value = (value << 4) | u16::try_from(digit).unwrap_or(0);
                let is_first_half = (0xD800..0xDC00).contains(&value);
                if count < 3 {
                    self.escape = Escape::Digits(count + 1, value);
                } else {
                    self.escape = Escape::None;
                    self.is_after_half = is_first_half && !self.is_after_half;
                }
            }
        }
        self.length = self.length.saturating_add(1);
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn shortened(message: &str, budget: usize) -> Option<(Value, usize)> {
        let mut shortener = MessageTruncator::new(budget);
        for part in message.as_bytes().chunks(7) {
            shortener.push(part);
        }
        let short = shortener.finish()?;
        let text = std::str::from_utf8(&short.line).unwrap();
        assert_eq!(text.len() + short.missing, message.len());
        Some((
            serde_json::from_str(text).unwrap_or_else(|it| panic!("{it}: {text}")),
            short.missing,
        ))
    }

    fn answer(result: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": 7, "result": result }).to_string()
    }

    #[test]
    fn a_long_text_is_cut_and_what_follows_it_stays() {
        let result = json!({ "content": [{ "text": "ä".repeat(5000), "type": "text", "annotations": { "priority": 1 } }],
            "isError": true, "structuredContent": { "a": "y".repeat(9000) } });
        let (short, missing) = shortened(&answer(&result), 1000).unwrap();
        let block = &short["result"]["content"][0];
        assert!(block["text"].as_str().unwrap().chars().all(|it| it == 'ä'));
        assert_eq!(
            (&block["type"], &block["annotations"]["priority"]),
            (&json!("text"), &json!(1))
        );
        assert_eq!((&short["id"], &short["result"]["isError"]), (&json!(7), &json!(true)));
        assert!(short["result"].get("structuredContent").is_none() && missing > 17_000);
    }

    #[test]
    fn blocks_beyond_the_budget_are_left_out_whole() {
        let image = |size: usize| json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(size) });
        let result = json!({ "content": [image(300), image(5000), image(10), { "type": "text", "text": "later" }] });
        let (short, _) = shortened(&answer(&result), 1000).unwrap();
        assert_eq!(short["result"]["content"], json!([image(300)]));
        // The id stands at the end as well.
        let message = format!(r#"{{"result":{result},"jsonrpc":"2.0","id":7}}"#);
        assert_eq!(shortened(&message, 1000).unwrap().0["id"], json!(7));
    }

    #[test]
    fn other_results_keep_their_lists_too() {
        let read = json!({ "contents": [{ "text": "x".repeat(3000), "uri": "x://a" }, { "uri": "x://b", "text": "b" }] });
        let (short, _) = shortened(&answer(&read), 500).unwrap();
        assert_eq!(short["result"]["contents"].as_array().unwrap().len(), 1);
        assert_eq!(short["result"]["contents"][0]["uri"], "x://a");
        let said = json!({ "messages": [{ "content": { "text": "x".repeat(3000), "type": "text" }, "role": "user" }] });
        let (short, _) = shortened(&answer(&said), 500).unwrap();
        assert_eq!(short["result"]["messages"][0]["role"], "user");
    }

    #[test]
    fn what_is_no_message_is_not_shortened() {
        for text in
            ["[{}]", "hello", "{]", r#"{"a":[}"#, r#"{"a":{"b":1}"#, r#"{"a":1} x"#, "7", ""]
        {
            assert_eq!(shortened(text, 1), None, "{text}");
        }
        let deep = format!(r#"{{"a":{{"b":{}1{}}}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert_eq!(shortened(&deep, 10), None);
    }

    /// A server may send without an end; only so much is kept of it.
    #[test]
    fn what_is_kept_is_bounded() {
        let mut shortener = MessageTruncator::new(10_000);
        shortener.push(br#"{"id":1,"result":{"content":["#);
        for number in 0..100_000 {
            shortener.push(format!(r#"{{"type":"text","text":"{number}"}},"#).as_bytes());
        }
        shortener.push(br#"{}],"#);
        for number in 0..100_000 {
            shortener.push(format!(r#""{number}":"{number}","#).as_bytes());
            assert!(shortener.kept.len() < 10_000 + 2 * MAX_LATE_BYTES);
        }
        shortener.push(br#""z":0}}"#);
        let short = shortener.finish().unwrap();
        serde_json::from_slice::<Value>(&short.line).unwrap();
        assert!(short.missing > 1_000_000);
    }

    /// Any JSON value.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,40}".prop_map(Value::from),
            "[\u{0}-\u{20}\"\\\\😀ä]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("text|type|[a-c\"\\\\]{0,3}", inner, 0..6)
                    .prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        /// Whatever the budget, what comes out is JSON, and everything if there is room for it.
        #[test]
        fn what_comes_out_is_json(result in value(), budget in 0_usize..400, ascii in any::<bool>()) {
            let mut message = json!({ "id": 1, "result": result }).to_string();
            if ascii {
                // As some programs write it: with escapes for all that is not ASCII.
                message = message.chars().fold(String::new(), |mut text, it| {
                    if it.is_ascii() { text.push(it); } else {
                        it.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
                    }
                    text
                });
            }
            let (short, _) = shortened(&message, budget).unwrap();
            prop_assert_eq!(&short["id"], &json!(1));
            let (whole, missing) = shortened(&message, message.len()).unwrap();
            prop_assert_eq!(whole, serde_json::from_str::<Value>(&message).unwrap());
            prop_assert_eq!(missing, 0);
        }
    }
}
