//! Truncates a JSON-RPC message that exceeds the size limit, while it is read and in limited memory
//! (CALL-5).
//!
//! The frame of a message is kept: the message itself, its `result`, and the lists in that. The
//! values in the frame are units: members, and items of the lists. A unit that exceeds the budget
//! is omitted, and units after it are kept while they fit. In an item, a text is cut instead, and
//! binary data (`data`, `blob`) is replaced with an empty string, so that its type is known. Small
//! members of the frame are kept beyond the budget, such as an `id` or `isError` at the end of the
//! message. White space between tokens is dropped, and not counted as missing.

mod string;

use bytes::Bytes;

use crate::message::{Message, Response};
use string::{StringRole, StringState};

/// Longest member of the frame that is kept beyond the budget, in bytes: an ID, a flag, or a small
/// `_meta`.
const MAX_LATE_MEMBER_BYTES: usize = 4 * 1024;

/// Maximum total of bytes kept beyond the budget, including those after a cut text in its unit.
const MAX_LATE_BYTES: usize = 64 * 1024;

/// Longest key of a member of the frame, in bytes. Those of the protocol have a few letters.
const MAX_FRAME_KEY_BYTES: usize = 1024;

/// Fraction of the budget that `_meta` of a result may use: content has priority.
const META_SHARE: usize = 16;

/// Longest number or literal, in bytes. A message with a longer one is rejected.
const MAX_WORD_BYTES: usize = 1024;

/// Maximum nesting of the frame: the message, its result, and a list in that.
const MAX_FRAME_DEPTH: usize = 3;

/// Maximum nesting in a unit: the same as for any message.
const MAX_UNIT_DEPTH: usize = crate::message::MAX_DEPTH;

/// A message that may lack omitted parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TruncatedMessage {
    /// Valid JSON, if the message was.
    pub(super) line: Bytes,
    /// The number of omitted bytes.
    pub(super) missing: usize,
}

impl TruncatedMessage {
    /// A complete message.
    pub(super) fn whole(line: Bytes) -> Self {
        Self { line, missing: 0 }
    }

    /// The truncated response, if the message is a result. Any other truncated message is useless.
    pub(super) fn answer(self) -> Option<Response> {
        match Message::read(&self.line) {
            Ok(Message::Response(Response { id, outcome: Ok(result) })) => {
                Some(Response { id, outcome: Ok(result.shortened_by(self.missing)) })
            }
            _ => None,
        }
    }
}

/// Reads a message that exceeds the size limit, and keeps a part of it that is a valid message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageTruncator {
    kept: Vec<u8>,
    budget: usize,
    /// Bytes that may still be kept beyond the budget.
    late_room: usize,
    /// Bytes read, without white space between tokens.
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
    /// In a key of the frame, with whether the next character is escaped.
    Key { is_escaped: bool },
    /// After a key of the frame.
    AfterKey,
    /// In a unit.
    Unit(FrameValue),
    /// The message is complete.
    Over,
    /// It is not a valid message.
    Broken,
}

/// A value in the frame that is being read.
#[derive(Debug, PartialEq, Eq)]
struct FrameValue {
    /// The length of `kept` before it.
    start: usize,
    /// The open containers in it: for each, whether it is an object.
    open: Vec<bool>,
    string: Option<StringState>,
    expects_key: bool,
    /// The role of a string, by the last key.
    role: StringRole,
    /// The length of `kept` up to which it fits.
    limit: usize,
    /// Length of the number or literal that is being read.
    word: usize,
    keeping: KeepPolicy,
}

/// How much of a unit to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepPolicy {
    Whole,
    /// Everything up to this length of `kept`.
    UpTo(usize),
    /// Nothing more of the current text; after it, the allowance for bytes beyond the budget.
    AfterText,
    /// Nothing of the current string; after it, everything that fits.
    AfterData,
    Nothing,
}

impl MessageTruncator {
    /// Creates a truncator that keeps about `budget` bytes.
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
                // It cannot become a valid message, so its memory is released.
                self.kept = Vec::new();
                return;
            }
            self.take(*byte);
        }
    }

    /// Counts a byte, unless it is white space between tokens.
    fn count(&mut self, byte: u8) {
        let is_in_string = match &self.phase {
            Phase::Key { .. } => true,
            Phase::Unit(unit) => unit.string.is_some(),
            _ => false,
        };
        // `take_in_unit` keeps this white space.
        let ends_word =
            matches!(&self.phase, Phase::Unit(unit) if unit.word > 0 && !unit.open.is_empty());
        if is_in_string || ends_word || !byte.is_ascii_whitespace() {
            self.seen = self.seen.saturating_add(1);
        }
    }

    /// Whether it cannot become a valid message, whatever follows.
    pub(super) fn is_broken(&self) -> bool {
        self.phase == Phase::Broken
    }

    /// The truncated message, if it was complete and seemed valid.
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

    /// Starts the value of a member, or an item of a list.
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
            // White space after a number or literal stays: without it, two of them would become
            // one, and invalid JSON could become valid.
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

    /// Cuts or omits the current unit, if it exceeds its limit.
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

/// The position of a byte relative to the current unit.
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

    /// Whether the current string is not a key.
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
            // A number or literal ends before a character that cannot be part of it.
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
mod tests;
