//! Toggles that switch servers, tools and prompts on or off for one conversation (TOOL-9).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::config::{ConversationToggles, Location};
use crate::item::ItemKind;
use crate::name::ServerName;

/// Whether a server, tool or prompt is on in one conversation (TOOL-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Toggle {
    /// As configured.
    On,
    /// Off in this conversation.
    Off,
}

/// The toggles of one conversation. By default nothing is switched off; a server that is disabled in the
/// configuration stays disabled, and an item of a server that is off is off.
///
/// Stored as `{"servers": {"github": false}, "tools": {"time_now": false}}`; toggles from
/// [`parse_toggles`](crate::config::parse_toggles) also have locations.
#[derive(Clone, Debug, Default)]
pub struct Toggles {
    servers: BTreeMap<ServerName, Toggle>,
    /// Toggles of items, by kind and exposed name.
    items: BTreeMap<(ItemKind, Box<str>), Toggle>,
    /// Whether servers without a toggle are off, because unreadable toggles may be theirs.
    has_unreadable: bool,
    places: BTreeMap<ServerName, Location>,
    item_places: BTreeMap<(ItemKind, Box<str>), Location>,
}

/// The kinds of items that have toggles, with their keys in the stored form.
const ITEM_KEYS: [(ItemKind, &str); 2] = [(ItemKind::Tool, "tools"), (ItemKind::Prompt, "prompts")];

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

    /// Switches a tool or a prompt on or off, by its exposed name. Other items have no toggles.
    pub fn set_item(&mut self, kind: ItemKind, exposed: &str, switch: Toggle) {
        if ITEM_KEYS.iter().any(|(it, _)| *it == kind) {
            let key = (kind, exposed.into());
            self.item_places.remove(&key);
            self.items.insert(key, switch);
        }
    }

    /// The toggle of an item, regardless of its server.
    pub fn get_item(&self, kind: ItemKind, exposed: &str) -> Toggle {
        // Most conversations switch no item, and the policy asks for each one.
        if self.items.is_empty() {
            return Toggle::On;
        }
        self.items.get(&(kind, exposed.into())).copied().unwrap_or(Toggle::On)
    }

    /// The location of the toggle of an item, if it was parsed.
    pub fn item_location(&self, kind: ItemKind, exposed: &str) -> Option<&Location> {
        self.item_places.get(&(kind, exposed.into()))
    }

    /// All explicit toggles of items, with their exposed names.
    pub fn items(&self) -> impl Iterator<Item = (ItemKind, &str, Toggle)> {
        self.items.iter().map(|((kind, exposed), switch)| (*kind, &**exposed, *switch))
    }

    /// Toggles that could not be read, so that every server is off.
    pub(super) fn unreadable() -> Self {
        Self { has_unreadable: true, ..Self::default() }
    }

    /// Whether some toggles could not be read.
    pub(super) fn is_unreadable(&self) -> bool {
        self.has_unreadable
    }

    /// Adds other toggles, which go over these.
    pub(super) fn extend(&mut self, other: &Self) {
        other.iter().for_each(|(server, switch)| self.set(server, switch));
        other.items().for_each(|(kind, exposed, switch)| self.set_item(kind, exposed, switch));
        self.places.extend(other.places.clone());
        self.item_places.extend(other.item_places.clone());
        self.has_unreadable |= other.has_unreadable;
    }

    /// The same toggles without locations, for those that no user wrote.
    #[must_use]
    pub fn without_locations(self) -> Self {
        Self { places: BTreeMap::new(), item_places: BTreeMap::new(), ..self }
    }

    /// Forgets the toggle of a server, so that the project or the configuration decides.
    pub fn unset(&mut self, server: &ServerName) {
        self.servers.remove(server);
        self.places.remove(server);
    }

    /// Forgets the toggle of an item, so that the project or the configuration decides.
    pub fn unset_item(&mut self, kind: ItemKind, exposed: &str) {
        let key = (kind, exposed.into());
        self.items.remove(&key);
        self.item_places.remove(&key);
    }

    /// Whether there is no toggle at all, not even one that is on.
    pub fn has_none(&self) -> bool {
        self.servers.is_empty() && self.items.is_empty() && !self.has_unreadable
    }

    /// Whether everything is on.
    pub fn is_empty(&self) -> bool {
        let mut all = self.servers.values().chain(self.items.values());
        !self.has_unreadable && all.all(|switch| *switch == Toggle::On)
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
        let servers = self.iter().map(switch).collect::<serde_json::Map<_, _>>();
        let mut stored = json!({ "servers": servers });
        for (kind, key) in ITEM_KEYS {
            let items = self.items().filter(|(it, ..)| *it == kind);
            let items: serde_json::Map<_, _> = items
                .map(|(_, name, switch)| (name.to_owned(), (switch == Toggle::On).into()))
                .collect();
            if !items.is_empty() {
                stored[key] = items.into();
            }
        }
        stored
    }
}

impl PartialEq for Toggles {
    /// Ignores locations.
    fn eq(&self, other: &Self) -> bool {
        self.servers == other.servers
            && self.items == other.items
            && self.has_unreadable == other.has_unreadable
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
        for (kind, written) in
            [(ItemKind::Tool, &conversation.tools), (ItemKind::Prompt, &conversation.prompts)]
        {
            for (exposed, written) in written {
                let switch = if written.is_on { Toggle::On } else { Toggle::Off };
                switches.set_item(kind, exposed, switch);
                switches.item_places.insert((kind, exposed.clone()), written.location.clone());
            }
        }
        switches
    }
}
