//! Where addresses lead, and what callers call them.

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

/// Finds entries by the URIs that their servers gave them, and by other spellings of those. A result may
/// link to as many resources as fit into it, and a list may have thousands of templates: no lookup goes
/// through a list.
#[derive(Clone, Debug)]
pub(super) struct UriIndex {
    hasher: RandomState,
    /// Places of resources, by the hash of their own address.
    resources: Places,
    /// Places of resources, by the hash of the normalised form of their URI.
    spelled_resources: Places,
    /// Templates, by their text before the first expression.
    templates: PrefixIndex,
    /// Templates, by the text of their normalised form before the first expression.
    spelled_templates: PrefixIndex,
    /// Places of templates, by the hash of their normalised form without expressions.
    plain_templates: Places,
    /// Resources and templates, by their scheme and their server.
    schemes: HashMap<String, BTreeMap<ServerName, Vec<(ItemKind, u32)>>>,
}

/// Places of entries by a hash.
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
    /// The resources that their servers call so.
    fn resources_at(&self, own: &str) -> impl Iterator<Item = &Entry> {
        let resources = self.entries(ItemKind::Resource);
        let places = self.addresses.at(&self.addresses.resources, own);
        let found = places.filter_map(|place| resources.get(place as usize));
        found.filter(move |entry| entry.name() == own)
    }

    /// The resources whose URI is the same as a spelling of one.
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

    /// The templates that a URI may fit, as it is written: those whose text before the first expression it
    /// starts with.
    fn templates_like(&self, own: &str, work: &LookupWork) -> Result<Vec<&Entry>, WorkExceeded> {
        let templates = self.entries(ItemKind::ResourceTemplate);
        let start = |place| template_at(templates, place).map_or("", |it| it.own().start());
        let places = self.addresses.templates.prefixes(own, start, work)?;
        Ok(places.into_iter().filter_map(|place| templates.get(place as usize)).collect())
    }

    /// The templates that a spelling of a URI may fit.
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

    /// The entries that an address may mean and what their servers call it: of each server a
    /// resource of that address, or else the templates that it fits. Resources come first, then
    /// templates, the closest first. Nothing is found where that would take too much work.
    ///
    /// An address in the form that says whose it is leads to that server only, whether or not it is
    /// shown in that form.
    pub fn resolve<'u>(&self, address: &'u str) -> Vec<(&Entry, &'u str)> {
        self.resolve_within(address, &LookupWork::default()).unwrap_or_default()
    }

    /// [`resolve`](Self::resolve), as part of some other work.
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
            // Templates of the server would not count beside it.
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

    /// What callers call an address of a server, if that is not what the server calls it: where the
    /// bare address would lead elsewhere, or is not what is shown; and where it may turn out to be a
    /// resource of another server that was not asked for its lists yet. Addresses of the web are not
    /// held against such a server, because clients open them themselves.
    pub fn exposed_uri(&self, server: &ServerName, own: &str) -> Option<String> {
        self.exposed_uri_within(server, own, &LookupWork::default())
    }

    /// [`exposed_uri`](Self::exposed_uri), as part of some other work. A URI that would take too much of it is
    /// qualified.
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
    /// Whether a server can be asked for a URI in its own words: it lists it, or may have it without
    /// listing it.
    pub fn may_have(&self, server: &ServerName, own: &str) -> bool {
        if !self.resolve(&qualified_uri(server, own)).is_empty() {
            return true;
        }
        let is_listing =
            |scheme: String| self.listing_scheme(&scheme).any(|(listing, _)| listing == server);
        let serves = self.servers().any(|it| it.name == *server && it.serves_resources);
        serves && scheme(own).filter(|scheme| is_web(scheme)).is_none_or(is_listing)
    }

    /// Whether a server other than this one may have resources for which it was not asked yet.
    pub(crate) fn has_unlisted_elsewhere(&self, server: &ServerName) -> bool {
        self.servers().any(|it| it.name != *server && it.has_unasked_resources)
    }

    /// Whether a client that normalises URIs may take one for a URI that another server lists. One that would
    /// take too much work to look for counts as such.
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

    /// Whether no list names a URI. One that would take too much work to look for counts as listed.
    pub(crate) fn is_unlisted(&self, own: &str, work: &LookupWork) -> bool {
        self.resolve_within(own, work).is_ok_and(|found| found.is_empty())
    }

    /// Whether a URI that no list names could be read from another server than this one, for any caller.
    /// The rules of a caller may leave only that one.
    fn may_belong_to_other(&self, server: &ServerName, own: &str) -> bool {
        let is_other = |it: &&CatalogServer| it.name != *server && it.serves_resources;
        match scheme(own).filter(|scheme| is_web(scheme)) {
            Some(scheme) => self.listing_scheme(&scheme).any(|(listing, _)| listing != server),
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
