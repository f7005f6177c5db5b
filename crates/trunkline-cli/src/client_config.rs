//! What clients are told about a gateway: where it is, and what to write into their configuration.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use trunkline::config::{Config, escape_control};

use crate::load::Agents;

/// What has an address of its own beside that for everything.
pub(crate) struct ClientEndpoints {
    agents: Vec<String>,
    bundles: Vec<String>,
}

impl ClientEndpoints {
    /// What has one in a configuration.
    pub(crate) fn new(config: &Config, agents: &Agents) -> Self {
        let agents = agents.iter().filter(|(_, agent)| !agent.is_disabled);
        let agents = agents.map(|(name, _)| name.as_str().to_owned()).collect();
        let bundles = config.bundles().map(|(name, _)| name.as_str().to_owned()).collect();
        Self { agents, bundles }
    }

    /// All addresses of a gateway for a program.
    pub(crate) fn as_json(&self, url: &str) -> Value {
        let all = |what: &str, names: &[String]| {
            let addresses = names.iter().map(|name| (name.clone(), of(url, what, name).into()));
            Value::Object(Map::from_iter(addresses))
        };
        let (agents, bundles) = (all("agents", &self.agents), all("bundles", &self.bundles));
        json!({ "url": url, "scopes": { "agents": agents, "bundles": bundles } })
    }

    /// The addresses of agents and bundles, one a line.
    pub(crate) fn scopes_as_text(&self, url: &str) -> String {
        let mut text = String::new();
        for (one, what, names) in
            [("agent", "agents", &self.agents), ("bundle", "bundles", &self.bundles)]
        {
            for name in names {
                let _ = writeln!(text, "  {one} {}: {}", escape_control(name), of(url, what, name));
            }
        }
        text
    }
}

fn of(url: &str, what: &str, name: &str) -> String {
    format!("{url}/{what}/{}", encoded(name))
}

/// An entry for the configuration of a client, as somebody would write it.
pub(crate) fn client_entry(url: &str, needs_token: bool) -> String {
    let url = Value::from(url);
    let headers = match needs_token {
        true => r#", "headers": { "Authorization": "Bearer TOKEN" }"#,
        false => "",
    };
    format!(
        r#"{{
  "mcpServers": {{
    "trunkline": {{ "type": "http", "url": {url}{headers} }}
  }}
}}
"#
    )
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_can_be_part_of_an_address() {
        assert_eq!(encoded("reader-1.x"), "reader-1.x");
        assert_eq!(encoded("a b/ü?"), "a%20b%2F%C3%BC%3F");
    }
}
