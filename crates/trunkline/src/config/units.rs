//! Decodes durations, sizes and counts: `30000`, `"30s"`, `"5MiB"`, `4`.

use std::time::Duration;

use serde_json::json;

use super::decode::{Decoder, Definitions, FromNode};
use super::diagnostic::Code;
use super::jsonc::{Node, Value};

/// Longest accepted duration. A week is longer than any call, and no sum of two overflows.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Largest accepted size: the most that a 32-bit platform can address.
const MAX_SIZE: u64 = 2 * 1024 * 1024 * 1024;

/// Largest accepted count, above any realistic setting.
const MAX_COUNT: u64 = 1_000_000;

const DURATION_UNITS: &[(&str, f64)] =
    &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];

const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
];

/// A duration: a number of milliseconds, or a string with a unit. May be zero.
#[derive(Clone, Copy)]
pub(crate) struct WrittenDuration(pub(crate) Duration);

/// A duration above zero.
#[derive(Clone, Copy)]
pub(crate) struct PositiveDuration(pub(crate) Duration);

/// A size in bytes: a number, or a string with a unit. Not zero.
#[derive(Clone, Copy)]
pub(crate) struct WrittenSize(pub(crate) u64);

/// A whole number above zero.
#[derive(Clone, Copy)]
pub(crate) struct Count(pub(crate) u32);

/// A number without a unit.
#[derive(Clone, Copy)]
pub(crate) struct RawNumber(pub(crate) f64);

/// Converts seconds to a duration; `None` if negative or too long.
pub(crate) fn seconds(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value).ok().filter(|duration| *duration <= MAX_DURATION)
}

/// Parses a number with a unit, such as `1.5h`.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let unit_start = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(unit_start)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    Some(number.parse::<f64>().ok()? * factor)
}

fn duration(node: &Node, decoder: &mut Decoder<'_>) -> Option<Duration> {
    let in_seconds = match &node.value {
        Value::Number(text) => text.parse::<f64>().ok().map(|number| number / 1000.0),
        Value::String(text) => with_unit(text, DURATION_UNITS),
        _ => {
            decoder.wrong_type(node, "a number of milliseconds or a text such as \"30s\"");
            return None;
        }
    };
    let duration = in_seconds.and_then(seconds);
    if duration.is_none() {
        let expected =
            "milliseconds, or a text such as \"500ms\", \"30s\", \"5m\", \"1h\"; at most a week";
        out_of_range(node, decoder, "a duration", expected);
    }
    duration
}

fn out_of_range(node: &Node, decoder: &mut Decoder<'_>, what: &str, expected: &str) {
    let message = format!("{} is not {what} that can be used", decoder.subject());
    let found = decoder.error(Code::OutOfRange, node.span, message);
    decoder.push(found.label(format!("expected {expected}")));
}

fn duration_schema(minimum: u8) -> serde_json::Value {
    json!({ "anyOf": [
        { "type": "number", "minimum": minimum },
        { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(ms|s|m|min|h)$" },
    ] })
}

impl FromNode for WrittenDuration {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        duration(node, decoder).map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        duration_schema(0)
    }
}

impl FromNode for PositiveDuration {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let duration = duration(node, decoder)?;
        if duration.is_zero() {
            out_of_range(node, decoder, "a duration", "more than zero");
            return None;
        }
        Some(Self(duration))
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        duration_schema(1)
    }
}

impl FromNode for WrittenSize {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let bytes = match &node.value {
            Value::Number(text) => text.parse::<f64>().ok(),
            Value::String(text) => with_unit(text, SIZE_UNITS),
            _ => {
                decoder.wrong_type(node, "a number of bytes or a text such as \"5MiB\"");
                return None;
            }
        };
        let size = bytes.and_then(|bytes| whole(bytes, MAX_SIZE));
        if size.is_none() {
            let expected = "bytes, or a text such as \"512KiB\", \"5MiB\"; at most 2GiB";
            out_of_range(node, decoder, "a size", expected);
        }
        size.map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?([kKMG]B|[KMG]iB|B)$" },
        ] })
    }
}

impl FromNode for Count {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Value::Number(text) = &node.value else {
            decoder.wrong_type(node, "a whole number");
            return None;
        };
        let number = text.parse().ok().and_then(|number| whole(number, MAX_COUNT));
        let count = number.and_then(|number| u32::try_from(number).ok());
        if count.is_none() {
            out_of_range(node, decoder, "a count", "a whole number from 1 to 1000000");
        }
        count.map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "integer", "minimum": 1, "maximum": MAX_COUNT })
    }
}

impl FromNode for RawNumber {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Value::Number(text) = &node.value else {
            decoder.wrong_type(node, "a number");
            return None;
        };
        text.parse().ok().map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "number", "exclusiveMinimum": 0 })
    }
}

/// Converts a number to a whole number from one to `most`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the range is checked first, and all bounds are far below 2^53"
)]
fn whole(number: f64, most: u64) -> Option<u64> {
    let fits = number >= 1.0 && number <= most as f64 && number.fract() == 0.0;
    fits.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        for (text, expected) in [("1500ms", 1.5), ("30s", 30.0), ("1.5h", 5400.0), ("2 m", 120.0)] {
            assert_eq!(with_unit(text, DURATION_UNITS), Some(expected), "{text}");
        }
        assert_eq!(with_unit("5MiB", SIZE_UNITS), Some(5_242_880.0));
        for bad in ["", "s", "5", "5 parsecs", "1.2.3s", "-1s"] {
            assert_eq!(with_unit(bad, DURATION_UNITS), None, "{bad}");
        }
    }
}
