//! Determines whether a configuration text is JSON, TOML or YAML.

use super::source::Source;

/// The format of a configuration text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// JSON, with comments; also every text whose format is not clear.
    Json,
    Toml,
    Yaml,
}

impl TextFormat {
    /// The format of a source: by its first line if that is unambiguous, else by the extension of its name.
    /// Files of one format are found under any name.
    pub(crate) fn of(source: &Source) -> Self {
        let Some(line) = first_line(source.text()) else { return Self::of_name(source.name()) };
        if line.trim_start().starts_with(['{', '/']) {
            return Self::Json;
        }
        Self::of_line(line).unwrap_or_else(|| Self::of_name(source.name()))
    }

    fn of_name(name: &str) -> Self {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Json,
        }
    }

    /// The format of a text by its first line, if that is unambiguous.
    fn of_line(line: &str) -> Option<Self> {
        let is_assignment = line.split_once('=').is_some_and(|(key, _)| is_toml_key(key.trim()));
        if is_toml_table(line) || is_assignment {
            return Some(Self::Toml);
        }
        let is_mapping = line.split_once(':').is_some_and(|(key, value)| {
            is_key(key) && (value.is_empty() || value.starts_with(' '))
        });
        let is_marker = line == "---" || line.starts_with("- ") || line.starts_with("%YAML");
        (is_marker || is_mapping).then_some(Self::Yaml)
    }
}

/// The first line that is neither empty nor a comment.
fn first_line(text: &str) -> Option<&str> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().map(str::trim_end);
    lines.find(|line| !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("//"))
}

/// Whether a text is a key of TOML: `a`, `a.b`, `a."b c"`.
fn is_toml_key(text: &str) -> bool {
    let first = text.split(['.', '"', '\'']).next().unwrap_or(text).trim();
    is_key(first)
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

    fn format(name: &str, text: &str) -> TextFormat {
        TextFormat::of(&Source::new(name, text))
    }

    #[test]
    fn first_lines_tell_formats_apart() {
        for toml in [
            "[mcp_servers.time]\ncommand = \"x\"",
            "# c\n\nmodel = 'x'",
            "[[servers]]",
            "[mcp_servers.\"my server\"] # mine",
            "projects.\"/home/ann\".trust_level = \"trusted\"",
        ] {
            assert_eq!(format("mcp.json", toml), TextFormat::Toml, "{toml}");
        }
        for yaml in ["---\nmcpServers:", "mcpServers:\n  time:", "# c\nname: x", "- a"] {
            assert_eq!(format("mcp.json", yaml), TextFormat::Yaml, "{yaml}");
        }
        for other in
            ["", "{", "[]", "[1]", "[\"a\"]", "[true]", "[true]x", "\"a\": 1", "// x\n{}", "null"]
        {
            assert_eq!(format("mcp.json", other), TextFormat::Json, "{other}");
        }
    }

    #[test]
    fn a_name_decides_where_the_text_does_not() {
        assert_eq!(format("config.toml", "# nothing yet"), TextFormat::Toml);
        assert_eq!(format("a.yml", "\"mcpServers\": {}"), TextFormat::Yaml);
        assert_eq!(format("a.yaml", "{ \"mcpServers\": {} }"), TextFormat::Json);
    }
}
