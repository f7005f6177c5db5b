//! Endpoints of a gateway and the configuration entry for clients.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use trunkline::config::{Config, escape_control};

use crate::config::load::Agents;

/// The agents and bundles that have an endpoint of their own.
pub(crate) struct ClientEndpoints {
    agents: Vec<String>,
    bundles: Vec<String>,
}

impl ClientEndpoints {
    /// The endpoints of a configuration.
    pub(crate) fn new(config: &Config, agents: &Agents) -> Self {
        let agents = agents.iter().filter(|(_, agent)| !agent.is_disabled);
        let agents = agents.map(|(name, _)| name.as_str().to_owned()).collect();
        let bundles = config.bundles().map(|(name, _)| name.as_str().to_owned()).collect();
        Self { agents, bundles }
    }

    /// All endpoints of a gateway as JSON.
    pub(crate) fn as_json(&self, url: &str) -> Value {
        let all = |what: &str, names: &[String]| {
            let addresses = names.iter().map(|name| (name.clone(), of(url, what, name).into()));
            Value::Object(Map::from_iter(addresses))
        };
        let (agents, bundles) = (all("agents", &self.agents), all("bundles", &self.bundles));
        json!({ "url": url, "scopes": { "agents": agents, "bundles": bundles } })
    }

    /// The endpoints of agents and bundles, one per line.
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

/// An entry for the configuration file of a client.
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

/// Percent-encodes a name as a path segment.
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
