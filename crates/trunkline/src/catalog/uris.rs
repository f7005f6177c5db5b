//! Where addresses lead, and what callers call them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use super::{Catalog, CatalogServer, Entry, ItemKind};
use crate::name::{PatternPieces, ServerName, is_web, parse_qualified_uri, qualified_uri, scheme};

/// Finds entries by the addresses that their servers gave them. A result may link to as many resources
/// as there is room for in it.
#[derive(Clone, Debug)]
pub(super) struct UriIndex {
    hasher: RandomState,
    /// Places of resources, by the hash of their own address.
    resources: HashMap<u64, Vec<u32>>,
    /// The given parts of each template, in the order of the entries.
    templates: Box<[PatternPieces]>,
    /// The servers that list URIs of the web, by the scheme.
    web_servers: HashMap<String, BTreeSet<ServerName>>,
}

impl UriIndex {
    pub(super) fn new([resources, templates]: [&[Entry]; 2]) -> Self {
        let hasher = RandomState::new();
        let mut places: HashMap<u64, Vec<u32>> = HashMap::with_capacity(resources.len());
        for (place, entry) in (0..).zip(resources) {
            places.entry(hasher.hash_one(entry.name())).or_default().push(place);
        }
        let mut web_servers: HashMap<String, BTreeSet<ServerName>> = HashMap::new();
        for entry in resources.iter().chain(templates) {
            if let Some(scheme) = scheme(entry.name()).filter(|scheme| is_web(scheme)) {
                web_servers.entry(scheme).or_default().insert(entry.server.name.clone());
            }
        }
        let templates = templates.iter().map(|entry| template_pieces(entry.name())).collect();
        Self { hasher, resources: places, templates, web_servers }
    }
}

impl Catalog {
    /// The resources that their servers call so.
    fn resources_at(&self, own: &str) -> impl Iterator<Item = &Entry> {
        let places = self.addresses.resources.get(&self.addresses.hasher.hash_one(own));
        let resources = self.entries(ItemKind::Resource);
        let found = places.into_iter().flatten().filter_map(|place| resources.get(*place as usize));
        found.filter(move |entry| entry.name() == own)
    }

    /// The entries that an address may mean and what their servers call it: of each server a
    /// resource of that address, or else the templates that it fits. Resources come first, then
    /// templates, the closest first.
    ///
    /// An address in the form that says whose it is leads to that server only, whether or not it is
    /// shown in that form.
    pub fn resolve<'u>(&self, address: &'u str) -> Vec<(&Entry, &'u str)> {
        let (server, own) = match parse_qualified_uri(address) {
            Some((server, own)) => (Some(server), own),
            None => (None, address),
        };
        let is_meant =
            |entry: &&Entry| server.as_ref().is_none_or(|server| entry.server.name == *server);
        let mut found: Vec<_> = self.resources_at(own).filter(is_meant).collect();
        let exact: BTreeSet<_> = found.iter().map(|entry| &entry.server.name).collect();
        let templates =
            self.entries(ItemKind::ResourceTemplate).iter().zip(&self.addresses.templates);
        let mut templates: Vec<_> = templates
            .filter(|(entry, pieces)| pieces.matches(own) && is_meant(entry))
            .filter(|(entry, _)| !exact.contains(&entry.server.name))
            .map(|(entry, pieces)| (pieces, entry))
            .collect();
        templates.sort_by_key(|(pieces, entry)| (Reverse(pieces.given()), &entry.exposed));
        found.extend(templates.into_iter().map(|(_, entry)| entry));
        found.into_iter().map(|entry| (entry, own)).collect()
    }

    /// What callers call an address of a server, if that is not what the server calls it: where the
    /// bare address would lead elsewhere, or is not what is shown; and where it may turn out to be a
    /// resource of another server that was not asked for its lists yet. Addresses of the web are not
    /// held against such a server, because clients open them themselves.
    pub fn exposed_uri(&self, server: &ServerName, own: &str) -> Option<String> {
        let meant = closest(self.resolve(own));
        if meant.is_empty() && self.may_belong_to_other(server, own) {
            return Some(qualified_uri(server, own));
        }
        let leads_here = meant.iter().all(|(entry, _)| entry.server.name == *server);
        let is_shown_so = meant.first().is_none_or(|(entry, _)| entry.is_exposed_unqualified());
        let is_resource = meant.iter().any(|(entry, _)| entry.kind == ItemKind::Resource);
        let is_sure = is_resource || is_web_uri(own) || !self.has_unlisted_elsewhere(server);
        let is_bare = leads_here && is_shown_so && is_sure && parse_qualified_uri(own).is_none();
        (!is_bare).then(|| qualified_uri(server, own))
    }
}

impl Catalog {
    /// Whether a server can be asked for a URI in its own words: it lists it, or may have it without
    /// listing it.
    pub fn may_have(&self, server: &ServerName, own: &str) -> bool {
        if !self.resolve(&qualified_uri(server, own)).is_empty() {
            return true;
        }
        let is_listing = |scheme: String| {
            self.addresses.web_servers.get(&scheme).is_some_and(|it| it.contains(server))
        };
        let serves = self.servers().any(|it| it.name == *server && it.serves_resources);
        serves && scheme(own).filter(|scheme| is_web(scheme)).is_none_or(is_listing)
    }

    /// Whether a server other than this one may have resources for which it was not asked yet.
    pub(crate) fn has_unlisted_elsewhere(&self, server: &ServerName) -> bool {
        self.servers().any(|it| it.name != *server && it.has_unasked_resources)
    }

    /// Whether no list names a URI.
    pub(crate) fn is_unlisted(&self, own: &str) -> bool {
        self.resolve(own).is_empty()
    }

    /// Whether a URI that no list names could be read from another server than this one, for any caller.
    /// The rules of a caller may leave only that one.
    fn may_belong_to_other(&self, server: &ServerName, own: &str) -> bool {
        let is_other = |it: &&CatalogServer| it.name != *server && it.serves_resources;
        match scheme(own).filter(|scheme| is_web(scheme)) {
            Some(scheme) => {
                let listing = self.addresses.web_servers.get(&*scheme);
                listing.is_some_and(|listing| listing.iter().any(|it| it != server))
            }
            None => self.servers().any(|it| is_other(&it)),
        }
    }
}

impl Entry {
    /// Whether it is shown under the address that its server gave it.
    fn is_exposed_unqualified(&self) -> bool {
        *self.exposed == *self.name()
    }
}

fn is_web_uri(address: &str) -> bool {
    scheme(address).is_some_and(|scheme| is_web(&scheme))
}

/// Of what an address may mean, what it does mean: resources before templates. If they are of
/// several servers, only what is shown as bare as the address is, if anything is.
pub(crate) fn closest<T>(mut found: Vec<(&Entry, T)>) -> Vec<(&Entry, T)> {
    if found.iter().any(|(entry, _)| entry.kind == ItemKind::Resource) {
        found.retain(|(entry, _)| entry.kind == ItemKind::Resource);
    }
    let servers: BTreeSet<_> = found.iter().map(|(entry, _)| &entry.server.name).collect();
    if servers.len() > 1 && found.iter().any(|(entry, _)| entry.is_exposed_unqualified()) {
        found.retain(|(entry, _)| entry.is_exposed_unqualified());
    }
    found
}

/// What is given in a template of addresses. Every expression may stand for anything.
pub(crate) fn template_pieces(template: &str) -> PatternPieces {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else { break };
        pieces.push(before);
        rest = after;
    }
    pieces.push(rest);
    PatternPieces::new(pieces)
}
