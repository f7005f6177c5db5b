//! Names that an agent was given and that nothing has (TOOL-6).

use super::View;
use crate::catalog::{Availability, Entry, Kind};
use crate::config::{AgentPattern, Suggestions};
use crate::name::ServerName;

/// A plain name among the patterns of an agent that nothing has.
#[derive(Clone, Debug)]
pub struct UnknownName<'v> {
    /// The pattern, and where it was written.
    pub pattern: &'v AgentPattern,
    /// The server that would have it.
    pub server: &'v ServerName,
    /// What may have been meant.
    pub suggestion: Option<&'v str>,
}

impl View {
    /// The plain names among the patterns of the agents that nothing has, although their servers are
    /// up. Names that belong to no server may be the embedding host's own.
    pub fn unknown_names(&self) -> Vec<UnknownName<'_>> {
        let patterns = self.caller.agents().filter_map(|(_, agent)| agent.tools.as_ref());
        let mut suggestions = Suggestions::default();
        let mut found = Vec::new();
        for pattern in patterns.flatten() {
            let Some(name) = pattern.pattern.plain_name() else { continue };
            let Some(server) = self.server_without(name) else { continue };
            let of_server = self.catalog.entries(Kind::Tool).iter();
            let of_server = of_server.filter(|entry| entry.server().name == *server);
            let suggestion = suggestions.nearest(name, of_server.map(Entry::exposed));
            found.push(UnknownName { pattern, server, suggestion });
        }
        found
    }

    /// The server that is up, should have something of a name, and has not.
    fn server_without(&self, name: &str) -> Option<&ServerName> {
        let spaces = self.catalog.namespaces();
        if spaces.is_reserved(name) || self.has(name) {
            return None;
        }
        let owner = spaces.owner(name)?;
        let server = self.catalog.servers().find(|server| server.name == *owner)?;
        (server.availability == Availability::Available).then_some(&server.name)
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
