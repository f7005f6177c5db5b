//! Views: the items of the catalog that one caller may see, and the resolution of exposed names.

mod definition;
mod route;
mod unmatched;
mod resources;
mod unlisted;
mod owners;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::catalog::{Catalog, Entry, ItemKind};
use crate::config::Trust;
use crate::message::Raw;
use crate::name::ServerName;
use crate::policy::{
    Caller, CallerRules, Decision, Reason, RuleResult, Rules, Visibility, decide, decide_all,
    explain, is_unlimited, uri_visibility, visibility,
};

pub use resources::ResourceLookup;
pub use route::{ResourceRoute, RouteError, RoutedEntry};
pub use unmatched::{UnmatchedListEntry, UnmatchedName};

/// The view of one caller. Cheap to create and to keep: everything is computed on demand.
///
/// ```
/// use std::sync::Arc;
/// use trunkline::catalog::{Catalog, Item, ItemKind, ServerItems, CatalogBuilder};
/// use trunkline::policy::{Rules, CallerSpec};
/// use trunkline::view::{DescriptionStyle, View};
/// use trunkline::{config, message::Raw};
///
/// let text = r#"{ "servers": { "docs": { "command": "x" } },
///                 "agents": { "reader": { "tools": ["docs_*", "!docs_drop"] } } }"#;
/// let config = config::parse("mcp.json", text).config;
/// let tool = |name: &str| {
///     let definition = format!(r#"{{"name":"{name}","description":"Does it.","inputSchema":{{}}}}"#);
///     Item::new(ItemKind::Tool, name, Raw::from_text(&definition).unwrap())
/// };
/// let mut sources = CatalogBuilder::new(&config);
/// let listing = ServerItems::new([tool("search"), tool("drop")]);
/// sources.add(&config.server("docs").unwrap().name, Arc::new(listing));
///
/// let rules = Rules::new(&config, config.agents().named.clone());
/// let caller = rules.caller(CallerSpec { agent: Some("reader"), ..CallerSpec::default() }).unwrap();
/// let view = View::new(Arc::new(Catalog::build(&sources)), Arc::new(rules), Arc::new(caller));
///
/// let listed: Vec<_> = view.list(ItemKind::Tool, DescriptionStyle::WithServer);
/// assert_eq!(listed.len(), 1);
/// assert_eq!(
///     listed[0].text(),
///     r#"{"name":"docs_search","description":"[docs] Does it.","inputSchema":{}}"#
/// );
/// assert_eq!(view.route(ItemKind::Tool, "docs_search").unwrap().name(), "search");
/// assert!(view.route(ItemKind::Tool, "docs_drop").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct View {
    catalog: Arc<Catalog>,
    rules: Arc<Rules>,
    caller: Arc<Caller>,
}

/// Identifies the catalog and the rules of a view, to invalidate caches of values computed from it.
/// Keeps neither of them alive.
#[derive(Clone, Debug)]
pub struct ViewVersion {
    catalog: Weak<Catalog>,
    rules: Weak<Rules>,
}

impl PartialEq for ViewVersion {
    fn eq(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.catalog, &other.catalog) && Weak::ptr_eq(&self.rules, &other.rules)
    }
}

/// Whether descriptions contain the name of the server (TOOL-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DescriptionStyle {
    /// `[server] description`.
    #[default]
    WithServer,
    /// As the server wrote them.
    AsWritten,
}

impl View {
    /// Creates the view of a caller.
    pub fn new(catalog: Arc<Catalog>, rules: Arc<Rules>, caller: Arc<Caller>) -> Self {
        Self { catalog, rules, caller }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The version of the catalog and the rules. Two views of one caller are the same if their
    /// versions are equal.
    pub fn version(&self) -> ViewVersion {
        let (catalog, rules) = (Arc::downgrade(&self.catalog), Arc::downgrade(&self.rules));
        ViewVersion { catalog, rules }
    }

    /// Whether the output of a server is trusted.
    pub fn trust(&self, server: &ServerName) -> Trust {
        self.rules.trust(server)
    }

    /// The rules.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// The caller.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// All items of a kind that the caller may see, sorted by exposed name (TOOL-4).
    pub fn entries(&self, kind: ItemKind) -> impl Iterator<Item = &Entry> {
        let allowed = |(entry, decision)| matches!(decision, Decision::Allow).then_some(entry);
        decide_all(&self.rules, &self.caller, self.catalog.entries(kind)).filter_map(allowed)
    }

    /// All items of a kind that the caller may not see, each with the reason; sorted by exposed
    /// name.
    pub fn hidden(&self, kind: ItemKind) -> impl Iterator<Item = (&Entry, Reason<'_>)> {
        let hidden = |(entry, decision)| match decision {
            Decision::Allow => None,
            Decision::Hide(reason) | Decision::Deny(reason) => Some((entry, reason)),
        };
        decide_all(&self.rules, &self.caller, self.catalog.entries(kind)).filter_map(hidden)
    }

    /// The number of hidden items of a kind, by server.
    pub fn hidden_counts(&self, kind: ItemKind) -> BTreeMap<&ServerName, usize> {
        let mut counts = BTreeMap::new();
        for (entry, _) in self.hidden(kind) {
            *counts.entry(&entry.server().name).or_default() += 1;
        }
        counts
    }

    /// The definitions of all items of a kind that the caller may see, with their exposed names;
    /// every other byte is unchanged.
    pub fn list(&self, kind: ItemKind, describe: DescriptionStyle) -> Vec<Raw> {
        self.entries(kind).map(|entry| self.definition(entry, describe)).collect()
    }

    /// The definition of one entry, as in [`list`](Self::list).
    pub fn definition(&self, entry: &Entry, describe: DescriptionStyle) -> Raw {
        definition::definition(self, entry, describe)
    }

    /// Whether the rules can admit any item of a server. If they cannot, the server need not be
    /// started for this view.
    pub fn could_contain(&self, server: &ServerName) -> bool {
        let prefix = self.catalog.namespaces().prefix(server).unwrap_or_default();
        self.caller.may_have(server, prefix)
    }

    /// Whether no rule limits the caller's use of a server. Custom (non-MCP) methods are available
    /// to such callers only: nothing identifies the item that such a request concerns, so any rule
    /// might apply to it.
    pub fn is_unlimited(&self, server: &ServerName) -> bool {
        is_unlimited(&self.rules, &self.caller, server)
    }

    fn caller_rules(&self) -> CallerRules<'_> {
        CallerRules { rules: &self.rules, caller: &self.caller }
    }

    /// Whether an item with this exposed name would be visible, if the server has it.
    pub fn could_contain_name(&self, server: &ServerName, exposed: &str) -> Visibility {
        match self.could_contain(server) {
            true => visibility(self.caller_rules(), self.catalog.namespaces(), server, exposed),
            false => Visibility::NotSelected,
        }
    }

    /// Whether a resource with this upstream URI would be visible, if the server has it.
    pub fn could_contain_uri(&self, server: &ServerName, address: &str) -> Visibility {
        match self.could_contain(server) {
            true => {
                let entry = self.catalog.possible_resource(server, address);
                uri_visibility(self.caller_rules(), &entry)
            }
            false => Visibility::NotSelected,
        }
    }

    /// The results of all rules for an item, whether or not the caller may see it (TOOL-11).
    pub fn explain<'v>(&'v self, entry: &'v Entry) -> Vec<RuleResult<'v>> {
        explain(&self.rules, &self.caller, entry)
    }

    fn decide<'v>(&'v self, entry: &'v Entry) -> Decision<'v> {
        decide(&self.rules, &self.caller, entry)
    }
}

#[cfg(test)]
mod tests;
