//! Scanner for JSON with comments: strings, words, numbers, white space.

#![expect(
    clippy::string_slice,
    reason = "a parser of its own text: every offset comes from this text, and fuzzing covers it"
)]

use crate::config::source::Span;

/// Maximum number of errors reported per string; more add no information.
const MAX_FAULTS: usize = 10;

/// A cursor over a text, always on a character boundary.
pub(in crate::config) struct Scanner<'a> {
    text: &'a str,
    offset: usize,
}

/// An error inside a token.
pub(in crate::config) struct TokenError {
    pub(in crate::config) span: Span,
    pub(in crate::config) message: &'static str,
    pub(in crate::config) help: Option<String>,
    /// Whether it is an unclosed string or comment, after which the structure is uncertain.
    pub(in crate::config) is_unclosed: bool,
}

/// A string token: its decoded text and its errors.
pub(in crate::config) struct StringToken {
    pub(in crate::config) text: Box<str>,
    pub(in crate::config) span: Span,
    pub(in crate::config) single_quoted: bool,
    pub(in crate::config) faults: Vec<TokenError>,
}

pub(in crate::config) fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

pub(in crate::config) fn starts_value(byte: u8) -> bool {
    starts_word(byte) || matches!(byte, b'{' | b'[' | b'-' | b'0'..=b'9')
}

fn continues_word(byte: u8) -> bool {
    starts_word(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.')
}

/// Whether a text is a valid JSON number.
pub(in crate::config) fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let exponent_digits = |text: &str| digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    digits(whole)
        && !leading_zero
        && fraction.is_none_or(digits)
        && exponent.is_none_or(exponent_digits)
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning, after a byte order mark if there is one.
    pub(in crate::config) fn new(text: &'a str) -> Self {
        let offset = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, offset }
    }

    pub(in crate::config) fn offset(&self) -> usize {
        self.offset
    }

    pub(in crate::config) fn at_end(&self) -> bool {
        self.offset >= self.text.len()
    }

    pub(in crate::config) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    pub(in crate::config) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    /// The span of the character here; empty at the end.
    pub(in crate::config) fn here(&self) -> Span {
        let width = self.text[self.offset..].chars().next().map_or(0, char::len_utf8);
        Span::new(self.offset, self.offset + width)
    }

    /// The span of the word here, or of the character here if there is no word.
    pub(in crate::config) fn word_here(&self) -> Span {
        let end = self.word_end();
        if end > self.offset { Span::new(self.offset, end) } else { self.here() }
    }

    /// Moves past a number of characters and returns their span.
    pub(in crate::config) fn advance(&mut self, characters: usize) -> Span {
        let start = self.offset;
        for _ in 0..characters {
            self.offset = self.here().end();
        }
        Span::new(start, self.offset)
    }

    /// Moves forward to an offset, rounded up to a character boundary.
    pub(in crate::config) fn skip_to(&mut self, offset: usize) {
        self.offset = self.text.ceil_char_boundary(offset);
    }

    /// Moves past the lines that belong to an unclosed string: those that do not start like JSON. A
    /// key pasted over several lines is then one mistake, not one per line.
    pub(in crate::config) fn skip_continuation(&mut self) {
        while let Some(rest) = self.text[self.offset..].strip_prefix(['\n', '\r']) {
            let line = rest.lines().next().unwrap_or_default();
            let starts_like_json =
                line.trim_start().starts_with(['"', '{', '}', '[', ']', ',', '/']);
            if line.trim().is_empty() || starts_like_json {
                return;
            }
            self.offset = self.text.len() - rest.len() + line.len();
        }
    }

    /// Moves past a word: a name, a number, or a run of such characters.
    pub(in crate::config) fn word(&mut self) -> Span {
        let start = self.offset;
        self.offset = self.word_end();
        Span::new(start, self.offset)
    }

    fn word_end(&self) -> usize {
        let rest = self.text.as_bytes()[self.offset..].iter();
        self.offset + rest.take_while(|byte| continues_word(**byte)).count()
    }

    /// Moves to the next comma, closing bracket, quote or line; by at least one character.
    pub(in crate::config) fn skip_to_separator(&mut self) -> Span {
        let start = self.offset;
        self.advance(1);
        while !matches!(self.peek(), None | Some(b',' | b'}' | b']' | b'\n' | b'"')) {
            self.advance(1);
        }
        let skipped = self.text[start..self.offset].trim_end();
        Span::new(start, start + skipped.len())
    }

    /// Moves past the rest of a bracket that was just opened, at any nesting depth.
    pub(in crate::config) fn skip_nested(&mut self) {
        let mut depth = 1_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.advance(1);
            if depth == 0 {
                return;
            }
        }
    }

    /// Moves past white space and comments. Returns early on an error; call again to continue.
    pub(in crate::config) fn trivia(&mut self) -> Option<TokenError> {
        loop {
            let rest = &self.text[self.offset..];
            let byte = rest.as_bytes().first()?;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.offset += 1,
                b'/' if rest.starts_with("//") => self.skip_line(),
                b'/' if rest.starts_with("/*") => match rest[2..].find("*/") {
                    Some(end) => self.offset += 2 + end + 2,
                    None => return Some(self.unclosed_comment()),
                },
                b'#' => return Some(self.hash_comment()),
                0xc2.. => match rest.chars().next() {
                    Some(odd) if odd.is_whitespace() || odd == '\u{feff}' => {
                        return Some(self.odd_space());
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.offset..];
        self.offset += rest.find('\n').unwrap_or(rest.len());
    }

    fn unclosed_comment(&mut self) -> TokenError {
        let span = Span::new(self.offset, self.offset + 2);
        self.offset = self.text.len();
        TokenError {
            span,
            message: "this comment is never closed",
            help: Some("add `*/`".to_owned()),
            is_unclosed: true,
        }
    }

    fn hash_comment(&mut self) -> TokenError {
        let span = Span::new(self.offset, self.offset + 1);
        self.skip_line();
        let help = Some("write `//` instead of `#`".to_owned());
        TokenError { span, message: "comments start with `//`", help, is_unclosed: false }
    }

    fn odd_space(&mut self) -> TokenError {
        let span = self.advance(1);
        let help = Some("replace it with an ordinary space".to_owned());
        TokenError {
            span,
            message: "an invisible character that JSON does not allow",
            help,
            is_unclosed: false,
        }
    }

    /// Moves past a string, from its opening quote to its closing quote or the end of its line.
    pub(in crate::config) fn string(&mut self) -> StringToken {
        let start = self.offset;
        let quote = self.text.as_bytes()[start];
        self.offset += 1;
        let mut content = StringContent::default();
        loop {
            let plain = self.plain_end(quote);
            content.text.push_str(&self.text[self.offset..plain]);
            self.offset = plain;
            match self.peek() {
                Some(byte) if byte == quote => {
                    self.offset += 1;
                    break;
                }
                Some(b'\\') => self.escape(&mut content),
                Some(b'\n' | b'\r') | None => {
                    let span = Span::new(start, self.offset);
                    let message = "this string is never closed";
                    content.faults.push(TokenError {
                        span,
                        message,
                        help: None,
                        is_unclosed: true,
                    });
                    break;
                }
                Some(_) => {
                    let span = self.advance(1);
                    content.text.push_str(self.slice(span));
                    let help = Some("write it as an escape, such as `\\t`".to_owned());
                    content.fault(span, "a control character inside a string", help);
                }
            }
        }
        StringToken {
            text: content.text.into(),
            span: Span::new(start, self.offset),
            single_quoted: quote == b'\'',
            faults: content.faults,
        }
    }

    /// Returns the end of the run of characters that need no unescaping.
    fn plain_end(&self, quote: u8) -> usize {
        let rest = self.text.as_bytes()[self.offset..].iter();
        let plain = |byte: &&u8| **byte != quote && **byte != b'\\' && **byte >= 0x20;
        self.offset + rest.take_while(plain).count()
    }

    fn escape(&mut self, content: &mut StringContent) {
        let backslash = self.offset;
        self.offset += 1;
        let character = match self.peek() {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\\' | b'/' | b'\'')) => char::from(byte),
            Some(b'u') => return self.unicode_escape(backslash, content),
            // The end of the line or text: the string is unclosed, which the caller reports.
            Some(b'\n' | b'\r') | None => return,
            Some(_) => {
                let unknown = self.advance(1);
                let span = Span::new(backslash, unknown.end());
                content.text.push_str(self.slice(span));
                let help = Some(r"write `\\` for a backslash, as in `C:\\Users`".to_owned());
                return content.fault(span, "an unknown escape in a string", help);
            }
        };
        self.offset += 1;
        content.text.push(character);
    }

    fn unicode_escape(&mut self, backslash: usize, content: &mut StringContent) {
        self.offset += 1;
        let first = self.four_digits();
        let character = match first {
            Some(high @ 0xd800..0xdc00) => self.low_surrogate(high),
            Some(code) => char::from_u32(code),
            None => None,
        };
        let span = Span::new(backslash, self.offset);
        content.text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        if character.is_none() {
            let help =
                Some("write four digits, such as `\\u00e9`; pairs for rare characters".into());
            content.fault(span, "not a Unicode character", help);
        }
    }

    fn low_surrogate(&mut self, high: u32) -> Option<char> {
        if !self.text[self.offset..].starts_with("\\u") {
            return None;
        }
        self.offset += 2;
        let low = self.four_digits().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let rest = self.text.as_bytes()[self.offset..].iter().take(4);
        let count = rest.take_while(|byte| byte.is_ascii_hexdigit()).count();
        let digits = &self.text[self.offset..self.offset + count];
        self.offset += count;
        if count == 4 { u32::from_str_radix(digits, 16).ok() } else { None }
    }
}

#[derive(Default)]
struct StringContent {
    text: String,
    faults: Vec<TokenError>,
}

impl StringContent {
    fn fault(&mut self, span: Span, message: &'static str, help: Option<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(TokenError { span, message, help, is_unclosed: false });
        }
    }
}

/// Typographic quotes that word processors substitute for plain ones.
const CURLY_QUOTES: [char; 4] = ['“', '”', '‘', '’'];

/// Strips curly quotes around a word.
pub(super) fn uncurled(word: &str) -> &str {
    word.trim_matches(CURLY_QUOTES)
}

pub(super) fn curly_hint(word: &str) -> Option<String> {
    let is_curly = word.contains(CURLY_QUOTES);
    is_curly.then(|| "these are curly quotes: write plain ones, `\"`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_json_numbers() {
        for good in ["0", "-0", "10", "1.5", "1e3", "-2.5E-7", "123456789012345678901234567890"] {
            assert!(is_number(good), "{good}");
        }
        for bad in ["", "-", "01", "1.", ".5", "+1", "1e", "0x10", "1_000", "NaN"] {
            assert!(!is_number(bad), "{bad}");
        }
    }

    #[test]
    fn surrogate_pairs_make_one_character_and_lone_ones_are_reported() {
        let pair = Scanner::new(r#""\ud83d\ude00""#).string();
        assert_eq!(&*pair.text, "😀");
        let lone = Scanner::new(r#""\ud83d x""#).string();
        assert_eq!((&*lone.text, lone.faults.len()), ("\u{fffd} x", 1));
    }
}
