//! Masks secrets in text, in the forms in which programs print them.
//!
//! A secret is found verbatim; with any of its characters escaped as in JSON (`\u0041`, `\/`,
//! `\"`), as in C and Python (`\x41`) or percent-encoded; and in Base64 of either alphabet, also
//! inside longer Base64. Other encodings (hexadecimal, compression, encryption) are not found.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::config::{MASK, Secret};

/// Shortest secret that is masked; shorter ones would mask ordinary words.
const SHORTEST_SECRET: usize = 6;

/// Shortest prefix of a secret that is masked at the end of a truncated text.
const SHORTEST_BEGINNING: usize = 4;

/// Shortest part of a Base64-encoded secret that is masked. It does not depend on the position of
/// the secret in the encoded data, and 36 bits do not match by chance.
const SHORTEST_BASE64: usize = 6;

/// Maximum size and number of secrets that are searched in Base64: a referenced file may be long,
/// and may have many lines.
const MAX_ENCODED_BYTES: usize = 16 * 1024;
const MAX_ENCODED_SECRETS: usize = 200;

/// Maximum number of words of a secret that are also masked one by one: `Bearer` and its token.
/// Longer texts, such as scripts, consist of ordinary words.
const MAX_WORDS: usize = 3;

/// The secrets of a server.
#[derive(Clone, Default)]
pub(crate) struct SecretMask {
    /// Searched in the text and in its unescaped forms.
    plain: Vec<Secret>,
    /// Searched in the text only.
    encoded: Vec<Secret>,
}

impl SecretMask {
    /// Creates a mask for secrets, and for each of their lines and words, of at least
    /// [`SHORTEST_SECRET`] bytes.
    pub(crate) fn with_parts(secrets: impl IntoIterator<Item = Secret>) -> Self {
        Self::new(secrets.into_iter().flat_map(|secret| parts(&secret)), SHORTEST_SECRET)
    }

    /// Creates a mask for secrets of at least `shortest` bytes.
    pub(super) fn new(secrets: impl IntoIterator<Item = Secret>, shortest: usize) -> Self {
        let mut plain: Vec<Secret> = Vec::new();
        for secret in secrets.into_iter().flat_map(with_small_letters) {
            if secret.expose().len() >= shortest && !plain.contains(&secret) {
                plain.push(secret);
            }
        }
        let short = plain.iter().filter(|it| it.expose().len() <= MAX_ENCODED_BYTES);
        let short = short.take(MAX_ENCODED_SECRETS);
        let encoded = short.flat_map(|secret| base64_forms(secret.expose())).collect();
        Self { plain, encoded }
    }

    /// The text with secrets masked.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut position = 0;
        for (start, stop) in self.ranges(text, TextEnd::Whole) {
            shown.extend(text.get(position..start));
            shown.push_str(MASK);
            position = stop;
        }
        shown.extend(text.get(position..));
        shown
    }

    /// Whether a text contains a secret.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        !self.ranges(text, TextEnd::Whole).is_empty()
    }

    /// A JSON text with the secrets masked in its strings, including member names; `None` if it
    /// contains none. With `spares_outermost`, strings of the outermost object are unchanged: in a
    /// message, they are the protocol's.
    pub(crate) fn masked_json(&self, text: &str, spares_outermost: bool) -> Option<String> {
        if self.plain.is_empty() {
            return None;
        }
        let mut masked = String::new();
        let (mut depth, mut done, mut position) = (0_usize, 0, 0);
        let bytes = text.as_bytes();
        while let Some(byte) = bytes.get(position) {
            position += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let end = end_of_string(bytes, position);
                    if let Some(content) = text.get(position..end)
                        && !(spares_outermost && depth <= 1)
                        && self.is_in(content)
                    {
                        masked.extend(text.get(done..position));
                        masked += &self.masked(content);
                        done = end;
                    }
                    position = end + 1;
                }
                _ => {}
            }
        }
        (done > 0).then(|| {
            masked.extend(text.get(done..));
            masked
        })
    }

    /// The ranges of secrets in a text, in order; overlapping and adjacent ones are merged.
    pub(super) fn ranges(&self, text: &str, end: TextEnd) -> Vec<(usize, usize)> {
        if self.plain.is_empty() {
            return Vec::new();
        }
        let mut ranges = Vec::new();
        find(&self.encoded, text.as_bytes(), |start, stop| ranges.push((start, stop)));
        for escapes in EscapeStyle::ALL {
            let Some(view) = UnescapedText::new(text, *escapes) else { continue };
            find(&self.plain, &view.bytes, |start, stop| ranges.push(view.range(start, stop)));
            if end == TextEnd::CutOff {
                ranges.extend(
                    self.beginning_at_end(&view.bytes)
                        .map(|start| view.range(start, view.bytes.len())),
                );
            }
        }
        ranges.sort_unstable();
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for (start, stop) in ranges {
            // A match may start or end inside a character.
            let (start, stop) = (text.floor_char_boundary(start), text.ceil_char_boundary(stop));
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(stop),
                _ => joined.push((start, stop)),
            }
        }
        joined
    }

    /// Start of the longest prefix of a secret at the end of a text.
    fn beginning_at_end(&self, text: &[u8]) -> Option<usize> {
        let longest = |secret: &Secret| {
            let secret = secret.expose().as_bytes();
            let mut lengths = (SHORTEST_BEGINNING..secret.len().min(text.len() + 1)).rev();
            lengths.find(|length| {
                secret.get(..*length).is_some_and(|beginning| text.ends_with(beginning))
            })
        };
        let longest = self.plain.iter().filter_map(longest).max()?;
        Some(text.len() - longest)
    }
}

/// End of the content of a JSON string that starts at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut position = start;
    while let Some(byte) = text.get(position) {
        match byte {
            b'"' => break,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    position.min(text.len())
}

/// Whether a text is complete or truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    Whole,
    CutOff,
}

fn find(secrets: &[Secret], text: &[u8], mut found: impl FnMut(usize, usize)) {
    for secret in secrets {
        let secret = secret.expose().as_bytes();
        // Most strings of a list are short, and each search has to be prepared.
        if secret.len() > text.len() {
            continue;
        }
        for start in memchr::memmem::find_iter(text, secret) {
            found(start, start + secret.len());
        }
    }
}

/// A secret and each of its lines and words, because they may be printed separately.
fn parts(secret: &Secret) -> Vec<Secret> {
    let text = secret.expose();
    let words = text.split_whitespace().filter(|_| text.split_whitespace().count() <= MAX_WORDS);
    let parts = text.lines().chain(words).chain([text]);
    let parts = parts.map(str::trim).filter(|part| !part.eq_ignore_ascii_case("bearer"));
    parts.map(Secret::new).collect()
}

/// A secret and its lower-case form, in which host names are printed.
fn with_small_letters(secret: Secret) -> impl Iterator<Item = Secret> {
    let small = secret.expose().to_ascii_lowercase();
    let small = (small != secret.expose()).then(|| Secret::new(small));
    std::iter::once(secret).chain(small)
}

/// The part that any Base64 of a text with the secret has in common, for each alignment.
fn base64_forms(secret: &str) -> Vec<Secret> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let text = [vec![0; before], secret.as_bytes().to_vec()].concat();
        // Excludes characters that depend on adjacent bytes.
        let (first, last) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            let common = encoded.get(first..last).filter(|it| it.len() >= SHORTEST_BASE64);
            let common = common.map(Secret::new);
            forms.extend(common.filter(|form| !forms.contains(form)));
        }
    }
    forms
}

/// The escapes that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapeStyle {
    /// None: a secret may contain text that looks like an escape.
    Kept,
    /// Backslash escapes.
    Backslash,
    /// Percent-encoding.
    Percent,
    /// Both: a URL in JSON.
    Both,
}

impl EscapeStyle {
    const ALL: &[Self] = &[Self::Kept, Self::Backslash, Self::Percent, Self::Both];

    fn knows(self, first: u8) -> bool {
        match first {
            b'\\' => matches!(self, Self::Backslash | Self::Both),
            b'%' => matches!(self, Self::Percent | Self::Both),
            _ => false,
        }
    }
}

/// A text with its escapes decoded.
struct UnescapedText<'a> {
    bytes: Cow<'a, [u8]>,
    /// Position in the text of each byte and of the end; `None` if unchanged.
    places: Option<Vec<usize>>,
}

impl<'a> UnescapedText<'a> {
    /// Decodes the escapes; `None` if there are none.
    fn new(text: &'a str, escapes: EscapeStyle) -> Option<Self> {
        let source = text.as_bytes();
        if escapes == EscapeStyle::Kept {
            return Some(Self { bytes: source.into(), places: None });
        }
        if !source.iter().any(|byte| escapes.knows(*byte)) {
            return None;
        }
        let mut bytes = Vec::with_capacity(source.len());
        let mut places = Vec::with_capacity(source.len() + 1);
        let mut rest = source;
        while let Some((first, after)) = rest.split_first() {
            let place = source.len() - rest.len();
            let escape = if escapes.knows(*first) { escape(*first, after) } else { None };
            let before = bytes.len();
            rest = match escape {
                Some((character, length)) => {
                    character.push_to(&mut bytes);
                    after.get(length..).unwrap_or_default()
                }
                None => {
                    bytes.push(*first);
                    after
                }
            };
            places.extend(std::iter::repeat_n(place, bytes.len() - before));
        }
        places.push(source.len());
        Some(Self { bytes: bytes.into(), places: Some(places) })
    }

    fn range(&self, start: usize, stop: usize) -> (usize, usize) {
        let place = |at: usize| match &self.places {
            Some(places) => places.get(at).copied().unwrap_or(at),
            None => at,
        };
        (place(start), place(stop))
    }
}

/// A decoded escape.
#[derive(Clone, Copy)]
enum EscapedUnit {
    Byte(u8),
    Character(char),
}

impl EscapedUnit {
    fn push_to(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Byte(byte) => bytes.push(byte),
            Self::Character(character) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
}

/// Decodes the escape that begins with `first`. Returns the number of bytes after that.
fn escape(first: u8, after: &[u8]) -> Option<(EscapedUnit, usize)> {
    if first == b'%' {
        return Some((EscapedUnit::Byte(u8::try_from(hexadecimal(after.get(..2)?)?).ok()?), 2));
    }
    let (kind, after) = after.split_first()?;
    Some(match kind {
        b'"' | b'\\' | b'/' | b'\'' => (EscapedUnit::Byte(*kind), 1),
        b'n' => (EscapedUnit::Byte(b'\n'), 1),
        b'r' => (EscapedUnit::Byte(b'\r'), 1),
        b't' => (EscapedUnit::Byte(b'\t'), 1),
        b'x' => (EscapedUnit::Byte(u8::try_from(hexadecimal(after.get(..2)?)?).ok()?), 3),
        b'u' => {
            let high = hexadecimal(after.get(..4)?)?;
            match char::from_u32(high) {
                Some(character) => (EscapedUnit::Character(character), 5),
                // A high surrogate.
                None => {
                    let low = after.get(4..)?.strip_prefix(b"\\u")?;
                    let low = hexadecimal(low.get(..4)?)?;
                    let halves = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
                    let character = char::decode_utf16(halves).next()?.ok()?;
                    (EscapedUnit::Character(character), 11)
                }
            }
        }
        _ => return None,
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let is_plain = digits.iter().all(u8::is_ascii_hexdigit);
    u32::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_plain)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "s3cr\"t/väl+e";

    fn mask() -> SecretMask {
        let secrets = [SECRET, "ok", "Bearer hunter22"].map(Secret::new);
        SecretMask::with_parts(secrets)
    }

    #[test]
    fn secrets_are_masked_and_the_rest_is_as_it_was() {
        let mask = mask();
        let text =
            format!("ü {SECRET}{SECRET}, Bearer hunter22; hunter22 is ok, bearer \\u0041 %41");
        assert_eq!(mask.masked(&text), "ü ***, ***; *** is ok, bearer \\u0041 %41");
        for text in ["", "nothing", "\\", "\\u12", "\\ud800\\u", "%", "%4", "ü%fü"] {
            assert_eq!(mask.masked(text), text);
        }
        assert_eq!(SecretMask::default().masked("text"), "text");
    }

    #[test]
    fn escaped_secrets_are_masked() {
        let every = |escape: fn(char) -> String| SECRET.chars().map(escape).collect::<String>();
        let json = serde_json::to_string(SECRET).unwrap();
        let json = json.trim_matches('"');
        let percent = percent_encoding::utf8_percent_encode(SECRET, percent_encoding::CONTROLS);
        for form in [
            every(|it| format!("\\u{:04x}", u32::from(it))),
            every(|it| format!("\\u{:04X}", u32::from(it))),
            json.to_owned(),
            json.replace('/', "\\/"),
            SECRET.replace('s', "\\x73"),
            percent.to_string(),
            percent_encoding::percent_encode(SECRET.as_bytes(), percent_encoding::NON_ALPHANUMERIC)
                .to_string(),
            "s3cr%22t%2fv%c3%a4l%2be".to_owned(),
            "s3cr\\\"t%2Fv\\u00e4l+e".to_owned(),
        ] {
            assert_eq!(mask().masked(&format!("a {form} b")), "a *** b", "{form}");
        }
        let wide = SecretMask::new([Secret::new("key-😀-key")], SHORTEST_SECRET);
        assert_eq!(wide.masked("key-\\ud83d\\ude00-key"), MASK);
    }

    #[test]
    fn strings_of_json_are_masked_and_the_rest_is_as_it_was() {
        let mask = SecretMask::new([Secret::new("hunt/er22"), Secret::new("123456")], 6);
        let text =
            r#"{"method":"hunt/er22","x":{"a\"hunt\/er22":["\u0068unt/er22", 123456, "\\"]}}"#;
        assert_eq!(
            mask.masked_json(text, true).unwrap(),
            r#"{"method":"hunt/er22","x":{"a\"***":["***", 123456, "\\"]}}"#
        );
        assert_eq!(mask.masked_json(r#""hunt/er22""#, false).unwrap(), r#""***""#);
        for text in ["", "{}", r#"{"a":"b"}"#, r#"{"a":"b"#, r#"{"a":"b\"#, "\""] {
            assert_eq!(mask.masked_json(text, false), None);
        }
    }

    #[test]
    fn base64_of_secrets_is_masked_wherever_they_stand_in_it() {
        let secret = "correct horse battery staple >>>???";
        let mask = SecretMask::new([Secret::new(secret)], SHORTEST_SECRET);
        for before in ["", "a", "ab", "user:"] {
            let text = format!("{before}{secret} and more");
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let shown = mask.masked(&encoded);
                let kept = shown.replace(MASK, "");
                assert!(shown.contains(MASK) && kept.len() < before.len() * 2 + 18, "{shown}");
            }
        }
    }

    /// Host names are compared, and so printed, in lower case.
    #[test]
    fn secrets_in_small_letters_are_masked() {
        let mask = SecretMask::new([Secret::new("Zq7Xkp9mWt")], SHORTEST_SECRET);
        assert_eq!(mask.masked("host zq7xkp9mwt.invalid"), "host ***.invalid");
        assert_eq!(mask.masked("host Zq7Xkp9mWt"), "host ***");
    }

    #[test]
    fn the_beginning_of_a_secret_at_a_cut_is_masked() {
        for text in ["key hunte", "key s3cr\\\"t\\/v"] {
            assert_eq!(mask().ranges(text, TextEnd::CutOff), [(4, text.len())]);
            assert_eq!(mask().ranges(text, TextEnd::Whole), []);
        }
        assert_eq!(mask().ranges("key hun", TextEnd::CutOff), []);
    }
}
