//! Shortens a JSON-RPC message that is longer than a message may be, while it is read and in bounded memory
//! (CALL-5).
//!
//! The frame of a message is kept: the message itself, its `result`, and the lists in that. Values in the
//! frame are units: members, and items of the lists. A unit that does not fit into the budget is left out, and
//! what follows is kept while it fits. Of an item, a text is cut instead, and bytes (`data`, `blob`) are
//! emptied, so that its type is known. Small members of the frame are kept beyond the budget, such as an `id`
//! or `isError` at the end of the message. White space between tokens is not kept, and not missing.

mod string_state;

use bytes::Bytes;

use self::string_state::StringState;
use crate::message::{Message, Response};

/// Longest member of the frame that is kept after the budget is used up, in bytes: an id, a flag, or a small
/// `_meta`.
const MAX_LATE_MEMBER_BYTES: usize = 4 * 1024;

/// Bytes of all that is kept after the budget is used up, and of what follows a cut text in its unit.
const MAX_LATE_BYTES: usize = 64 * 1024;

/// Longest key of a member of the frame, in bytes. Those of the protocol have a few letters.
const MAX_FRAME_KEY_BYTES: usize = 1024;

/// Part of the budget that `_meta` of a result may take: content counts for more.
const META_SHARE: usize = 16;

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
    /// Bytes that may still be kept after that.
    late_room: usize,
    /// Bytes that were read, without white space between tokens.
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
    /// What the last key says of a string.
    role: StringRole,
    /// Length of what is kept up to which it fits.
    limit: usize,
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
    /// Nothing more of the text that is being read; after it, what late members may have.
    AfterText,
    /// Nothing of the string that is being read; after it, all that fits.
    AfterData,
    Nothing,
}

/// What a string is for, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringRole {
    /// A text, which can be cut.
    Text,
    /// Bytes in base64.
    Data,
    Other,
}

impl StringRole {
    fn of_key(key: &[u8]) -> Self {
        match key {
            b"text" => Self::Text,
            b"data" | b"blob" => Self::Data,
            _ => Self::Other,
        }
    }
}

impl MessageTruncator {
    /// Keeps about as many bytes as the budget says.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            kept: Vec::new(),
            budget,
            late_room: MAX_LATE_BYTES,
            seen: 0,
            frame: Vec::new(),
            key: Vec::new(),
            phase: Phase::Between,
        }
    }

    /// Reads the next bytes of the message.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.phase == Phase::Broken {
                // It is not going to be a message: nothing of it is needed.
                self.kept = Vec::new();
                return;
            }
            self.take(*byte);
        }
    }

    /// Counts a byte that is there for its content, or for the grammar.
    fn count(&mut self, byte: u8) {
        let is_in_string = match &self.phase {
            Phase::Key { .. } => true,
            Phase::Unit(unit) => unit.string.is_some(),
            _ => false,
        };
        // As in `take_in_unit`: it is kept.
        let ends_word =
            matches!(&self.phase, Phase::Unit(unit) if unit.word > 0 && !unit.open.is_empty());
        if is_in_string || ends_word || !byte.is_ascii_whitespace() {
            self.seen = self.seen.saturating_add(1);
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
        self.count(byte);
        self.take_counted(byte);
    }

    fn take_counted(&mut self, byte: u8) {
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
        let is_meta = is_member && self.frame.len() == 2 && self.key == br#""_meta""#;
        let share = if is_meta { self.budget / META_SHARE } else { self.budget };
        let role = if is_member && self.key == br#""text""# {
            StringRole::Text
        } else {
            StringRole::Other
        };
        self.phase = Phase::Unit(FrameValue {
            start,
            open: Vec::new(),
            string: None,
            expects_key: false,
            role,
            limit: self.budget.min(start.saturating_add(share)),
            word: 0,
            keeping: KeepPolicy::Whole,
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
            // One space stays between two words, which only looks like JSON without it.
            None if byte.is_ascii_whitespace() && !unit.open.is_empty() && unit.word == 0 => return,
            None => unit.take_outside(byte),
        };
        match place {
            BytePosition::Inside | BytePosition::Last => {
                if matches!(unit.keeping, KeepPolicy::Whole | KeepPolicy::UpTo(_)) {
                    self.kept.push(byte);
                }
                self.keep_within_bounds(place == BytePosition::Last);
                if place == BytePosition::Last {
                    self.end_unit();
                }
            }
            BytePosition::After => {
                self.end_unit();
                self.take_counted(byte);
            }
            BytePosition::Broken => self.phase = Phase::Broken,
        }
    }

    /// Cuts or leaves out the unit that is being read, if too much has been kept.
    fn keep_within_bounds(&mut self, is_last: bool) {
        let Phase::Unit(unit) = &mut self.phase else { return };
        let is_item = self.frame.last().is_some_and(|container| !container.is_object);
        let late = MAX_LATE_MEMBER_BYTES.min(self.late_room);
        match unit.keeping {
            KeepPolicy::Whole if self.kept.len() > unit.limit && !is_last => {
                let role = if unit.is_in_value() { unit.role } else { StringRole::Other };
                match (role, &unit.string) {
                    (StringRole::Text, Some(string)) => {
                        self.kept.truncate(string.cut);
                        self.kept.push(b'"');
                        unit.keeping = KeepPolicy::AfterText;
                    }
                    (StringRole::Data, Some(string)) if is_item => {
                        self.kept.truncate(string.start);
                        self.kept.push(b'"');
                        unit.keeping = KeepPolicy::AfterData;
                    }
                    _ if is_item => unit.leave_out(&mut self.kept),
                    _ => unit.keeping = KeepPolicy::UpTo(unit.start + late),
                }
            }
            KeepPolicy::AfterText if unit.string.is_none() => {
                unit.keeping = KeepPolicy::UpTo(self.kept.len() + self.late_room);
            }
            KeepPolicy::AfterData if unit.string.is_none() => unit.keeping = KeepPolicy::Whole,
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

    /// Whether a string is being read that is no key.
    fn is_in_value(&self) -> bool {
        self.string.as_ref().is_some_and(|string| !string.is_key)
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
            self.role = StringRole::of_key(string.first.get(..string.length).unwrap_or_default());
            self.expects_key = false;
        }
        self.string = None;
        if self.open.is_empty() { BytePosition::Last } else { BytePosition::Inside }
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

    /// Seen: a large image made a tool mute, because all that followed it was lost.
    #[test]
    fn bytes_beyond_the_budget_are_emptied_and_what_follows_stays() {
        let image = |size: usize| json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(size) });
        let later = json!({ "type": "text", "text": "later" });
        let result = json!({ "content": [image(300), image(5000), image(10), later] });
        let (short, _) = shortened(&answer(&result), 1000).unwrap();
        let kept = json!([image(300), image(0), image(10), later]);
        assert_eq!(short["result"]["content"], kept);
        let resource =
            json!({ "type": "resource", "resource": { "blob": "A".repeat(5000), "uri": "x:a" } });
        let (short, _) =
            shortened(&answer(&json!({ "content": [resource, later] })), 1000).unwrap();
        let kept = json!([{ "type": "resource", "resource": { "blob": "", "uri": "x:a" } }, later]);
        assert_eq!(short["result"]["content"], kept);
        // The id stands at the end as well.
        let message = format!(r#"{{"result":{result},"jsonrpc":"2.0","id":7}}"#);
        assert_eq!(shortened(&message, 1000).unwrap().0["id"], json!(7));
    }

    #[test]
    fn other_members_take_no_room_of_content() {
        let content = json!([{ "type": "text", "text": "x".repeat(90_000) }]);
        for (key, size) in
            [("_meta", 20_000), ("_meta", 900_000), ("structuredContent", 900_000), ("z", 900_000)]
        {
            let member = json!({ "a": "y".repeat(size) });
            let message =
                format!(r#"{{"id":7,"result":{{"{key}":{member},"content":{content}}}}}"#);
            let (short, _) = shortened(&message, 100_000).unwrap();
            assert_eq!(short["result"], json!({ "content": content }), "{key} {size}");
        }
        let many: Vec<_> = (0..20_000).map(|number| json!({ "n": number.to_string() })).collect();
        let message = format!(
            r#"{{"id":7,"result":{{"structuredContent":{{"data":{}}},"content":{content}}}}}"#,
            json!(many)
        );
        assert_eq!(
            shortened(&message, 100_000).unwrap().0["result"],
            json!({ "content": content })
        );
    }

    #[test]
    fn white_space_between_tokens_is_not_missing() {
        let space = " \t\r\n".repeat(1000);
        let block =
            format!(r#"{{{space}"type"{space}:{space}"text",{space}"text":"a  b"{space}}}"#);
        let message = format!(
            r#"{space}{{{space}"id":{space}1{space},{space}"result":{space}{{"content":{space}[{block}{space}]}}}}{space}"#
        );
        let mut shortener = MessageTruncator::new(1000);
        shortener.push(message.as_bytes());
        let short = shortener.finish().unwrap();
        assert_eq!(short.missing, 0);
        let kept: Value = serde_json::from_slice(&short.line).unwrap();
        assert_eq!(kept, serde_json::from_str::<Value>(&message).unwrap());
        let mut shortener = MessageTruncator::new(1000);
        shortener.push(br#"{"id":1,"result":{"a":[[1 2]]}}"#);
        let short = shortener.finish().unwrap();
        assert!(serde_json::from_slice::<Value>(&short.line).is_err(), "{short:?}");
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
