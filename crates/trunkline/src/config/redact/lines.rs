//! Finds the parts of a TOML or YAML text that messages must not quote.
//!
//! Works line by line, because the lines most often quoted are those that could not be parsed. Shows plain
//! keys and table headers, and values of few keys that look harmless. Hides everything else.

use super::spans::is_quantity;
use super::{RedactionInput, argument, is_plain};
use crate::config::source::Span;

/// Keys whose values are words, names or programs.
const WORDS: &[&str] = &["type", "command", "cmd", "cwd", "name"];

/// Keys whose values are URLs.
const ADDRESSES: &[&str] = &["url", "uri"];

/// Keys whose values are quantities or switches.
const QUANTITIES: &[&str] = &[
    "enabled",
    "disabled",
    "timeout",
    "initTimeout",
    "connectionTimeout",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
];

/// All parts of a TOML or YAML text that must not be shown, in order.
pub(crate) fn sensitive_lines(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let shown = shown_length(content);
        if shown < content.len() {
            found.push(Span::new(start + shown, start + content.len()));
        }
        start += line.len();
    }
    found
}

/// The number of bytes at the start of a line that may be shown.
fn shown_length(line: &str) -> usize {
    let content = line.trim_start().trim_start_matches("- ").trim_start();
    let indent = line.len() - content.len();
    if content.starts_with('[') {
        let end = content.rfind(']').map_or(0, |end| end + 1);
        let is_table = content[..end]
            .split(['[', ']', '.', '"', '\''])
            .all(|it| it.is_empty() || is_plain(it));
        let is_header =
            is_table && !content[..end].contains(',') && content[end..].trim().is_empty();
        return if is_header { line.len() } else { indent };
    }
    let Some(separator) = content.find(['=', ':']) else { return indent };
    let key = content[..separator].trim().trim_matches(['"', '\'']);
    if !is_plain(key) {
        return indent;
    }
    let value = content[separator + 1..].trim();
    if is_shown(key, value.trim_matches(['"', '\''])) {
        return line.len();
    }
    indent + separator + 1
}

/// Whether the value of a key may be shown unchanged.
fn is_shown(key: &str, value: &str) -> bool {
    if value.contains(":-") {
        return false; // The default of a reference is as secret as its value.
    }
    let is_harmless = || argument(&RedactionInput::of_text(value)) == value;
    let is_word = is_plain(value) && !value.contains(' ');
    (WORDS.contains(&key) && is_word && is_harmless())
        || (ADDRESSES.contains(&key) && value.contains("://") && is_harmless())
        || (QUANTITIES.contains(&key) && (is_quantity(value) || matches!(value, "true" | "false")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut shown = String::new();
        let mut at = 0;
        for span in sensitive_lines(text) {
            shown += text.get(at..span.start()).unwrap();
            shown += "***";
            at = span.end();
        }
        shown + text.get(at..).unwrap()
    }

    #[test]
    fn values_are_hidden_and_keys_are_not() {
        let text = "# sesame\n[mcp_servers.docs]\ncommand = \"npx\"\nenv = { K = \"sesame\" }\n";
        assert_eq!(shown(text), "***\n[mcp_servers.docs]\ncommand = \"npx\"\nenv =***\n");
        let text = "a:\n  - url: https://x.example/mcp?token=sesame\n    timeout: 30\n    sesame\n";
        assert_eq!(shown(text), "a:\n  - url:***\n    timeout: 30\n    ***\n");
    }

    #[test]
    fn lists_and_credentials_as_keys_are_hidden() {
        for line in [
            "[\"sesame\", \"b\"]",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789: x",
            "c2VzYW1lb3BlbjEyMzQ1Njc4OTAxMjM0NTY3ODk==",
        ] {
            assert_eq!(shown(line), "***", "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn spans_are_in_order(text in "[a=:\\[\\]#'\" \n\t1é-]{0,60}") {
            let mut at = 0;
            for span in sensitive_lines(&text) {
                proptest::prop_assert!(at <= span.start() && text.get(span.range()).is_some());
                at = span.end();
            }
        }
    }
}
