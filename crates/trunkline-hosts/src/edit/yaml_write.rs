//! Writes values as lines of YAML: objects as block mappings, and arrays in one line.

use serde_json::Value;

use super::fields;
use super::json_edit::quote;

/// Plain words that some YAML parser reads as something else than a text.
const RESERVED_WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// The lines of a key and its value, indented by `indent` and then by `step` per level.
pub(crate) fn member(key: &str, value: &Value, indent: usize, step: usize) -> Vec<String> {
    let start = format!("{}{}:", " ".repeat(indent), word(key));
    match value {
        Value::Object(object) if !object.is_empty() => {
            let inner = fields::in_order(object).into_iter();
            let inner = inner.flat_map(|(key, value)| member(key, value, indent + step, step));
            [start].into_iter().chain(inner).collect()
        }
        value => vec![format!("{start} {}", flow(value))],
    }
}

/// The lines of an item of a list.
pub(crate) fn item(value: &Value, indent: usize, step: usize) -> Vec<String> {
    // Items nest by the width of `- `, whatever the step is.
    let fields = value.as_object().map(fields::in_order).unwrap_or_default().into_iter();
    let lines = fields.flat_map(|(key, value)| member(key, value, indent + 2, step));
    let dashed = |(index, line): (usize, String)| match index {
        0 => format!("{}- {}", " ".repeat(indent), line.trim_start()),
        _ => line,
    };
    lines.enumerate().map(dashed).collect()
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        // JSON is YAML, apart from characters that the check after the edit finds.
        other => other.to_string(),
    }
}

/// A text, in quotes unless it is plainly a word.
fn word(text: &str) -> String {
    let starts_plain = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
    let is_reserved = RESERVED_WORDS.iter().any(|it| it.eq_ignore_ascii_case(text));
    if starts_plain && text.chars().all(is_plain) && !is_reserved {
        text.to_owned()
    } else {
        quote(text)
    }
}
