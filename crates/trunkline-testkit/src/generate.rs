//! Generates configurations of any size.

use std::fmt::Write as _;

/// Quality of the entries of a generated configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// All valid.
    Good,
    /// Each with a mistake.
    Bad,
}

/// A configuration with this number of servers, half of them remote, one line each.
pub fn configuration(servers: usize, entries: Entries) -> String {
    let mut text = String::from("{ \"mcpServers\": {\n");
    for index in 0..servers {
        let comma = if index + 1 == servers { "" } else { "," };
        let _ = writeln!(text, "  {}{comma}", server(index, entries));
    }
    text + "} }\n"
}

/// The same configuration on a single line, as programs write it.
pub fn on_one_line(configuration: &str) -> String {
    configuration.replace('\n', " ")
}

fn server(index: usize, entries: Entries) -> String {
    match (entries, index % 2) {
        (Entries::Good, 0) => format!(
            r#""server-{index}": {{ "command": "npx", "args": ["-y", "package-{index}@1.2.3", "--port", "{index}"], "env": {{ "API_KEY": "${{API_KEY_{index}}}", "LOG": "info" }} }}"#
        ),
        (Entries::Good, _) => format!(
            r#""server-{index}": {{ "type": "http", "url": "https://host-{index}.example.com/mcp", "headers": {{ "Authorization": "Bearer ${{TOKEN_{index}}}" }}, "timeout": 30000 }}"#
        ),
        (Entries::Bad, 0) => format!(
            r#""server-{index}": {{ "comand": "npx", "args": "-y", "env": {{ "API_KEY": "literal-{index}" }} }}"#
        ),
        (Entries::Bad, _) => {
            format!(r#""server-{index}": {{ "command": "x", "url": "not an address" }}"#)
        }
    }
}
