//! Toggles that switch servers on or off for one conversation (TOOL-9).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::config::{ConversationToggles, Location};
use crate::name::ServerName;

/// Whether a server is on in one conversation (TOOL-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Toggle {
    /// As configured.
    On,
    /// Off in this conversation.
    Off,
}

/// The toggles of one conversation. By default no server is switched off; a server that is disabled
/// in the configuration stays disabled.
///
/// Stored as `{"servers": {"github": false}}`; toggles from
/// [`parse_toggles`](crate::config::parse_toggles) also have locations.
#[derive(Clone, Debug, Default)]
pub struct Toggles {
    servers: BTreeMap<ServerName, Toggle>,
    /// Whether servers without a toggle are off, because unreadable toggles may be theirs.
    has_unreadable: bool,
    places: BTreeMap<ServerName, Location>,
}

impl Toggles {
    /// Switches a server on or off.
    pub fn set(&mut self, server: &ServerName, switch: Toggle) {
        self.servers.insert(server.clone(), switch);
        self.places.remove(server);
    }

    /// The toggle of a server.
    pub fn get(&self, server: &ServerName) -> Toggle {
        let other = if self.has_unreadable { Toggle::Off } else { Toggle::On };
        self.servers.get(server).copied().unwrap_or(other)
    }

    /// The location of a toggle, if it was parsed.
    pub fn location(&self, server: &ServerName) -> Option<&Location> {
        self.places.get(server)
    }

    /// All explicit toggles.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, Toggle)> {
        self.servers.iter().map(|(server, switch)| (server, *switch))
    }

    /// The stored form.
    pub fn to_json(&self) -> Value {
        let switch = |(server, switch): (&ServerName, Toggle)| {
            (server.as_str().to_owned(), Value::from(switch == Toggle::On))
        };
        json!({ "servers": self.iter().map(switch).collect::<serde_json::Map<_, _>>() })
    }
}

impl PartialEq for Toggles {
    /// Ignores locations.
    fn eq(&self, other: &Self) -> bool {
        self.servers == other.servers && self.has_unreadable == other.has_unreadable
    }
}

impl Eq for Toggles {}

impl From<&ConversationToggles> for Toggles {
    /// If the conversation has errors, every server is off.
    fn from(conversation: &ConversationToggles) -> Self {
        let has_unreadable = conversation.diagnostics.iter().any(|found| found.is_error(false));
        let mut switches = Self { has_unreadable, ..Self::default() };
        let usable = conversation.servers.iter().filter(|(_, it)| !(has_unreadable && it.is_on));
        for (server, written) in usable {
            switches.set(server, if written.is_on { Toggle::On } else { Toggle::Off });
            switches.places.insert(server.clone(), written.location.clone());
        }
        switches
    }
}
