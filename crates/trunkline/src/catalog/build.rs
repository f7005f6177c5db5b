//! Builds a catalog from the lists of all servers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::uris::UriIndex;
use super::{Availability, Catalog, CatalogServer, Entries, Entry, Item, ItemKind, ServerItems};
use crate::config::{Config, Trust, UriStyle};
use crate::message::Raw;
use crate::name::{
    AssignedName, CharacterPairs, NameOptions, NameRequest, Namespaces, QualifyUris, ServerName,
    UriRequest, expose_uris,
};

/// The parts of a catalog: the namespaces, and the items of each server.
///
/// A server that went down stays in it with its items, so that exposed names do not change; its
/// [`Availability`] reports that they cannot be called.
#[derive(Clone, Debug)]
pub struct CatalogBuilder {
    namespaces: Arc<Namespaces>,
    uri_form: QualifyUris,
    untrusted: BTreeSet<ServerName>,
    servers: BTreeMap<ServerName, ServerSource>,
}

#[derive(Clone, Debug)]
struct ServerSource {
    listing: Arc<ServerItems>,
    availability: Availability,
}

impl CatalogBuilder {
    /// Creates a builder without items, with the naming of a configuration.
    pub fn new(config: &Config) -> Self {
        Self::with_reserved(config, BTreeSet::new())
    }

    /// Creates a builder without items. No item gets one of the `reserved` names, which the
    /// embedding host uses itself (TOOL-13), nor one of
    /// [`HOST_TOOL_NAMES`](crate::name::HOST_TOOL_NAMES).
    pub fn with_reserved(config: &Config, reserved: BTreeSet<Box<str>>) -> Self {
        let naming = config.naming();
        let max_length = usize::try_from(naming.max_length).unwrap_or(usize::MAX);
        let options = NameOptions { separator: naming.separator.clone(), max_length, reserved };
        let servers = config.servers().map(|server| (&server.name, server.prefix.as_deref()));
        let untrusted = config.servers().filter(|server| server.trust == Trust::Untrusted);
        let uri_form = match naming.addresses {
            UriStyle::Bare => QualifyUris::WhereNeeded,
            UriStyle::WithServer => QualifyUris::Always,
        };
        Self {
            namespaces: Arc::new(Namespaces::new(options, servers)),
            uri_form,
            untrusted: untrusted.map(|server| server.name.clone()).collect(),
            servers: BTreeMap::new(),
        }
    }

    /// Adds the items of a running server. Those of an untrusted server are sanitized.
    pub fn add(&mut self, server: &ServerName, listing: Arc<ServerItems>) {
        let listing = match self.untrusted.contains(server) {
            true => Arc::new(listing.cleaned()),
            false => listing,
        };
        let source = ServerSource { listing, availability: Availability::Available };
        self.servers.insert(server.clone(), source);
    }

    /// Sets whether a server whose lists are known can be called.
    pub fn set_availability(&mut self, server: &ServerName, availability: Availability) {
        if let Some(source) = self.servers.get_mut(server) {
            source.availability = availability;
        }
    }

    /// Removes a server.
    pub fn remove(&mut self, server: &ServerName) {
        self.servers.remove(server);
    }
}

/// An item that has no exposed name yet.
struct EntryDraft<'s> {
    server: &'s Arc<CatalogServer>,
    item: &'s Arc<Item>,
}

impl Catalog {
    /// Builds the catalog.
    pub fn build(sources: &CatalogBuilder) -> Self {
        let server = |(name, source): (&ServerName, &ServerSource)| {
            Arc::new(CatalogServer {
                name: name.clone(),
                availability: source.availability.clone(),
                serves_resources: source.listing.serves_resources(),
                has_unasked_resources: source.listing.has_unlisted_resources(),
                are_tools_listed: source.listing.are_tools_listed(),
                has_unasked_names: source.listing.has_unlisted_names(),
            })
        };
        let servers: Vec<_> = sources.servers.iter().map(server).collect();
        let mut drafts: [Vec<EntryDraft<'_>>; ItemKind::ALL.len()] = Default::default();
        for (server, source) in servers.iter().zip(sources.servers.values()) {
            for item in source.listing.items() {
                drafts[item.kind() as usize].push(EntryDraft { server, item });
            }
        }
        let kinds = ItemKind::ALL.map(|kind| {
            let drafts = &drafts[kind as usize];
            Entries::new(match kind {
                ItemKind::Tool | ItemKind::Prompt => named_entries(drafts, &sources.namespaces),
                ItemKind::Resource | ItemKind::ResourceTemplate => uri_entries(drafts, sources),
            })
        });
        let tells_addresses_apart = sources.namespaces.has_several() || is_any_renamed(&kinds);
        let namespaces = Arc::clone(&sources.namespaces);
        let addressed = [ItemKind::Resource, ItemKind::ResourceTemplate]
            .map(|kind| &*kinds[kind as usize].sorted);
        let addresses = UriIndex::new(addressed);
        Self { kinds, namespaces, servers, tells_addresses_apart, addresses }
    }
}

/// Whether the exposed form of any URI differs from the upstream one.
fn is_any_renamed(kinds: &[Entries; ItemKind::ALL.len()]) -> bool {
    let addressed =
        [ItemKind::Resource, ItemKind::ResourceTemplate].map(|kind| &kinds[kind as usize]);
    let mut entries = addressed.iter().flat_map(|entries| entries.sorted.iter());
    entries.any(|entry| entry.exposed() != entry.name())
}

fn named_entries(drafts: &[EntryDraft<'_>], namespaces: &Namespaces) -> Vec<Entry> {
    let claims: Vec<NameRequest<'_>> = drafts
        .iter()
        .map(|draft| NameRequest { server: &draft.server.name, own: draft.item.name() })
        .collect();
    let exposed = namespaces.expose(&claims);
    let owns: HashSet<(&ServerName, &str)> = claims.iter().map(|it| (it.server, it.own)).collect();
    let is_another = |draft: &EntryDraft<'_>, name: &str| {
        name != draft.item.name() && owns.contains(&(&draft.server.name, name))
    };
    let entry = |(draft, exposed): (&EntryDraft<'_>, AssignedName)| Entry {
        pairs: CharacterPairs::of(exposed.name.as_str()),
        is_exposed_as_another: is_another(draft, exposed.name.as_str()),
        kind: draft.item.kind(),
        server: Arc::clone(draft.server),
        item: Arc::clone(draft.item),
        hints: draft.item.annotations(),
        exposed: exposed.name.into_text(),
        scope: None,
        adjusted: exposed.adjusted.map(Box::new),
        is_listed: true,
    };
    drafts.iter().zip(exposed).map(entry).collect()
}

fn uri_entries(drafts: &[EntryDraft<'_>], sources: &CatalogBuilder) -> Vec<Entry> {
    let prefix =
        |draft: &EntryDraft<'_>| sources.namespaces.prefix(&draft.server.name).unwrap_or("");
    let claims: Vec<UriRequest<'_>> = drafts
        .iter()
        .map(|draft| UriRequest {
            server: &draft.server.name,
            uri: draft.item.name(),
            is_bare: prefix(draft).is_empty(),
        })
        .collect();
    let exposed = expose_uris(&claims, sources.uri_form);
    let entry = |(draft, exposed): (&EntryDraft<'_>, String)| {
        let (server, item) = (Arc::clone(draft.server), Arc::clone(draft.item));
        Entry::uri_entry((server, item), &sources.namespaces, &exposed)
    };
    drafts.iter().zip(exposed).map(entry).collect()
}

impl Entry {
    /// The entry of an item with a URI.
    fn uri_entry(
        (server, item): (Arc<CatalogServer>, Arc<Item>),
        namespaces: &Namespaces,
        exposed: &str,
    ) -> Self {
        let prefix = namespaces.prefix(&server.name).unwrap_or("");
        let separator = if prefix.is_empty() { "" } else { namespaces.separator() };
        let scope = format!("{prefix}{separator}{}", item.name());
        Self {
            kind: item.kind(),
            hints: item.annotations(),
            server,
            item,
            exposed: exposed.into(),
            pairs: CharacterPairs::of(&scope),
            scope: Some(scope.into()),
            adjusted: None,
            is_listed: true,
            is_exposed_as_another: false,
        }
    }
}

impl Catalog {
    /// The entry of an unlisted resource with this upstream URI, whether or not the server is
    /// known.
    pub(crate) fn possible_resource(&self, server: &ServerName, own: &str) -> Entry {
        let known = self.servers.iter().find(|it| it.name == *server).cloned();
        let server = known.unwrap_or_else(|| {
            Arc::new(CatalogServer {
                name: server.clone(),
                availability: Availability::Available,
                serves_resources: false,
                has_unasked_resources: true,
                has_unasked_names: true,
                are_tools_listed: false,
            })
        });
        let definition = Raw::empty_object().with("uri", &Raw::from_string(own));
        let item = Arc::new(Item::new(ItemKind::Resource, own, definition));
        let entry = Entry::uri_entry((server, item), &self.namespaces, own);
        Entry { is_listed: false, ..entry }
    }

    /// Entries of an unlisted resource with the upstream URI `own` and the exposed URI `exposed`,
    /// one for each of the servers that serve resources and satisfy `is_meant`.
    pub(crate) fn unlisted<'c>(
        &'c self,
        (own, exposed): (&'c str, &'c str),
        is_meant: impl Fn(&ServerName) -> bool + 'c,
    ) -> impl Iterator<Item = Entry> + 'c {
        let definition = Raw::empty_object().with("uri", &Raw::from_string(own));
        let item = Arc::new(Item::new(ItemKind::Resource, own, definition));
        let servers = self.servers.iter().filter(|server| server.serves_resources);
        servers.filter(move |server| is_meant(&server.name)).map(move |server| {
            let item = Arc::clone(&item);
            let entry = Entry::uri_entry((Arc::clone(server), item), &self.namespaces, exposed);
            Entry { is_listed: false, ..entry }
        })
    }
}
