//! Names that an agent was given and that nothing has (TOOL-6).

use super::View;
use crate::catalog::{Availability, CatalogServer, Entry, Kind};
use crate::config::{AgentPattern, Suggestions};
use crate::name::ServerName;

/// A plain name among the patterns of an agent that nothing has.
#[derive(Clone, Debug)]
pub struct UnknownName<'v> {
    /// The pattern, and where it was written.
    pub pattern: &'v AgentPattern,
    /// The server that would have it; absent if it begins like the names of none.
    pub server: Option<&'v ServerName>,
    /// What may have been meant.
    pub suggestion: Option<&'v str>,
}

impl View {
    /// The plain names among the patterns of the agents that nothing has, although their servers are
    /// up, and that the embedding host does not have itself. A name that begins like those of no server
    /// is among them once every server is up.
    pub fn unknown_names(&self) -> Vec<UnknownName<'_>> {
        let patterns = self.caller.agents().filter_map(|(_, agent)| agent.tools.as_ref());
        let mut suggestions = Suggestions::default();
        let mut found = Vec::new();
        for pattern in patterns.flatten() {
            let Some(name) = pattern.pattern.plain_name() else { continue };
            let Some(server) = self.owner_without(name) else { continue };
            let tools = self.catalog.entries(Kind::Tool).iter();
            let is_of = |entry: &&Entry| server.is_none_or(|it| entry.server().name == *it);
            let suggestion = suggestions.nearest(name, tools.filter(is_of).map(Entry::exposed));
            found.push(UnknownName { pattern, server, suggestion });
        }
        found
    }

    /// The server that is up, should have something of a name, and has not; nothing inside if no server
    /// should, and all are up.
    fn owner_without(&self, name: &str) -> Option<Option<&ServerName>> {
        let spaces = self.catalog.namespaces();
        if spaces.is_reserved(name) || self.has(name) {
            return None;
        }
        let is_up = |server: &CatalogServer| server.availability == Availability::Available;
        let Some(owner) = spaces.owner(name) else {
            let mut servers = self.catalog.servers().peekable();
            return (servers.peek().is_some() && servers.all(is_up)).then_some(None);
        };
        let server = self.catalog.servers().find(|server| server.name == *owner)?;
        is_up(server).then_some(Some(&server.name))
    }

    /// Whether a tool has this name, or would have it if it were not too long.
    fn has(&self, name: &str) -> bool {
        self.catalog.get(Kind::Tool, name).is_some()
            || self.catalog.entries(Kind::Tool).iter().any(|entry| {
                entry.adjusted().is_some_and(|adjusted| {
                    !adjusted.reason.is_ambiguous() && *adjusted.plain == *name
                })
            })
    }
}
