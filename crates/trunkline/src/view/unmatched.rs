//! Names in agents' patterns and in lists that match no item (TOOL-6).

use std::collections::{BTreeMap, HashSet};

use super::View;
use crate::catalog::{Availability, CatalogServer, Entry, ItemKind};
use crate::config::{AgentPattern, Location, Suggestions};
use crate::name::{AgentName, BundleName, ServerName};
use crate::policy::ListEntry;

/// A plain name among the patterns of an agent that no item has.
#[derive(Clone, Debug)]
pub struct UnmatchedName<'v> {
    /// The agent.
    pub agent: &'v AgentName,
    /// The pattern with its location.
    pub pattern: &'v AgentPattern,
    /// The server that the prefix belongs to, if any.
    pub server: Option<&'v ServerName>,
    /// The name that was probably meant.
    pub suggestion: Option<&'v str>,
}

/// An entry of `allowTools` or `denyTools` that matches no item of its server.
#[derive(Clone, Debug)]
pub struct UnmatchedListEntry<'v> {
    /// The entry as written.
    pub entry: &'v str,
    /// The key of the list: `allowTools` or `denyTools`.
    pub key: &'static str,
    /// The server.
    pub server: &'v ServerName,
    /// The bundle of the list; `None` for the server's own.
    pub bundle: Option<&'v BundleName>,
    /// Location of the list.
    pub location: Option<&'v Location>,
    /// The upstream name that was probably meant.
    pub suggestion: Option<&'v str>,
    /// Whether the entry is, or matches, an exposed name; lists contain upstream names.
    pub is_exposed_name: bool,
    /// Whether the prompts of the server are known. If not, the entry may be the name of one.
    pub are_prompts_known: bool,
}

impl View {
    /// The plain names among the agents' patterns that no item has, although their servers are up,
    /// and that the embedding host does not reserve. A name with the prefix of no server is
    /// included once every server is up.
    pub fn unmatched_names(&self) -> Vec<UnmatchedName<'_>> {
        let agents = self.caller.agents();
        let patterns = agents.flat_map(|(name, agent)| {
            agent.tools.iter().flatten().map(move |pattern| (name, pattern))
        });
        let mut suggestions = Suggestions::default();
        let mut found = Vec::new();
        for (agent, pattern) in patterns {
            let Some(name) = pattern.pattern.plain_name() else { continue };
            let Some(server) = self.owner_without(name) else { continue };
            let tools = self.catalog.entries(ItemKind::Tool).iter();
            let is_of = |entry: &&Entry| server.is_none_or(|it| entry.server().name == *it);
            let suggestion = suggestions.nearest(name, tools.filter(is_of).map(Entry::exposed));
            found.push(UnmatchedName { agent, pattern, server, suggestion });
        }
        found
    }

    /// The entries of `allowTools` and `denyTools`, of servers and of bundles, that match no item
    /// of their server, once its tools are known. Patterns are included only if they match exposed
    /// names and no upstream name. URIs are not: a server may have resources that it does not list.
    pub fn unmatched_list_entries(&self) -> Vec<UnmatchedListEntry<'_>> {
        let mut known: BTreeMap<&ServerName, ServerNames<'_>> = BTreeMap::new();
        let mut suggestions = Suggestions::default();
        let mut found = Vec::new();
        for entry in self.rules.list_entries() {
            let names =
                known.entry(entry.server).or_insert_with(|| ServerNames::of(self, entry.server));
            found.extend(names.unknown(&entry, &mut suggestions));
        }
        found
    }

    /// The servers with list entries whose prompts (or tools) were not requested yet: an entry may
    /// be the name of one.
    pub fn servers_with_open_list_entries(&self) -> Vec<ServerName> {
        let with_lists: HashSet<_> = self.rules.list_entries().iter().map(|it| it.server).collect();
        let is_open =
            |server: &&CatalogServer| server.has_unasked_names && with_lists.contains(&server.name);
        self.catalog.servers().filter(is_open).map(|server| server.name.clone()).collect()
    }

    /// The server that is up and owns the prefix of a name that no item has. The inner `None` means
    /// that no server owns it, and all are up.
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

    /// Whether a tool has this name, or would have it without the length limit.
    fn has(&self, name: &str) -> bool {
        self.catalog.get(ItemKind::Tool, name).is_some()
            || self.catalog.entries(ItemKind::Tool).iter().any(|entry| {
                entry.adjustment().is_some_and(|adjusted| {
                    !adjusted.reason.is_ambiguous() && *adjusted.plain == *name
                })
            })
    }
}

/// The tools and prompts of one server; empty if they are not known.
struct ServerNames<'v> {
    entries: Vec<&'v Entry>,
    names: HashSet<&'v str>,
    is_known: bool,
    are_prompts_known: bool,
}

impl<'v> ServerNames<'v> {
    fn of(view: &'v View, server: &ServerName) -> Self {
        let found = view.catalog.servers().find(|it| it.name == *server);
        let found = found.filter(|it| it.availability == Availability::Available);
        let are_prompts_known = found.is_some_and(|it| !it.has_unasked_names);
        let is_known = are_prompts_known || found.is_some_and(|it| it.are_tools_listed);
        let all = [ItemKind::Tool, ItemKind::Prompt].map(|kind| view.catalog.entries(kind));
        let all = all.into_iter().flatten().filter(|entry| entry.server().name == *server);
        let entries: Vec<_> = all.filter(|_| is_known).collect();
        let names = entries.iter().map(|entry| entry.name()).collect();
        Self { entries, names, is_known, are_prompts_known }
    }

    /// Returns a list entry that matches no item.
    fn unknown(
        &self,
        entry: &ListEntry<'v>,
        suggestions: &mut Suggestions,
    ) -> Option<UnmatchedListEntry<'v>> {
        let pattern = entry.pattern;
        if !self.is_known || pattern.is_uri() || self.has(entry) {
            return None;
        }
        let exposed = self.entries.iter().find(|it| pattern.matches(it.exposed()));
        let is_plain = pattern.plain_name().is_some();
        if !is_plain && exposed.is_none() {
            return None;
        }
        let near = || suggestions.nearest(pattern.as_str(), self.names.iter().copied());
        let suggestion = exposed.map(|it| it.name()).or_else(near).filter(|_| is_plain);
        let ListEntry { key, server, bundle, location, .. } = *entry;
        let (is_exposed_name, entry) = (exposed.is_some(), pattern.as_str());
        Some(UnmatchedListEntry {
            entry,
            key,
            server,
            bundle,
            location,
            suggestion,
            is_exposed_name,
            are_prompts_known: self.are_prompts_known,
        })
    }

    fn has(&self, entry: &ListEntry<'_>) -> bool {
        match entry.pattern.plain_name() {
            Some(name) => self.names.contains(name),
            None => self.names.iter().any(|name| entry.pattern.matches(name)),
        }
    }
}
