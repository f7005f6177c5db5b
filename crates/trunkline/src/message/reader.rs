//! Single-pass JSON parser for messages: validates the text and indexes the members of the
//! envelope, its payload and the payload's `_meta`.
//!
//! The grammar is that of RFC 8259, as `serde_json` implements it; the tests compare the two. With
//! `serde_json`, every lookup of a member parsed the text again: a result of 1 MB took 19.8 million
//! instructions through the gateway, and takes 1.7 million with the index.

use std::ops::Range;

use super::index::{LEVELS, MemberIndex};

/// A parsed message.
pub(super) struct JsonText {
    /// Range of the value, without white space around it.
    pub(super) value: Range<usize>,
    /// Positions of its members, if it is an object with few enough of them.
    pub(super) outline: Option<MemberIndex>,
    /// Whether it is nested deeper than [`MAX_DEPTH`].
    pub(super) is_too_deep: bool,
}

/// Limit on nested arrays and objects. Most JSON parsers of clients stop between 128 and 1,000
/// levels, and nothing that a person or a model writes comes near either.
pub const MAX_DEPTH: usize = 512;

/// Parses a message; `None` if it is not exactly one JSON value. Also indexes the members of its
/// payload and of the payload's `_meta`.
pub(super) fn read(text: &[u8]) -> Option<JsonText> {
    let mut reader = JsonReader {
        text,
        at: 0,
        open: Vec::new(),
        deepest: 0,
        is_ascii: true,
        escapes: 0,
        outline: MemberIndex::default(),
    };
    reader.space();
    let start = reader.at;
    let is_outlined = reader.outlined(ENVELOPE)?;
    let value = start..reader.at;
    reader.space();
    // Outside of strings everything is ASCII.
    let is_utf8 = reader.is_ascii || std::str::from_utf8(text).is_ok();
    let outline = is_outlined.then_some(reader.outline);
    // Indexed objects are not on the stack of open containers.
    let is_too_deep = reader.deepest + LEVELS > MAX_DEPTH;
    (is_utf8 && reader.at == text.len()).then_some(JsonText { value, outline, is_too_deep })
}

/// Nesting levels of the message and of its payload.
const ENVELOPE: usize = 0;
const PAYLOAD: usize = 1;

/// Whether the value under a key of an indexed object is indexed too.
fn is_looked_into(level: usize, key: &[u8]) -> bool {
    match level {
        ENVELOPE => matches!(key, b"params" | b"result"),
        PAYLOAD => key == b"_meta",
        _ => false,
    }
}

/// A text and the position in it. Every step returns `None` where the text is not JSON.
struct JsonReader<'t> {
    text: &'t [u8],
    at: usize,
    /// Closing brackets of the open arrays and objects.
    open: Vec<u8>,
    /// The largest number of open containers so far.
    deepest: usize,
    /// Whether all strings so far are ASCII.
    is_ascii: bool,
    /// Number of escapes in strings so far.
    escapes: usize,
    /// Positions of the indexed members.
    outline: MemberIndex,
}

impl JsonReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Reads a value and indexes its members, if it is an object. Returns whether all of them are
    /// indexed.
    fn outlined(&mut self, level: usize) -> Option<bool> {
        // Of duplicates, only the first is indexed.
        if self.peek() != Some(b'{') || level >= LEVELS || !self.outline.is_free(level) {
            self.value()?;
            return Some(false);
        }
        let (start, mut has_all) = (self.at, true);
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(true);
        }
        loop {
            let escapes = self.escapes;
            let key = self.key()?;
            // With escapes, two spellings may be the same key: such an object is scanned on every
            // access.
            has_all &= self.escapes == escapes;
            let from = self.at;
            let is_inner = match is_looked_into(level, &self.text[key.clone()]) {
                true => self.outlined(level + 1)?,
                false => {
                    self.value()?;
                    false
                }
            };
            let (key, value) = (key.start - start..key.end - start, from - start..self.at - start);
            has_all = has_all && self.outline.note(level, &key, &value);
            if has_all && is_inner {
                self.outline.enters(level);
            }
            self.space();
            match self.next()? {
                b',' => self.space(),
                b'}' => return Some(has_all),
                _ => return None,
            }
        }
    }

    /// Reads a key, the colon and the white space around it.
    fn key(&mut self) -> Option<Range<usize>> {
        if self.next()? != b'"' {
            return None;
        }
        let start = self.at;
        self.string()?;
        let key = start..self.at - 1;
        self.space();
        if self.next()? != b':' {
            return None;
        }
        self.space();
        Some(key)
    }

    /// Reads a value with everything in it, without recursion.
    fn value(&mut self) -> Option<()> {
        let outside = self.open.len();
        loop {
            // A value begins here.
            match self.next()? {
                b'"' => self.string()?,
                b'{' => {
                    self.space();
                    if self.peek()? != b'}' {
                        self.key()?;
                        self.open.push(b'}');
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.space();
                    if self.peek()? != b']' {
                        self.open.push(b']');
                        continue;
                    }
                    self.at += 1;
                }
                first => self.word(first)?,
            }
            // A value ended here, and perhaps the containers around it.
            self.deepest = self.deepest.max(self.open.len());
            while self.open.len() > outside {
                self.space();
                let (byte, end) = (self.next()?, *self.open.last()?);
                if byte == end {
                    self.open.pop();
                    continue;
                }
                if byte != b',' {
                    return None;
                }
                self.space();
                if end == b'}' {
                    self.key()?;
                }
                break;
            }
            if self.open.len() == outside {
                return Some(());
            }
        }
    }

    /// Reads the rest of a string.
    fn string(&mut self) -> Option<()> {
        loop {
            let rest = &self.text[self.at..];
            let (length, is_ascii) = plain(rest);
            self.is_ascii &= is_ascii;
            self.at += length + 1;
            match rest.get(length)? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    /// Reads the part of an escape after the backslash.
    fn escape(&mut self) -> Option<()> {
        self.escapes += 1;
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// Reads the rest of a number, or of `true`, `false` or `null`.
    fn word(&mut self, first: u8) -> Option<()> {
        let rest: &[u8] = match first {
            b't' => b"rue",
            b'f' => b"alse",
            b'n' => b"ull",
            _ => return self.number(first),
        };
        let is_it = self.text[self.at..].starts_with(rest);
        self.at += rest.len();
        is_it.then_some(())
    }

    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.next()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.pass_digits(),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// Reads one or more digits.
    fn digits(&mut self) -> Option<()> {
        let is_digit = self.next()?.is_ascii_digit();
        self.pass_digits();
        is_digit.then_some(())
    }

    fn pass_digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

/// Length of the prefix of a string without quotes, escapes and control characters, and whether the
/// bytes read to find it are ASCII.
fn plain(text: &[u8]) -> (usize, bool) {
    // Most strings are short, and end within a few machine words.
    let WordScan { mut length, mut is_ascii, mut is_over } = words(text, SHORT);
    if !is_over {
        let (passed, are_ascii) = blocks(&text[length..]);
        (length, is_ascii) = (length + passed, is_ascii && are_ascii);
        let rest = words(&text[length..], BLOCK);
        (length, is_ascii) = (length + rest.length, is_ascii && rest.is_ascii);
        is_over = rest.is_over;
    }
    if is_over {
        return (length, is_ascii);
    }
    // Less than a machine word is left.
    let rest = &text[length..];
    let place = rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len());
    (length + place, is_ascii && rest[..place].is_ascii())
}

/// A prefix without special bytes.
struct WordScan {
    length: usize,
    is_ascii: bool,
    /// Whether a special byte follows.
    is_over: bool,
}

/// The prefix without special bytes, scanned a machine word at a time, up to about `most` bytes.
fn words(text: &[u8], most: usize) -> WordScan {
    let (mut length, mut bits) = (0, 0);
    while length < most
        && let Some(word) = text[length..].first_chunk().copied().map(u64::from_le_bytes)
    {
        bits |= word;
        if let Some(place) = special(word) {
            return WordScan {
                length: length + place,
                is_ascii: bits & HIGHEST == 0,
                is_over: true,
            };
        }
        length += WORD;
    }
    WordScan { length, is_ascii: bits & HIGHEST == 0, is_over: false }
}

/// Length of the blocks without special bytes, and whether they and the next block are ASCII.
fn blocks(text: &[u8]) -> (usize, bool) {
    let (mut length, mut is_ascii) = (0, true);
    // The whole block in bytes, without an early exit: compilers vectorize this loop.
    for block in text.chunks_exact(BLOCK) {
        let (specials, bits) = block.iter().fold((0, 0), |(specials, bits), byte| {
            (specials | u8::from(is_special(*byte)), bits | byte)
        });
        is_ascii &= bits.is_ascii();
        if specials != 0 {
            break;
        }
        length += BLOCK;
    }
    (length, is_ascii)
}

/// Bytes that are scanned together: in a machine word, in a string that may be short, and in a long
/// one.
const WORD: usize = 8;
const SHORT: usize = 32;
const BLOCK: usize = 64;

/// The lowest and the highest bit of each byte of a word.
const ONES: u64 = u64::from_ne_bytes([1; WORD]);
const HIGHEST: u64 = ONES << 7;

/// Whether a byte of a string needs attention: a quote, an escape or a control character.
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Position of the first special byte of a word. Each test sets the highest bit of the matching
/// bytes; borrows can cause false matches only after the first true one.
fn special(word: u64) -> Option<usize> {
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHEST;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let found = below(word, b' ') | equal(b'"') | equal(b'\\');
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::super::index::{MOST, ObjectIndex};
    use super::super::raw::Raw;
    use super::*;

    fn is_json(text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok()
    }

    #[test]
    fn exactly_valid_json_is_accepted() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let long = format!("\"{}\\n{}\"", "x".repeat(1000), "é".repeat(1000));
        let texts = r#" {"a" : [ ] , "b":{ }, "c":[[1, 2],{"d":null}] } |0|-0|-0.5e+10|12E3|true|false|null
            |""|"\u00e9\ud800"|{"params":{"_meta":{"a":[{}]}},"result":[]}"#;
        for text in texts.split('|').chain([&*deep, &*long]) {
            assert!(is_json(text.as_bytes()), "{text}");
            assert!(read(text.as_bytes()).is_some(), "{text}");
        }
        let texts = r#"| |{|[|{]|[}|[1,]|{"a":1,}|{,}|[,1]|{"a"}|{"a":}|{a:1}|1 2|01|-|1.|.5|1e|1e+|+1|tru|nul|truex
            |"|"\x"|"\u12"|"\u12g4"|{"params":{"a":1]}|{"params":{"_meta":{"a" 1}}}|[1 2]|{"a":1 "b":2}|'a'|NaN"#;
        for text in texts.split('|').chain(["\"a\nb\"", "\"\t\"", "\u{feff}{}"]) {
            let text = text.trim_end();
            assert!(!is_json(text.as_bytes()), "{text}");
            assert!(read(text.as_bytes()).is_none(), "{text}");
        }
        assert!(read(b"\"\xff\"").is_none());
    }

    #[test]
    #[expect(clippy::string_slice, reason = "a test that panics fails")]
    fn members_of_inspected_objects_are_recorded() {
        let text = r#" {"id":1,"params": {"name":"x", "_meta":{"a":{"b":2}}},"x":{"y":1}}"#;
        let JsonText { value, outline, .. } = read(text.as_bytes()).unwrap();
        let (text, outline) = (&text[value], ObjectIndex::new(outline.unwrap()));
        let [id, params, _] = outline.members() else { panic!("{outline:?}") };
        assert_eq!((&text[id.key()], &text[id.value()]), ("id", "1"));
        assert!(outline.inside(0).is_none() && outline.inside(2).is_none());
        let (text, inside) = (&text[params.value()], outline.inside(1).unwrap());
        let [name, meta] = inside.members() else { panic!("{inside:?}") };
        assert_eq!(&text[name.value()], "\"x\"");
        let (text, inside) = (&text[meta.value()], inside.inside(1).unwrap());
        let [a] = inside.members() else { panic!("{inside:?}") };
        assert_eq!((&text[a.key()], &text[a.value()]), ("a", "{\"b\":2}"));
        assert!(inside.inside(0).is_none());
    }

    #[test]
    fn an_object_with_a_key_that_is_escaped_is_read_and_not_noted() {
        for text in [r#"{"a":1,"\u0062":2}"#, r#"{"\"":{},"id":1}"#] {
            assert!(read(text.as_bytes()).unwrap().outline.is_none(), "{text}");
        }
        let text = r#"{"a":"\n","params":{"\u0062":2}}"#;
        let outline = ObjectIndex::new(read(text.as_bytes()).unwrap().outline.unwrap());
        assert!(outline.inside(1).is_none());
        let (message, _) = Raw::read_message(&Bytes::from_static(text.as_bytes())).unwrap();
        assert_eq!(message.get("params").unwrap().get("b").unwrap().text(), "2");
    }

    #[test]
    fn of_two_objects_in_one_place_no_more_than_one_is_noted() {
        let text = r#"{"params":{"a":1},"result":{"b":2,"_meta":{"c":3}},"params":{}}"#;
        let (message, _) = Raw::read_message(&Bytes::from_static(text.as_bytes())).unwrap();
        assert_eq!(message.get("params").unwrap().text(), "{}");
        let result = message.get("result").unwrap();
        assert_eq!(result.get("b").unwrap().text(), "2");
        assert_eq!(result.get("_meta").unwrap().get("c").unwrap().text(), "3");
        assert!(result.get("a").is_none());
    }

    #[test]
    fn an_object_of_many_members_is_read_and_not_noted() {
        let object = |count: usize| {
            let members: Vec<_> = (0..count).map(|number| format!("\"{number}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(read(object(MOST).as_bytes()).unwrap().outline.is_some());
        assert!(read(object(MOST + 1).as_bytes()).unwrap().outline.is_none());
    }

    /// Texts that are JSON or nearly so.
    fn nearly_json() -> impl Strategy<Value = String> {
        let parts =
            r#"{ } [ ] , : "a" "params" "_meta" " \ \u00e9 1 - 0 . e 5 true null "xyz\n" é"#;
        let parts: Vec<_> = parts.split(' ').chain([" ", "\n", "\u{1}"]).collect();
        let part = prop::sample::select(parts);
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16 * ProptestConfig::default().cases))]

        #[test]
        fn every_text_is_judged_as_serde_judges_it(text in nearly_json()) {
            prop_assert_eq!(read(text.as_bytes()).is_some(), is_json(text.as_bytes()), "{}", text);
        }

        #[test]
        fn a_string_ends_where_it_ends(text in "[ -~é\\x00-\\x1f]{0,80}", more in "[a\"]{0,40}") {
            let json = format!("{{\"result\":{}{more}}}", serde_json::to_string(&text).unwrap());
            prop_assert_eq!(read(json.as_bytes()).is_some(), is_json(json.as_bytes()), "{}", json);
        }
    }
}
