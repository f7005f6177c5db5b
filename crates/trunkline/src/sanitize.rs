//! Removes invisible and display-altering characters from the text of untrusted servers (TOOL-10).

use std::borrow::Cow;
use std::iter::Peekable;

use crate::config::is_hidden;
use crate::message::Raw;

/// Removes control characters, terminal escapes and invisible characters. Line breaks and tabs
/// stay.
pub(crate) fn sanitize_text(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' | '\u{9b}' | '\u{9d}' => skip_escape(character, &mut characters),
            it if is_deceptive(it) => {}
            plain => clean.push(plain),
        }
    }
    Cow::Owned(clean)
}

/// Sanitizes every string of a JSON value, including keys. All other bytes stay the same.
pub(crate) fn sanitize_json(value: &Raw) -> Raw {
    let text = value.text();
    // An escape may stand for any character; text without escapes can be checked directly.
    if !text.contains('\\') && !text.chars().any(is_deceptive) {
        return value.clone();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find('"').and_then(|start| rest.split_at_checked(start)) {
        let Some((string, after)) = from.split_at_checked(string_length(from)) else { break };
        clean.push_str(before);
        clean.push_str(&sanitize_string(string));
        rest = after;
    }
    clean.push_str(rest);
    Raw::from_text(&clean).unwrap_or_else(|_| value.clone())
}

/// Length of the JSON string at the start of `text`, including its quotes.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn sanitize_string(string: &str) -> Cow<'_, str> {
    let text = unescaped(string);
    match sanitize_text(&text) {
        Cow::Borrowed(_) => string.into(),
        Cow::Owned(clean) => Raw::from_string(&clean).text().to_owned().into(),
    }
}

/// Unescapes a JSON string with its quotes. An unpaired surrogate becomes U+FFFD, so that the rest
/// of the string is still checked.
fn unescaped(string: &str) -> String {
    let inside = string.strip_prefix('"').unwrap_or(string);
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let mut text = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => text.push(escaped_character(&mut characters)),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

/// The character of an escape after its `\u`, including the second half of a surrogate pair if that
/// follows.
fn escaped_character(rest: &mut std::str::Chars<'_>) -> char {
    let Some(unit) = code_unit(rest) else { return char::REPLACEMENT_CHARACTER };
    let mut after = rest.clone();
    let is_pair = (0xd800..0xdc00).contains(&unit) && after.next() == Some('\\');
    let low = (is_pair && after.next() == Some('u')).then(|| code_unit(&mut after)).flatten();
    let pair = [unit, low.unwrap_or(unit)];
    let pair = &pair[..if low.is_some() { 2 } else { 1 }];
    match char::decode_utf16(pair.iter().copied()).next() {
        Some(Ok(character)) => {
            if low.is_some() {
                *rest = after;
            }
            character
        }
        _ => char::REPLACEMENT_CHARACTER,
    }
}

fn code_unit(rest: &mut std::str::Chars<'_>) -> Option<u16> {
    let digits: String = rest.by_ref().take(4).collect();
    u16::from_str_radix(&digits, 16).ok()
}

/// Whether a character is deceptive: invisible, and more than a line break or tab.
fn is_deceptive(character: char) -> bool {
    !matches!(character, '\n' | '\t' | '\r') && is_hidden(character)
}

/// Skips the rest of a terminal escape sequence.
fn skip_escape(opening: char, rest: &mut Peekable<std::str::Chars<'_>>) {
    let kind = match opening {
        '\u{9b}' => Some('['),
        '\u{9d}' => Some(']'),
        _ => rest.next_if(|it| ('\u{20}'..='\u{7e}').contains(it)),
    };
    match kind {
        // CSI: parameters up to a final letter.
        Some('[') => {
            while rest.next_if(|it| ('\u{20}'..='\u{3f}').contains(it)).is_some() {}
            rest.next_if(|it| ('\u{40}'..='\u{7e}').contains(it));
        }
        // OSC, DCS, SOS, PM or APC: a string up to its terminator.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(character) = rest.next_if(|it| *it != '\n') {
                match character {
                    '\u{7}' | '\u{9c}' => break,
                    '\u{1b}' => {
                        rest.next_if_eq(&'\\');
                        break;
                    }
                    _ => {}
                }
            }
        }
        // Intermediate characters and one final character.
        Some('\u{20}'..='\u{2f}') => {
            while rest.next_if(|it| ('\u{20}'..='\u{2f}').contains(it)).is_some() {}
            rest.next_if(|it| ('\u{30}'..='\u{7e}').contains(it));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_and_invisible_characters_are_removed() {
        for (text, expected) in [
            ("plain\ttext\r\nwith größe", "plain\ttext\r\nwith größe"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{7}", "link"),
            ("\u{9b}2Jx\u{1b}(Bx\u{1b}cx", "xxx"),
            ("a\u{200b}b\u{202e}c\u{e0041}d\u{0}e", "abcde"),
            ("\u{1b}]never ends", ""),
            ("a\u{fe00}\u{fe0e}b\u{34f}c\u{2800}d\u{180b}\u{180f}e\u{1d173}\u{1d17a}", "abcde"),
            ("\u{2764}\u{fe0f}", "\u{2764}\u{fe0f}"),
        ] {
            assert_eq!(sanitize_text(text), expected, "{text:?}");
        }
    }

    /// An unpaired surrogate does not prevent sanitizing.
    #[test]
    fn a_text_that_is_no_unicode_is_cleaned_all_the_same() {
        for (text, expected) in [
            (r#"["\u001b[31mred \ud800"]"#, "[\"red \u{fffd}\"]"),
            (r#"["\u202e\udc00\ud83d\ude00"]"#, "[\"\u{fffd}😀\"]"),
            (r#"{"a\u200b\ud800":1}"#, "{\"a\u{fffd}\":1}"),
            (r#"["\ud800\u0041\u200b"]"#, "[\"\u{fffd}A\"]"),
        ] {
            assert_eq!(sanitize_json(&Raw::from_text(text).unwrap()).text(), expected, "{text}");
        }
    }

    #[test]
    fn json_is_cleaned_inside_its_texts_only() {
        let text = r#"{ "a\u200bb" : 12345678901234567890, "c":["\u001b[31mx\\\"", "\u00e9" ] }"#;
        let clean = sanitize_json(&Raw::from_text(text).unwrap());
        let expected = r#"{ "ab" : 12345678901234567890, "c":["x\\\"", "\u00e9" ] }"#;
        assert_eq!(clean.text(), expected);
    }

    proptest! {
        #[test]
        fn cleaned_json_stays_json_and_is_clean(text in "[\\x00-\\x20\u{1b}\\[\\]m\"\\\\u{200b}a-c\u{e0041}]{0,30}") {
            let raw = Raw::from_value(&serde_json::json!({ text.clone(): [text.clone()] }));
            let clean = sanitize_json(&raw);
            let value = clean.to_value();
            let (key, values) = value.as_object().unwrap().iter().next().unwrap();
            prop_assert_eq!(key, &*sanitize_text(&text));
            prop_assert_eq!(values[0].as_str().unwrap(), &*sanitize_text(&text));
            prop_assert!(!sanitize_text(&text).chars().any(is_deceptive));
        }
    }
}
