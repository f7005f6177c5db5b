//! An immutable snapshot of the items of all servers, sorted by exposed name.

mod server_items;
mod work;
mod prefixes;
mod uris;
mod build;

use std::sync::Arc;

use foldhash::HashMap;

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
    /// It is running, or is started when it is needed.
    Available,
    /// It is down; the reason.
    Down(Box<str>),
}

/// A server of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogServer {
    /// Its name.
    pub name: ServerName,
    /// Whether it can be called.
    pub availability: Availability,
    /// Whether it lists resources or templates, or declares the capability. It may have resources
    /// that it does not list.
    pub serves_resources: bool,
    /// Whether it may have resources or templates whose list was not requested yet.
    pub has_unasked_resources: bool,
    /// Whether its tools are known, be it from the cache on disk.
    pub are_tools_listed: bool,
    /// Whether it may have tools or prompts whose list was not requested yet.
    pub has_unasked_names: bool,
}

/// An item of a server, with its exposed name.
#[derive(Clone, Debug)]
pub struct Entry {
    kind: ItemKind,
    server: Arc<CatalogServer>,
    item: Arc<Item>,
    exposed: Arc<str>,
    /// The name that patterns match, for items with a URI.
    scope: Option<Box<str>>,
    pairs: CharacterPairs,
    /// Copied from the item, so that a scan of all entries does not follow a pointer for each.
    hints: ToolAnnotations,
    adjusted: Option<Box<NameAdjustment>>,
    is_listed: bool,
    is_exposed_as_another: bool,
}

impl Entry {
    /// The kind of item.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The server of the item.
    pub fn server(&self) -> &CatalogServer {
        &self.server
    }

    /// The item as the server listed it.
    pub(crate) fn item(&self) -> &Arc<Item> {
        &self.item
    }

    /// The upstream name: the one in requests to the server.
    pub fn name(&self) -> &str {
        self.item.name()
    }

    /// The exposed name or URI.
    pub fn exposed(&self) -> &str {
        &self.exposed
    }

    /// The definition, byte for byte as the server listed it.
    pub fn definition(&self) -> &Raw {
        self.item.definition()
    }

    /// The digest of its definition, by which definitions of tools are compared.
    pub fn digest(&self) -> DefinitionDigest {
        self.item.digest()
    }

    /// The annotations of the item.
    pub fn annotations(&self) -> ToolAnnotations {
        self.hints
    }

    /// The reason why its exposed name is not simply prefix, separator and upstream name.
    pub fn adjustment(&self) -> Option<&NameAdjustment> {
        self.adjusted.as_deref()
    }

    /// The name that was expected, and the reason why it was not given: its length, its characters,
    /// or another item with the same name (TOOL-2, TOOL-13).
    pub fn renamed(&self) -> Option<(&str, String)> {
        if let Some(adjusted) = self.adjustment() {
            return Some((&adjusted.plain, adjusted.reason.to_string()));
        }
        let is_named = matches!(self.kind, ItemKind::Tool | ItemKind::Prompt);
        (is_named && !self.exposed.ends_with(self.name()))
            .then(|| (self.name(), "it has characters that names may not have".to_owned()))
    }

    /// Whether its server lists it. A resource can also be read without being listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether its exposed name is the upstream name of another item of its server.
    pub(crate) fn is_uri_exposed_by_other(&self) -> bool {
        self.is_exposed_as_another
    }

    /// The pairs of characters in its scope.
    pub(crate) fn pairs(&self) -> CharacterPairs {
        self.pairs
    }

    /// The name that patterns match: the exposed name or, for an item with a URI, the upstream URI
    /// after the prefix of its server.
    pub fn scope(&self) -> &str {
        self.scope.as_deref().unwrap_or(&self.exposed)
    }
}

/// All items of all servers.
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

    /// The entry of an exposed name or URI.
    pub fn get(&self, kind: ItemKind, exposed: &str) -> Option<&Entry> {
        let entries = &self.kinds[kind as usize];
        entries.sorted.get(*entries.places.get(exposed)? as usize)
    }

    /// Entries whose names are not simply prefix, separator and upstream name, each with the reason
    /// (TOOL-2).
    pub fn adjusted(&self, kind: ItemKind) -> impl Iterator<Item = &Entry> {
        self.entries(kind).iter().filter(|entry| entry.adjusted.is_some())
    }

    /// Whether the exposed form of a URI may differ from the upstream one: it does for some
    /// resource, or there are several servers, any of which can link to a URI of another.
    pub(crate) fn qualifies_uris(&self) -> bool {
        self.tells_addresses_apart
    }

    /// The prefixes of the servers, from which exposed names are built.
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
