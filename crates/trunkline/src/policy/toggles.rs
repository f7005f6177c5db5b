//! Which servers one conversation uses (TOOL-9).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::config::{ConversationToggles, Location};
use crate::name::ServerName;

/// Whether a server is used in one conversation (TOOL-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Toggle {
    /// As the configuration says.
    On,
    /// Not at all.
    Off,
}

/// Which servers are switched off in one conversation. None is, to begin with; what the
/// configuration switches off stays off.
///
/// To be kept, they are written as `{"servers": {"github": false}}`; what
/// [`parse_toggles`](crate::config::parse_toggles) reads of that also knows where each
/// was written.
#[derive(Clone, Debug, Default)]
pub struct Toggles {
    servers: BTreeMap<ServerName, Toggle>,
    /// Whether servers without a switch are off: switches that cannot be read may be theirs.
    has_unreadable: bool,
    places: BTreeMap<ServerName, Location>,
}

impl Toggles {
    /// Switches a server on or off.
    pub fn set(&mut self, server: &ServerName, switch: Toggle) {
        self.servers.insert(server.clone(), switch);
        self.places.remove(server);
    }

    /// How a server is switched.
    pub fn get(&self, server: &ServerName) -> Toggle {
        let other = if self.has_unreadable { Toggle::Off } else { Toggle::On };
        self.servers.get(server).copied().unwrap_or(other)
    }

    /// Where a switch was written, if it was read.
    pub fn location(&self, server: &ServerName) -> Option<&Location> {
        self.places.get(server)
    }

    /// Every switch that was ever used.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, Toggle)> {
        self.servers.iter().map(|(server, switch)| (server, *switch))
    }

    /// As they are kept.
    pub fn to_json(&self) -> Value {
        let switch = |(server, switch): (&ServerName, Toggle)| {
            (server.as_str().to_owned(), Value::from(switch == Toggle::On))
        };
        json!({ "servers": self.iter().map(switch).collect::<serde_json::Map<_, _>>() })
    }
}

impl PartialEq for Toggles {
    /// Where they were written makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.servers == other.servers && self.has_unreadable == other.has_unreadable
    }
}

impl Eq for Toggles {}

impl From<&ConversationToggles> for Toggles {
    /// Where the conversation has errors, every server is off.
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
