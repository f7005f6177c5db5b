//! What exists and who serves it: an immutable snapshot, sorted by exposed name.

mod server_items;
mod work;
mod prefixes;
mod uris;
mod build;

use std::collections::HashMap;
use std::sync::Arc;

pub use build::CatalogBuilder;
pub use server_items::ServerItems;
use uris::UriIndex;
pub(crate) use uris::closest;
pub(crate) use work::{LookupWork, WorkExceeded};

pub use crate::item::{DefinitionDigest, Item, ItemKind, ToolAnnotations};

use crate::message::Raw;
use crate::name::{CharacterPairs, NameAdjustment, Namespaces, ServerName};

/// Whether a server can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It is up, or comes up when it is needed.
    Available,
    /// It is down, for this reason.
    Down(Box<str>),
}

/// A server of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogServer {
    /// Its name.
    pub name: ServerName,
    /// Whether it can be called.
    pub availability: Availability,
    /// Whether it lists resources or templates, or declares the capability. It may have resources that it
    /// does not list.
    pub serves_resources: bool,
    /// Whether it may have resources or templates for which it was not asked yet.
    pub has_unasked_resources: bool,
    /// Whether its tools are known, be it from disk.
    pub are_tools_listed: bool,
    /// Whether it may have tools or prompts for which it was not asked yet.
    pub has_unasked_names: bool,
}

/// One thing that a server has.
#[derive(Clone, Debug)]
pub struct Entry {
    kind: ItemKind,
    server: Arc<CatalogServer>,
    item: Arc<Item>,
    exposed: Arc<str>,
    /// What patterns see of something that is called by an address.
    scope: Option<Box<str>>,
    pairs: CharacterPairs,
    /// Those of its item: a look at every entry should not have to leave the list.
    hints: ToolAnnotations,
    adjusted: Option<Box<NameAdjustment>>,
    is_listed: bool,
    is_exposed_as_another: bool,
}

impl Entry {
    /// What kind of thing it is.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The server that has it.
    pub fn server(&self) -> &CatalogServer {
        &self.server
    }

    /// What it is, as the catalog has it from the server.
    pub(crate) fn item(&self) -> &Arc<Item> {
        &self.item
    }

    /// The server's own name for it: what goes over the wire.
    pub fn name(&self) -> &str {
        self.item.name()
    }

    /// The name, or the address, that callers see.
    pub fn exposed(&self) -> &str {
        &self.exposed
    }

    /// What the server said about it, byte for byte.
    pub fn definition(&self) -> &Raw {
        self.item.definition()
    }

    /// The digest of its definition, by which definitions of tools are compared.
    pub fn digest(&self) -> DefinitionDigest {
        self.item.digest()
    }

    /// What it says of itself.
    pub fn annotations(&self) -> ToolAnnotations {
        self.hints
    }

    /// Why its exposed name is not simply prefix, separator and own name.
    pub fn adjustment(&self) -> Option<&NameAdjustment> {
        self.adjusted.as_deref()
    }

    /// What it would be called, and why it is not: because of its length, of its characters, or of
    /// something else that has the name (TOOL-2, TOOL-13).
    pub fn renamed(&self) -> Option<(&str, String)> {
        if let Some(adjusted) = self.adjustment() {
            return Some((&adjusted.plain, adjusted.reason.to_string()));
        }
        let is_named = matches!(self.kind, ItemKind::Tool | ItemKind::Prompt);
        (is_named && !self.exposed.ends_with(self.name()))
            .then(|| (self.name(), "it has characters that names may not have".to_owned()))
    }

    /// Whether its server lists it. A resource may also be addressed without being listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether its exposed name is the own name of something else of its server.
    pub(crate) fn is_uri_exposed_by_other(&self) -> bool {
        self.is_exposed_as_another
    }

    /// The pairs of characters in its scope.
    pub(crate) fn pairs(&self) -> CharacterPairs {
        self.pairs
    }

    /// What patterns of names are compared with: the exposed name or, for something that is called
    /// by an address, the address after the prefix of its server.
    pub fn scope(&self) -> &str {
        self.scope.as_deref().unwrap_or(&self.exposed)
    }
}

/// Everything that all servers have.
///
/// ```
/// use std::sync::Arc;
/// use trunkline::catalog::{Catalog, Item, ItemKind, ServerItems, CatalogBuilder};
/// use trunkline::config;
/// use trunkline::message::Raw;
///
/// let config = config::parse("mcp.json", r#"{ "servers": { "fs": { "command": "x" } } }"#).config;
/// let definition = Raw::from_text(r#"{"name":"read_file","inputSchema":{}}"#).unwrap();
/// let listing = ServerItems::new([Item::new(ItemKind::Tool, "read_file", definition)]);
///
/// let mut sources = CatalogBuilder::new(&config);
/// sources.add(&config.server("fs").unwrap().name, Arc::new(listing));
/// let catalog = Catalog::build(&sources);
/// let entry = catalog.get(ItemKind::Tool, "fs_read_file").unwrap();
/// assert_eq!((entry.server().name.as_str(), entry.name()), ("fs", "read_file"));
/// ```
#[derive(Clone, Debug)]
pub struct Catalog {
    kinds: [Entries; ItemKind::ALL.len()],
    namespaces: Arc<Namespaces>,
    servers: Vec<Arc<CatalogServer>>,
    tells_addresses_apart: bool,
    addresses: UriIndex,
}

/// All entries of one kind, sorted by exposed name.
#[derive(Clone, Debug, Default)]
struct Entries {
    sorted: Box<[Entry]>,
    places: HashMap<Arc<str>, u32>,
}

impl Entries {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable_by(|a, b| a.exposed.cmp(&b.exposed));
        let place = |(place, entry): (u32, &Entry)| (Arc::clone(&entry.exposed), place);
        let places = (0..).zip(&entries).map(place).collect();
        Self { sorted: entries.into(), places }
    }
}

impl Catalog {
    /// All entries of a kind, sorted by exposed name.
    pub fn entries(&self, kind: ItemKind) -> &[Entry] {
        &self.kinds[kind as usize].sorted
    }

    /// The entry of an exposed name or address.
    pub fn get(&self, kind: ItemKind, exposed: &str) -> Option<&Entry> {
        let entries = &self.kinds[kind as usize];
        entries.sorted.get(*entries.places.get(exposed)? as usize)
    }

    /// Entries whose names are not simply prefix, separator and own name; each says why (TOOL-2).
    pub fn adjusted(&self, kind: ItemKind) -> impl Iterator<Item = &Entry> {
        self.entries(kind).iter().filter(|entry| entry.adjusted.is_some())
    }

    /// Whether any address may have to be shown otherwise than its server writes it: some are, or there
    /// are several servers, any of which can link to an address that is another's.
    pub(crate) fn qualifies_uris(&self) -> bool {
        self.tells_addresses_apart
    }

    /// How exposed names are made.
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// All servers whose lists are known, in the order of their names.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &CatalogServer> {
        self.servers.iter().map(|server| &**server)
    }
}

#[cfg(test)]
mod tests;
