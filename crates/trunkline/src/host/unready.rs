//! Servers whose items are not known or cannot be used now. An answer names them: without them, a
//! model takes a server that is starting for one that has nothing.

use std::collections::BTreeSet;
use std::fmt;

use super::Host;
use crate::catalog::{Availability, CatalogServer, ItemKind};
use crate::config::{Trust, escape_control};
use crate::name::ServerName;
use crate::policy::{Disclosure, Rule};
use crate::view::View;

/// Unready servers that one answer names.
const MAX_NAMED_SERVERS: usize = 20;

/// Characters of the reason why a server is down.
const MAX_REASON_CHARS: usize = 160;

/// The unready servers that a caller may know, sorted by name.
pub(super) struct UnreadyServers(Vec<UnreadyServer>);

/// A server whose items are not known or cannot be used now.
pub(super) struct UnreadyServer {
    name: ServerName,
    condition: UnreadyCondition,
}

enum UnreadyCondition {
    /// Its lists have not arrived yet.
    NotListed,
    /// It is down; the reason, if the caller may know it.
    Down(Option<String>),
}

impl UnreadyServers {
    /// The servers whose tools are not known or cannot be called.
    pub(super) fn of_tools(view: &View) -> Self {
        let denied = denied_servers(view);
        Self::select(view, |server| match &server.availability {
            // The caller learns of a server with known lists only through the tools that it would see.
            Availability::Down(reason) if server.are_tools_listed => {
                let is_denied = denied.contains(&server.name);
                is_denied.then(|| UnreadyCondition::Down(told_reason(view, server, reason, true)))
            }
            Availability::Down(reason) => {
                Some(UnreadyCondition::Down(told_reason(view, server, reason, false)))
            }
            Availability::Available => {
                (!server.are_tools_listed).then_some(UnreadyCondition::NotListed)
            }
        })
    }

    /// The servers whose resources or prompts are not known or cannot be used.
    pub(super) fn of_items(host: &Host, view: &View, kinds: &[ItemKind]) -> Self {
        let is_unlisted = |server: &CatalogServer| match kinds {
            [ItemKind::Prompt] => {
                let connection = host.servers().get(server.name.as_str());
                let is_unknown = |kind| {
                    let found = connection.as_ref();
                    found.is_none_or(|it| it.offers(kind) && !it.is_loaded(kind))
                };
                server.has_unasked_names && is_unknown(ItemKind::Prompt)
            }
            _ => server.has_unasked_resources,
        };
        Self::select(view, |server| match &server.availability {
            Availability::Down(reason) => {
                Some(UnreadyCondition::Down(told_reason(view, server, reason, false)))
            }
            Availability::Available => is_unlisted(server).then_some(UnreadyCondition::NotListed),
        })
    }

    fn select(view: &View, condition: impl Fn(&CatalogServer) -> Option<UnreadyCondition>) -> Self {
        let visible = view.catalog().servers().filter(|it| view.could_contain(&it.name));
        let unready = visible.filter_map(|server| {
            Some(UnreadyServer { name: server.name.clone(), condition: condition(server)? })
        });
        Self(unready.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&UnreadyServer> {
        self.0.iter().find(|server| server.name.as_str() == name)
    }

    /// The line that names them; `None` if there are none.
    pub(super) fn note(&self) -> Option<String> {
        let named = self.0.iter().take(MAX_NAMED_SERVERS).map(|server| match &server.condition {
            UnreadyCondition::NotListed => format!("{} (not ready yet)", server.name),
            UnreadyCondition::Down(None) => server.name.to_string(),
            UnreadyCondition::Down(Some(reason)) => format!("{} ({reason})", server.name),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match self.0.len().saturating_sub(MAX_NAMED_SERVERS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let note = format!("unavailable servers: {named}{more}; call again later to find more");
        (!self.is_empty()).then_some(note)
    }
}

impl UnreadyServer {
    pub(super) fn name(&self) -> &ServerName {
        &self.name
    }
}

impl fmt::Display for UnreadyServer {
    /// Its condition, without its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.condition {
            UnreadyCondition::NotListed => f.write_str("not ready yet"),
            UnreadyCondition::Down(None) => f.write_str("unavailable now"),
            UnreadyCondition::Down(Some(reason)) => write!(f, "unavailable now ({reason})"),
        }
    }
}

/// The servers with tools that the caller would see if they were up.
fn denied_servers(view: &View) -> BTreeSet<ServerName> {
    let is_concerned = |server: &CatalogServer| {
        server.are_tools_listed && matches!(server.availability, Availability::Down(_))
    };
    // The scan of all tools is needed only then.
    if !view.catalog().servers().any(is_concerned) {
        return BTreeSet::new();
    }
    let hidden = view.hidden(ItemKind::Tool);
    let denied = hidden.filter(|(_, reason)| reason.rule() == Rule::Available);
    denied.map(|(entry, _)| entry.server().name.clone()).collect()
}

/// The reason why a server is down, if the caller may know it. A caller that would see one of its
/// items gets it with every call. That of an untrusted server may be text of the server, which a
/// model would follow.
fn told_reason(
    view: &View,
    server: &CatalogServer,
    reason: &str,
    has_visible_item: bool,
) -> Option<String> {
    let caller = view.caller();
    let may_know =
        has_visible_item || caller.is_unlimited() || caller.disclosure() == Disclosure::Reasons;
    let is_trusted = view.rules().trust(&server.name) == Trust::Trusted;
    let line = reason.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().take(MAX_REASON_CHARS).collect();
    (may_know && is_trusted && !line.is_empty()).then(|| escape_control(&line))
}
