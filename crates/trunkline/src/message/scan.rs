//! Positions of the members and items of a JSON value. The text was validated before and is not
//! validated again, so skipping a value costs no more than finding its end.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::index::MemberSpan;

/// A member of an object.
pub(super) struct ScannedMember<'a> {
    /// The key as it is written, between its quotes.
    written: &'a [u8],
    /// Range of the value.
    pub(super) value: Range<usize>,
    /// Its number in the index, if it was indexed.
    pub(super) number: Option<usize>,
}

impl<'a> ScannedMember<'a> {
    /// A member from the index of its object.
    pub(super) fn noted(object: &'a [u8], (number, noted): (usize, &MemberSpan)) -> Self {
        Self { written: &object[noted.key()], value: noted.value(), number: Some(number) }
    }

    /// Whether it has this key.
    pub(super) fn is(&self, key: &str) -> bool {
        if self.number.is_some() {
            // Indexed keys contain no escapes.
            return self.written == key.as_bytes();
        }
        // An escape sequence is always longer than the character it stands for.
        match self.written.len().cmp(&key.len()) {
            Ordering::Less => false,
            Ordering::Equal => self.written == key.as_bytes() && !key.contains('\\'),
            Ordering::Greater => self.written.contains(&b'\\') && self.key() == key,
        }
    }

    /// Whether a lenient parser may match it with this key: some ignore case.
    pub(super) fn is_like(&self, key: &str) -> bool {
        // Most keys differ in their first letter. An escape or a multi-byte letter may match any.
        let may_begin_so = |first: &u8| {
            !first.is_ascii()
                || *first == b'\\'
                || key.as_bytes().first().is_some_and(|it| it.eq_ignore_ascii_case(first))
        };
        // Case folding never makes a key longer.
        if self.written.len() < key.len() || !self.written.first().is_none_or(may_begin_so) {
            return false;
        }
        let is_plain = self.written.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        match is_plain && key.is_ascii() {
            true => self.written.eq_ignore_ascii_case(key.as_bytes()),
            false => self.key().chars().map(folded).eq(key.chars().map(folded)),
        }
    }

    /// The key, unescaped.
    pub(super) fn key(&self) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(self.written);
        match text.contains('\\') {
            // An escape may be an unpaired surrogate. Such a key matches only itself.
            true => serde_json::from_str(&format!("\"{text}\"")).unwrap_or(text),
            false => text,
        }
    }
}

/// A letter without its case, as JSON parsers that ignore case compare it.
fn folded(letter: char) -> char {
    match letter {
        'ſ' => 's',
        // Kelvin sign.
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// The members of an object, in order; empty for any other value.
pub(super) fn members(text: &[u8]) -> impl Iterator<Item = ScannedMember<'_>> {
    let mut place = inside(text, b'{');
    std::iter::from_fn(move || {
        let start = next(text, place?)?;
        let end = end_of_string(text, start);
        let written = text.get(start + 1..end - 1)?;
        let value = next(text, end)?;
        let value = value..end_of_value(text, value);
        place = Some(value.end);
        Some(ScannedMember { written, value, number: None })
    })
}

/// Ranges of the items of an array; empty for any other value.
pub(super) fn items(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut place = inside(text, b'[');
    std::iter::from_fn(move || {
        let start = next(text, place?)?;
        let item = start..end_of_value(text, start);
        place = Some(item.end);
        Some(item)
    })
}

/// The position after the comma that follows a member; `end` if there is none.
pub(super) fn after_comma(text: &[u8], end: usize) -> usize {
    let gap = text[end..].iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    if text.get(end + gap) == Some(&b',') { end + gap + 1 } else { end }
}

fn inside(text: &[u8], opening: u8) -> Option<usize> {
    (text.first() == Some(&opening)).then_some(1)
}

/// Start of the next key, value or item; `None` at the end of the container.
fn next(text: &[u8], from: usize) -> Option<usize> {
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
    let start = from + text[from..].iter().position(|byte| !is_between(byte))?;
    (!matches!(text[start], b'}' | b']')).then_some(start)
}

fn end_of_value(text: &[u8], start: usize) -> usize {
    match text[start] {
        b'"' => end_of_string(text, start),
        b'{' | b'[' => end_of_container(text, start),
        _ => {
            let is_over = |byte: &u8| b",}] \t\n\r".contains(byte);
            text[start..].iter().position(is_over).map_or(text.len(), |length| start + length)
        }
    }
}

fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        // An escaped character does not end the string.
        at += 2;
    }
    text.len()
}

fn end_of_container(text: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}
