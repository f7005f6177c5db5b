//! Checks texts against `format` and `pattern` of a schema, before they are sent.
//!
//! Only what every server would refuse is a problem. Servers accept more than the specifications of formats, such as a time
//! without an offset, and their regular expressions are not ours: what may have another meaning there is not checked.

use std::net::{Ipv4Addr, Ipv6Addr};

use regex::RegexBuilder;
use serde_json::Value;
use trunkline::config::escape_control;

/// Longest pattern that is checked, and the memory of its program: it comes from a server.
const MAX_PATTERN_BYTES: usize = 1_000;
const MAX_PROGRAM_BYTES: usize = 1024 * 1024;

/// Longest text that is checked.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Characters of a text or pattern in a message.
const MAX_SHOWN: usize = 60;

/// Letters after a backslash that mean the same for ASCII texts in all regular expressions.
const COMMON_ESCAPES: &[u8] = b"dDwWsSbBtnrfv";

/// What is wrong with a text, after its name: "must be a date such as …"; `None` if it fits or is not checked.
pub(super) fn problem(schema: &Value, text: &str) -> Option<String> {
    let keyword = |key: &str| schema.get(key).and_then(Value::as_str);
    let format = keyword("format").and_then(|format| format_problem(format, text));
    format.or_else(|| pattern_problem(keyword("pattern")?, text))
}

fn format_problem(format: &str, text: &str) -> Option<String> {
    let (is_valid, expected) = match format {
        "date" => (is_date(text), "a date such as 2026-07-28"),
        "date-time" => (is_date_time(text), "a date and time such as 2026-07-28T14:30:00Z"),
        "time" => (is_time(text), "a time such as 14:30:00Z"),
        "email" => (is_email(text), "an email address such as ann@example.com"),
        "uri" => (is_uri(text), "a URI with its scheme, such as https://example.com/"),
        "uuid" => (is_uuid(text), "a UUID such as 123e4567-e89b-12d3-a456-426614174000"),
        "ipv4" => (text.parse::<Ipv4Addr>().is_ok(), "an IPv4 address such as 192.0.2.1"),
        "ipv6" => (is_ipv6(text), "an IPv6 address such as 2001:db8::1"),
        _ => return None,
    };
    (!is_valid).then(|| format!("must be {expected}, not `{}`", shown(text)))
}

fn pattern_problem(pattern: &str, text: &str) -> Option<String> {
    // Regular expressions disagree on other characters and on the ends of lines.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_plain || text.len() > MAX_TEXT_BYTES || !is_common(pattern) {
        return None;
    }
    // Takes time in proportion to the text for every pattern; what it does not know is an error.
    let expression = RegexBuilder::new(pattern).size_limit(MAX_PROGRAM_BYTES).build().ok()?;
    (!expression.is_match(text))
        .then(|| format!("must match the pattern `{}`, not be `{}`", shown(pattern), shown(text)))
}

/// Whether a pattern means the same in JavaScript, Python and here.
fn is_common(pattern: &str) -> bool {
    if pattern.len() > MAX_PATTERN_BYTES || !pattern.is_ascii() {
        return false;
    }
    let bytes = pattern.as_bytes();
    let (mut at, mut is_in_class) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or_default();
        match (byte, is_in_class) {
            (b'\\', _) => {
                let is_common = !next.is_ascii_alphanumeric() || COMMON_ESCAPES.contains(&next);
                // In a class, `\b` is a backspace in some.
                let is_boundary = is_in_class && matches!(next, b'b' | b'B');
                if !is_common || is_boundary || matches!(next, b'<' | b'>') {
                    return false;
                }
                at += 1;
            }
            (b'[', true) => return false,
            // Set operations of some.
            (b'&' | b'-' | b'~', true) if next == *byte => return false,
            (b'[', false) => {
                let rest = bytes.get(at + 1..).unwrap_or_default();
                let rest = rest.strip_prefix(b"^").unwrap_or(rest);
                if rest.starts_with(b"]") {
                    return false;
                }
                is_in_class = true;
            }
            (b']', true) => is_in_class = false,
            // Groups that are no plain ones: flags and names are written in several ways.
            (b'(', false) if next == b'?' && bytes.get(at + 2) != Some(&b':') => return false,
            // A brace may be a character, and `{,3}` a repetition.
            (b'{', false) if !next.is_ascii_digit() => return false,
            _ => {}
        }
        at += 1;
    }
    true
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    let mark = if text.chars().count() > MAX_SHOWN { "…" } else { "" };
    escape_control(&format!("{short}{mark}"))
}

/// A number with so many digits at most, and the rest of the text.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((is_number.then(|| number.parse().ok())??, rest))
}

/// A date. Its usual form is checked against the calendar; of others, such as `20260728`, only that a year comes
/// first.
fn is_date(text: &str) -> bool {
    match has_usual_form(text) && text.len() == 10 {
        true => is_calendar_date(text),
        false => digits(text, 4).is_some(),
    }
}

/// Whether a text begins like `2026-07-28`.
fn has_usual_form(text: &str) -> bool {
    text.len() >= 10
        && matches!(text.as_bytes(), [_, _, _, _, b'-', month, _, b'-', ..] if month.is_ascii_digit())
}

fn is_calendar_date(text: &str) -> bool {
    let date = || {
        let (year, rest) = digits(text, 4)?;
        let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let is_leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        Some(rest.is_empty() && (1..=days).contains(&day))
    };
    date().unwrap_or(false)
}

/// A date, or a date and a time. Servers in Python also take a space between them, and other forms of ISO 8601.
fn is_date_time(text: &str) -> bool {
    // A number is a Unix time for some.
    if !has_usual_form(text) {
        return text.parse::<f64>().is_ok() || digits(text, 4).is_some();
    }
    let Some((date, time)) = text.split_at_checked(10) else { return false };
    let time_of = |time: &str| time.strip_prefix(['T', 't', ' ', '_']).is_some_and(is_time);
    is_calendar_date(date) && (time.is_empty() || time_of(time))
}

/// A time. Its usual form is checked; of others, such as `T1430`, only that an hour comes first.
fn is_time(text: &str) -> bool {
    let text = text.strip_prefix(['T', 't']).unwrap_or(text);
    if text.as_bytes().get(2) != Some(&b':') {
        let hour = digits(text, 2).filter(|(_, rest)| !rest.starts_with(char::is_alphabetic));
        return hour.is_some_and(|(hour, _)| hour <= 24);
    }
    let time = || {
        let (hour, rest) = digits(text, 2)?;
        let (minute, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
        let mut second = 0;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = digits(after, 2)?;
            if let Some(fraction) = rest.strip_prefix(['.', ',']) {
                rest = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            }
        }
        let is_offset = |rest: &str| {
            let offset = rest.strip_prefix(['+', '-']).map(|it| it.replace(':', ""));
            offset.is_some_and(|it| it.len() >= 2 && it.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let has_end = matches!(rest.trim_start(), "" | "Z" | "z") || is_offset(rest.trim_start());
        // A leap second is valid.
        Some(hour <= 24 && minute < 60 && second <= 60 && has_end)
    };
    time().unwrap_or(false)
}

fn is_email(text: &str) -> bool {
    // A name before the address is accepted by some: `Ann <ann@example.com>`.
    let parts = text.trim().rsplit_once('@');
    parts.is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty())
}

fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
    };
    text.trim().split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
}

fn is_uuid(text: &str) -> bool {
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let digits = text.trim_matches(['{', '}']).replace('-', "");
    digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn is_ipv6(text: &str) -> bool {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address.parse::<Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_refuse_what_no_server_accepts() {
        for (format, good, bad) in [
            (
                "date",
                &["2026-07-28", "2024-02-29", "20260728", "2026-07-28T00:00:00", "2026-W30-1"][..],
                &["2026-02-29", "28.7.2026", "tomorrow", ""][..],
            ),
            (
                "date-time",
                &[
                    "2026-07-28T14:30:00Z",
                    "2026-07-28 14:30",
                    "2026-07-28t14:30:00.5+02:00",
                    "2026-07-28",
                    "1700000000",
                    "20260728T100000Z",
                    "2026-W30-1T10:00Z",
                ],
                &[
                    "tomorrow",
                    "2026-13-01T00:00:00Z",
                    "2026-07-28T25:00:00Z",
                    "2026-07-28T14:30:00Mars",
                ],
            ),
            (
                "time",
                &[
                    "14:30",
                    "14:30:00Z",
                    "23:59:60+01:00",
                    "00:00:00.123-0800",
                    "T10:00:00Z",
                    "100000",
                    "14",
                ],
                &["2pm", "25:00", "14:61", "now"],
            ),
            (
                "email",
                &["ann@example.com", "Ann <ann@example.com>", "ö@ö.example"],
                &["ann", "@example.com", "ann@"],
            ),
            (
                "uri",
                &["https://example.com/a b", "mailto:x", "file:///tmp", "urn:x:y"],
                &["example.com", "/tmp/x", "1a:b"],
            ),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                &["123", "123e4567-e89b-12d3-a456-42661417400g"],
            ),
            ("ipv4", &["192.0.2.1"], &["192.0.2.256", "::1", "localhost"]),
            ("ipv6", &["::1", "2001:db8::1", "fe80::1%eth0"], &["192.0.2.1", ":::"]),
            ("color", &["anything"], &[]),
        ] {
            let schema = json!({ "type": "string", "format": format });
            good.iter().for_each(|text| assert_eq!(problem(&schema, text), None, "{format}"));
            bad.iter()
                .for_each(|text| assert!(problem(&schema, text).is_some(), "{format}: {text}"));
        }
    }

    #[test]
    fn patterns_are_searched_for_as_schemas_say() {
        let of = |pattern: &str, text: &str| problem(&json!({ "pattern": pattern }), text);
        assert_eq!(of("^[A-Z]{2}-\\d+$", "AB-12"), None);
        assert_eq!(
            of("^[A-Z]{2}-\\d+$", "ab-12").unwrap(),
            "must match the pattern `^[A-Z]{2}-\\d+$`, not be `ab-12`"
        );
        assert_eq!(of("b", "abc"), None);
        assert!(of("^(?:a|b)\\/[^/]+$", "c/x").is_some());
        assert!(of("^[\\w.-]+$", "a b").is_some());
    }

    #[test]
    fn patterns_that_others_read_differently_are_not_checked() {
        for pattern in [
            "(?=x)y",
            "(?<!x)y",
            "(a)\\1",
            "^(?i)x$",
            "(?P<n>x)",
            "[[:alpha:]]",
            "[a&&b]",
            "[a--b]",
            "[]x]",
            "[^]",
            "\\Ax\\Z",
            "\\p{L}",
            "\\cA",
            "[\\b]",
            "x{,3}",
            "{x}",
            "(",
            "[",
            "\\u{61}",
            "é",
            "x\\",
        ] {
            assert_eq!(problem(&json!({ "pattern": pattern }), "0"), None, "{pattern}");
        }
        let digits = json!({ "pattern": "^\\D$" });
        for text in ["\u{663}", "x\n", "x\r"] {
            assert_eq!(problem(&digits, text), None, "{text:?}");
        }
    }

    /// Such patterns take exponential time elsewhere.
    #[test]
    fn a_pattern_of_a_server_takes_no_time() {
        let text = format!("{}!", "a".repeat(50_000));
        assert!(problem(&json!({ "pattern": "^(a+)+$" }), &text).is_some());
        assert_eq!(problem(&json!({ "pattern": "a{1000}{1000}{1000}" }), "b"), None);
        assert_eq!(problem(&json!({ "pattern": "a".repeat(2_000) }), "b"), None);
    }
}
