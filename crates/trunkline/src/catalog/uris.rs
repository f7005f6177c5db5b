//! Resolves URIs to entries, and maps upstream URIs to exposed ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use super::prefixes::PrefixIndex;
use super::work::{LookupWork, WorkExceeded};
use super::{Catalog, CatalogServer, Entry, ItemKind};
use crate::name::{
    ServerName, TemplateForm, UriSpellings, is_web, may_be_misread, parse_qualified_uri,
    qualified_uri, scheme,
};

/// Finds entries by their upstream URIs, and by other spellings of those. A result may contain as
/// many links as fit into it, and a list may have thousands of templates, so no lookup scans a
/// list.
#[derive(Clone, Debug)]
pub(super) struct UriIndex {
    hasher: RandomState,
    /// Positions of resources, by the hash of their upstream URI.
    resources: Places,
    /// Positions of resources, by the hash of the normalised form of their URI.
    spelled_resources: Places,
    /// Templates, by the literal before their first expression.
    templates: PrefixIndex,
    /// Templates, by the literal of their normalised form before the first expression.
    spelled_templates: PrefixIndex,
    /// Positions of templates, by the hash of their normalised form without expressions.
    plain_templates: Places,
    /// Resources and templates, by their scheme and their server.
    schemes: HashMap<String, BTreeMap<ServerName, Vec<(ItemKind, u32)>>>,
}

/// Positions of entries, by a hash.
type Places = HashMap<u64, Vec<u32>>;

impl UriIndex {
    pub(super) fn new([resources, templates]: [&[Entry]; 2]) -> Self {
        let hasher = RandomState::new();
        let mut schemes: HashMap<String, BTreeMap<ServerName, Vec<_>>> = HashMap::new();
        for entries in [resources, templates] {
            for (place, entry) in (0..).zip(entries) {
                let Some(scheme) = scheme(entry.name()) else { continue };
                let servers = schemes.entry(scheme).or_default();
                servers.entry(entry.server.name.clone()).or_default().push((entry.kind, place));
            }
        }
        let own = |place: u32| template_at(templates, place).map_or("", |it| it.own().start());
        let spelled =
            |place: u32| template_at(templates, place).map_or("", |it| it.pieces().start());
        Self {
            resources: places(&hasher, resources, Entry::name),
            spelled_resources: places(&hasher, resources, |it| it.item.spellings().whole()),
            templates: PrefixIndex::new(templates.len(), own),
            spelled_templates: PrefixIndex::new(templates.len(), spelled),
            plain_templates: places(&hasher, templates, |it| it.item.template().plain()),
            schemes,
            hasher,
        }
    }

    fn at<'i>(&self, places: &'i Places, text: &str) -> impl Iterator<Item = u32> + 'i {
        places.get(&self.hasher.hash_one(text)).into_iter().flatten().copied()
    }
}

fn places<'e>(
    hasher: &RandomState,
    entries: &'e [Entry],
    text: impl Fn(&'e Entry) -> &'e str,
) -> Places {
    let mut places: Places = HashMap::with_capacity(entries.len());
    for (place, entry) in (0..).zip(entries) {
        places.entry(hasher.hash_one(text(entry))).or_default().push(place);
    }
    places
}

fn template_at(templates: &[Entry], place: u32) -> Option<&TemplateForm> {
    templates.get(place as usize).map(|entry| entry.item.template())
}

impl Catalog {
    /// The resources with this upstream URI.
    fn resources_at(&self, own: &str) -> impl Iterator<Item = &Entry> {
        let resources = self.entries(ItemKind::Resource);
        let places = self.addresses.at(&self.addresses.resources, own);
        let found = places.filter_map(|place| resources.get(place as usize));
        found.filter(move |entry| entry.name() == own)
    }

    /// The resources whose normalised URI equals a spelling of a URI.
    pub(crate) fn resources_spelled<'c, 's>(
        &'c self,
        spellings: &'s UriSpellings,
    ) -> impl Iterator<Item = &'c Entry> + use<'c, 's> {
        let resources = self.entries(ItemKind::Resource);
        spellings.forms().flat_map(move |form| {
            let places = self.addresses.at(&self.addresses.spelled_resources, form);
            let found = places.filter_map(|place| resources.get(place as usize));
            found.filter(move |entry| entry.item.spellings().whole() == form)
        })
    }

    /// The templates that a URI may match as it is written: those whose literal before the first
    /// expression is a prefix of it.
    fn templates_like(&self, own: &str, work: &LookupWork) -> Result<Vec<&Entry>, WorkExceeded> {
        let templates = self.entries(ItemKind::ResourceTemplate);
        let start = |place| template_at(templates, place).map_or("", |it| it.own().start());
        let places = self.addresses.templates.prefixes(own, start, work)?;
        Ok(places.into_iter().filter_map(|place| templates.get(place as usize)).collect())
    }

    /// The templates that a spelling of a URI may match.
    pub(crate) fn templates_spelled(
        &self,
        spellings: &UriSpellings,
        work: &LookupWork,
    ) -> Result<Vec<&Entry>, WorkExceeded> {
        let (templates, index) = (self.entries(ItemKind::ResourceTemplate), &self.addresses);
        let start = |place| template_at(templates, place).map_or("", |it| it.pieces().start());
        let mut places = Vec::new();
        for form in spellings.forms() {
            places.extend(index.spelled_templates.prefixes(form, start, work)?);
            places.extend(index.at(&index.plain_templates, form));
        }
        Ok(places.into_iter().filter_map(|place| templates.get(place as usize)).collect())
    }

    /// The servers that list URIs of a scheme, each with those resources and templates.
    pub(crate) fn listing_scheme(
        &self,
        scheme: &str,
    ) -> impl Iterator<Item = (&ServerName, impl Iterator<Item = &Entry>)> {
        let servers = self.addresses.schemes.get(scheme).into_iter().flatten();
        servers.map(|(server, places)| {
            let entry = |(kind, place): &(ItemKind, u32)| self.entries(*kind).get(*place as usize);
            (server, places.iter().filter_map(entry))
        })
    }

    /// The entries that a URI may refer to, each with the upstream URI: for each server a resource
    /// with that URI, or else the templates that it matches. Resources come first, then templates,
    /// the closest first. The result is empty if the lookup exceeds its work limit.
    ///
    /// A qualified URI, which contains the name of a server, resolves to that server only, whether
    /// or not it is exposed in that form.
    pub fn resolve<'u>(&self, address: &'u str) -> Vec<(&Entry, &'u str)> {
        self.resolve_within(address, &LookupWork::default()).unwrap_or_default()
    }

    /// [`resolve`](Self::resolve), with a shared work limit.
    pub(crate) fn resolve_within<'u>(
        &self,
        address: &'u str,
        work: &LookupWork,
    ) -> Result<Vec<(&Entry, &'u str)>, WorkExceeded> {
        let (server, own) = match parse_qualified_uri(address) {
            Some((server, own)) => (Some(server), own),
            None => (None, address),
        };
        let is_meant =
            |entry: &&Entry| server.as_ref().is_none_or(|server| entry.server.name == *server);
        let mut found: Vec<_> = self.resources_at(own).filter(is_meant).collect();
        if server.is_some() && !found.is_empty() {
            // A resource of the server takes precedence over its templates.
            return Ok(found.into_iter().map(|entry| (entry, own)).collect());
        }
        let exact: BTreeSet<_> = found.iter().map(|entry| &entry.server.name).collect();
        let mut templates = Vec::new();
        for entry in self.templates_like(own, work)?.into_iter().filter(is_meant) {
            let pieces = entry.item.template().own();
            work.spend_on_match(pieces.count(), own)?;
            if pieces.matches(own) && !exact.contains(&entry.server.name) {
                templates.push((Reverse(pieces.given()), entry));
            }
        }
        templates.sort_by_key(|(given, entry)| (*given, &entry.exposed));
        found.extend(templates.into_iter().map(|(_, entry)| entry));
        Ok(found.into_iter().map(|entry| (entry, own)).collect())
    }

    /// The exposed form of an upstream URI, if it differs. A URI is qualified where it would
    /// resolve to another server or is exposed otherwise, and where it may turn out to be a
    /// resource of another server whose lists were not requested yet. The last does not apply to
    /// web URIs, because clients open those themselves.
    pub fn exposed_uri(&self, server: &ServerName, own: &str) -> Option<String> {
        self.exposed_uri_within(server, own, &LookupWork::default())
    }

    /// [`exposed_uri`](Self::exposed_uri), with a shared work limit. A URI whose lookup exceeds it
    /// is qualified.
    pub(crate) fn exposed_uri_within(
        &self,
        server: &ServerName,
        own: &str,
        work: &LookupWork,
    ) -> Option<String> {
        if may_be_misread(own) {
            return Some(qualified_uri(server, own));
        }
        let Ok(meant) = self.resolve_within(own, work) else {
            return Some(qualified_uri(server, own));
        };
        let meant = closest(meant);
        if meant.is_empty() && self.may_belong_to_other(server, own) {
            return Some(qualified_uri(server, own));
        }
        let leads_here = meant.iter().all(|(entry, _)| entry.server.name == *server);
        let is_shown_so = meant.first().is_none_or(|(entry, _)| entry.is_exposed_unqualified());
        let is_resource = meant.iter().any(|(entry, _)| entry.kind == ItemKind::Resource);
        let is_sure = is_resource || is_web_uri(own) || !self.has_unlisted_elsewhere(server);
        let is_bare = leads_here
            && is_shown_so
            && is_sure
            && parse_qualified_uri(own).is_none()
            && (is_resource || !self.is_spelled_elsewhere(server, own, work));
        (!is_bare).then(|| qualified_uri(server, own))
    }
}

impl Catalog {
    /// Whether a server may have a resource with this upstream URI: it lists it, or may have it
    /// unlisted.
    pub fn may_have(&self, server: &ServerName, own: &str) -> bool {
        if !self.resolve(&qualified_uri(server, own)).is_empty() {
            return true;
        }
        let is_listing =
            |scheme: String| self.listing_scheme(&scheme).any(|(listing, _)| listing == server);
        let serves = self.servers().any(|it| it.name == *server && it.serves_resources);
        serves && scheme(own).filter(|scheme| is_web(scheme)).is_none_or(is_listing)
    }

    /// Whether a server other than this one may have resources whose list was not requested yet.
    pub(crate) fn has_unlisted_elsewhere(&self, server: &ServerName) -> bool {
        self.servers().any(|it| it.name != *server && it.has_unasked_resources)
    }

    /// Whether a client that normalises URIs may confuse one with a URI that another server lists.
    /// True if the lookup exceeds its work limit.
    pub(crate) fn is_spelled_elsewhere(
        &self,
        server: &ServerName,
        own: &str,
        work: &LookupWork,
    ) -> bool {
        let is_other = |entry: &&Entry| entry.server.name != *server;
        let find = || -> Result<bool, WorkExceeded> {
            work.spend(own.len() as u64)?;
            let spellings = UriSpellings::of(own);
            for entry in self.resources_spelled(&spellings) {
                work.spend_on_step()?;
                if is_other(&entry) {
                    return Ok(true);
                }
            }
            for entry in self.templates_spelled(&spellings, work)?.iter().filter(|it| is_other(it))
            {
                let form = entry.item.template();
                for text in spellings.forms() {
                    work.spend_on_match(form.pieces().count(), text)?;
                }
                if spellings.fit(form) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        find().unwrap_or(true)
    }

    /// Whether no list contains a URI. False if the lookup exceeds its work limit.
    pub(crate) fn is_unlisted(&self, own: &str, work: &LookupWork) -> bool {
        self.resolve_within(own, work).is_ok_and(|found| found.is_empty())
    }

    /// Whether a URI that no list contains could be read from another server than this one, by any
    /// caller. The rules of a caller may leave only this one.
    fn may_belong_to_other(&self, server: &ServerName, own: &str) -> bool {
        let is_other = |it: &&CatalogServer| it.name != *server && it.serves_resources;
        match scheme(own).filter(|scheme| is_web(scheme)) {
            Some(scheme) => self.listing_scheme(&scheme).any(|(listing, _)| listing != server),
            None => self.servers().any(|it| is_other(&it)),
        }
    }
}

impl Entry {
    /// Whether it is exposed with its upstream URI.
    fn is_exposed_unqualified(&self) -> bool {
        *self.exposed == *self.name()
    }
}

fn is_web_uri(address: &str) -> bool {
    scheme(address).is_some_and(|scheme| is_web(&scheme))
}

/// Selects the closest entries: resources before templates and, if there are several servers, only
/// entries that are exposed unqualified, if there are any.
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
