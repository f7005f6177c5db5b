//! The last lines of a log.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;
use trunkline::config::escape_control;

/// Bytes at the end of the log that are searched for the last lines.
const MAX_TAIL: u64 = 1024 * 1024;

/// The last lines of the file at a path.
pub(crate) fn last_lines(path: &Path, count: usize) -> io::Result<Vec<String>> {
    last_lines_of(&mut File::open(path)?, count)
}

/// The last lines of a file, whose end is read next. Control characters are escaped.
pub(crate) fn last_lines_of(log: &mut File, count: usize) -> io::Result<Vec<String>> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines.iter().skip(lines.len().saturating_sub(count)).map(|it| escape_control(it)).collect())
}

/// A line of the log for people: the time, the level, the message, and the fields of event and spans.
pub(crate) fn readable(line: &str) -> String {
    let Ok(Value::Object(mut event)) = serde_json::from_str(line) else { return line.to_owned() };
    let mut text = |key: &str| match event.remove(key) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let (time, level, message) = (text("timestamp"), text("level"), text("message"));
    text("target");
    text("span");
    let spans = event.remove("spans");
    let mut shown = format!("{time} {level:5} {message}");
    let spans = spans.as_ref().and_then(Value::as_array).into_iter().flatten();
    let of_spans = spans.filter_map(Value::as_object).flatten();
    for (key, value) in event.iter().chain(of_spans.filter(|(key, _)| *key != "name")) {
        match value {
            Value::String(text) => shown.push_str(&format!(" {key}={text}")),
            other => shown.push_str(&format!(" {key}={other}")),
        }
    }
    escape_control(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_for_people() {
        let line = r#"{"timestamp":"2026-11-17T10:00:00Z","level":"INFO","outcome":"ok","message":"request finished","target":"t","span":{"name":"request"},"spans":[{"method":"tools/call","name":"request"}]}"#;
        let shown = "2026-11-17T10:00:00Z INFO  request finished outcome=ok method=tools/call";
        assert_eq!(readable(line), shown);
        assert_eq!(readable("a panic"), "a panic");
    }
}
