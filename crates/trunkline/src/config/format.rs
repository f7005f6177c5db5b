//! Recognizes TOML and YAML in place of JSON, where advice about JSON syntax would not help.

use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::jsonc::{Node, Value};
use super::source::{Source, Span};

/// A configuration format of other hosts that is not supported here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignFormat {
    Toml,
    Yaml,
}

/// Reports a text that is TOML or YAML instead of a JSON object.
pub(super) fn foreign_format(source: &Arc<Source>, root: Option<&Node>) -> Option<Diagnostic> {
    if root.is_some_and(|root| matches!(root.value, Value::Object(_))) {
        return None;
    }
    let format = ForeignFormat::of(source.text())?.as_str();
    let message = format!("this is {format}, and a configuration is JSON");
    let start = source.text().len() - source.text().trim_start().len();
    let found = Diagnostic::new(Severity::Error, Code::Syntax, message);
    let help = "write the servers as `{ \"mcpServers\": { \"name\": { \"command\": \"…\" } } }`";
    Some(found.at(source, Span::new(start, start)).help(help))
}

impl ForeignFormat {
    /// Determines the format of a text if its first line is unambiguous.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = text.lines().map(str::trim_end);
        let line = lines.find(|line| !line.trim().is_empty() && !line.starts_with(['#', '/']))?;
        if is_toml_table(line) || line.split_once('=').is_some_and(|(key, _)| is_key(key.trim())) {
            return Some(Self::Toml);
        }
        let is_mapping = line.split_once(':').is_some_and(|(key, value)| {
            is_key(key) && (value.is_empty() || value.starts_with(' '))
        });
        (line == "---" || line.starts_with("- ") || is_mapping).then_some(Self::Yaml)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        }
    }
}

/// Whether a line is a table header: `[a.b]`, `[[a]]`, `[a."b c"]`. The only bare words in a JSON
/// array are `true`, `false` and `null`.
fn is_toml_table(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or(line).trim_end();
    let inner = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    let Some(inner) = inner.map(|it| it.trim_matches(['[', ']'])) else { return false };
    let first = inner.split(['.', '"']).next().unwrap_or(inner).trim();
    let is_json = matches!(first, "true" | "false" | "null");
    first.starts_with(|first: char| first.is_ascii_alphabetic()) && is_key(first) && !is_json
}

fn is_key(text: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_tell_formats_apart() {
        for toml in [
            "[mcp_servers.time]\ncommand = \"x\"",
            "# c\n\nmodel = 'x'",
            "[[servers]]",
            "[mcp_servers.\"my server\"] # mine",
        ] {
            assert_eq!(ForeignFormat::of(toml), Some(ForeignFormat::Toml), "{toml}");
        }
        for yaml in ["---\nmcpServers:", "mcpServers:\n  time:", "# c\nname: x", "- a"] {
            assert_eq!(ForeignFormat::of(yaml), Some(ForeignFormat::Yaml), "{yaml}");
        }
        for other in
            ["", "{", "[]", "[1]", "[\"a\"]", "[true]", "[true]x", "\"a\": 1", "// x\n{}", "null"]
        {
            assert_eq!(ForeignFormat::of(other), None, "{other}");
        }
    }
}
