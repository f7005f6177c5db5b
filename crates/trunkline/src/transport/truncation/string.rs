//! Tracks where a string can be cut, in a message that is being truncated.

/// The purpose of a string, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringRole {
    /// A text, which can be cut.
    Text,
    /// Base64 data.
    Data,
    Other,
}

impl StringRole {
    pub(super) fn of_key(key: &[u8]) -> Self {
        match key {
            b"text" => Self::Text,
            b"data" | b"blob" => Self::Data,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct StringState {
    pub(super) is_key: bool,
    escape: Escape,
    /// Whether the previous escape was the first half of a surrogate pair.
    is_after_half: bool,
    /// The length of the kept part before its first character.
    pub(super) start: usize,
    /// The length of the kept part at the last position where the string can be cut.
    pub(super) cut: usize,
    /// The first bytes, to recognize a key.
    pub(super) first: [u8; 5],
    pub(super) length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// The number of digits of `\uXXXX` read so far, and their value.
    Digits(u8, u16),
}

impl StringState {
    pub(super) fn new(is_key: bool) -> Self {
        Self {
            is_key,
            escape: Escape::None,
            is_after_half: false,
            start: usize::MAX,
            cut: usize::MAX,
            first: [0; 5],
            length: 0,
        }
    }

    /// Processes a byte, and returns whether it ends the string.
    pub(super) fn take(&mut self, byte: u8, kept: usize) -> bool {
        if self.length == 0 {
            self.start = kept;
        }
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
