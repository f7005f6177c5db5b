//! Resolves URIs to the servers that serve them. The work of a lookup is limited, because lists
//! come from servers and URIs from clients.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};

use super::View;
use super::route::{ResourceRoute, RouteError, RoutedEntry, shown};
use crate::catalog::{Entry, ItemKind, LookupWork, WorkExceeded, closest};
use crate::name::{MAX_URI_BYTES, ServerName, UriSpellings, parse_qualified_uri, qualified_uri};
use crate::policy::{
    Decision, RuleResult, Visibility, explain_uri, hides_uri, is_unlimited, unavailable,
};

/// The work limit for all lookups of one request, as a multiple of the limit for a single URI.
/// Ordinary URIs need a small part of that each.
const MAX_LOOKUPS_AT_FULL_WORK: u64 = 16;

/// Maximum work of deciding about one update of a resource, in units of about a nanosecond. A
/// server may send thousands of them, and each needs a decision for every subscribed client.
const MAX_UPDATE_WORK: u64 = 500_000;

/// The reason why a URI resolves to no resource. Contains no suggestions, because those need a scan
/// of all resources.
pub(super) enum NoResource<'v> {
    /// The caller sees no such resource.
    Unknown,
    /// No list contains it, and these servers could have it.
    Unlisted(Vec<ServerName>),
    /// It is too long, or the lookup exceeded its work limit.
    NotLookedUp,
    /// Any other error.
    Error(RouteError<'v>),
}

impl From<WorkExceeded> for NoResource<'_> {
    fn from(_: WorkExceeded) -> Self {
        Self::NotLookedUp
    }
}

impl<'v> From<RouteError<'v>> for NoResource<'v> {
    fn from(error: RouteError<'v>) -> Self {
        Self::Error(error)
    }
}

/// Looks up many URIs of one request, with one work limit for all of them.
///
/// ```
/// # use std::sync::Arc;
/// # use trunkline::catalog::{Catalog, CatalogBuilder};
/// # use trunkline::policy::{Caller, Rules};
/// # use trunkline::{config, view::View};
/// # let config = config::parse("mcp.json", "{}").config;
/// # let rules = Rules::new(&config, config.agents().named.clone());
/// # let catalog = Catalog::build(&CatalogBuilder::new(&config));
/// # let view = View::new(Arc::new(catalog), Arc::new(rules), Arc::new(Caller::default()));
/// let mut lookup = view.resource_lookup();
/// assert!(lookup.find("x://one").is_none());
/// ```
#[derive(Debug)]
pub struct ResourceLookup<'v> {
    view: &'v View,
    work: LookupWork,
}

impl<'v> ResourceLookup<'v> {
    /// The resource with a URI, as in [`View::route_resource`]. Also `None` if the lookups of the
    /// request exceed the work limit.
    pub fn find(&mut self, address: &str) -> Option<ResourceRoute<'v>> {
        self.view.find_resource(address, &self.work).ok()
    }
}

impl View {
    /// Resolves a URI to the server with a resource of that URI, or else to the server with a
    /// template that it matches, or else to the only server that can have it. Items that the caller
    /// may not see have no influence.
    pub fn route_resource(&self, address: &str) -> Result<ResourceRoute<'_>, RouteError<'_>> {
        let kind = ItemKind::Resource;
        self.find_resource(address, &LookupWork::default()).map_err(|none| match none {
            NoResource::Unknown => self.unknown(kind, address),
            NoResource::Unlisted(servers) => RouteError::Unlisted {
                address: address.to_owned(),
                suggestions: self.suggestions(kind, address),
                servers,
            },
            NoResource::NotLookedUp => {
                RouteError::Unknown { kind, name: shown(address), suggestions: Vec::new() }
            }
            NoResource::Error(error) => error,
        })
    }

    /// Whether the caller may receive updates of a resource, by its upstream URI. A resource that
    /// the server no longer lists is treated like one that it never listed.
    pub fn may_hear_of(&self, server: &ServerName, own: &str) -> bool {
        let mut servers = self.catalog.servers();
        if !servers.any(|it| it.name == *server && it.serves_resources) {
            // Its lists are unknown, so the rules alone decide.
            return self.could_contain_uri(server, own) == Visibility::Possible;
        }
        let work = LookupWork::within(MAX_UPDATE_WORK);
        match self.find_resource(&qualified_uri(server, own), &work) {
            Ok(_) | Err(NoResource::Error(RouteError::Denied(_))) => true,
            Err(_) => false,
        }
    }

    /// Whether the caller sees any item of a server, and so may receive its notifications that
    /// belong to no request.
    pub fn may_hear_from(&self, server: &ServerName) -> bool {
        self.could_contain(server)
            && (self.is_unlimited(server) || self.visible_entry(server).is_some())
    }

    /// An item of a server that the caller sees, or would see if the server were running.
    pub(crate) fn visible_entry(&self, server: &ServerName) -> Option<&Entry> {
        let mut entries = ItemKind::ALL.iter().flat_map(|kind| self.catalog.entries(*kind));
        entries.find(|entry| entry.server().name == *server && !self.is_hidden(entry))
    }

    /// Looks up several URIs for one request.
    pub fn resource_lookup(&self) -> ResourceLookup<'_> {
        ResourceLookup { view: self, work: LookupWork::of_requests(MAX_LOOKUPS_AT_FULL_WORK) }
    }

    pub(super) fn find_resource(
        &self,
        address: &str,
        work: &LookupWork,
    ) -> Result<ResourceRoute<'_>, NoResource<'_>> {
        let own = parse_qualified_uri(address).map_or(address, |(_, own)| own);
        if own.len() > MAX_URI_BYTES {
            return Err(NoResource::NotLookedUp);
        }
        let known = self.catalog.resolve_within(address, work)?;
        let meant = closest(self.visible(&known, work)?);
        let servers: BTreeSet<_> = meant.iter().map(|(entry, _)| &entry.server().name).collect();
        if servers.len() > 1 {
            let forms = servers.iter().map(|server| qualified_uri(server, address)).collect();
            return Err(RouteError::Ambiguous { address: address.to_owned(), forms }.into());
        }
        let mut denied = None;
        for (entry, uri) in meant {
            match self.decide(entry) {
                Decision::Allow => {
                    let entry = RoutedEntry::Listed(entry);
                    return Ok(ResourceRoute { entry, uri: uri.to_owned() });
                }
                Decision::Deny(reason) => denied = denied.or(Some(reason)),
                Decision::Hide(_) => {}
            }
        }
        if let Some(reason) = denied {
            return Err(RouteError::Denied(reason).into());
        }
        if let Some(hidden) = self.hidden_at(address, &known) {
            return Err(hidden.into());
        }
        self.find_unlisted(address, work)
    }

    fn find_unlisted(
        &self,
        address: &str,
        work: &LookupWork,
    ) -> Result<ResourceRoute<'_>, NoResource<'_>> {
        let entry = self.unlisted(address, work)?;
        let mut servers = self.catalog.servers();
        let server = servers.find(|server| server.name == entry.server().name);
        if let Some(reason) = server.and_then(unavailable) {
            return Err(RouteError::Denied(reason).into());
        }
        let uri = entry.name().to_owned();
        Ok(ResourceRoute { entry: RoutedEntry::Unlisted(Box::new(entry)), uri })
    }

    /// The resources and templates among `known` by which the caller may read the URI.
    fn visible<'v, 'u>(
        &self,
        known: &[(&'v Entry, &'u str)],
        work: &LookupWork,
    ) -> Result<Vec<(&'v Entry, &'u str)>, WorkExceeded> {
        // Whether a URI is hidden depends on the server alone. Computed for each of its templates,
        // the work would be the product of resources and templates.
        let mut covers = BTreeMap::new();
        let mut visible = Vec::new();
        for (entry, uri) in known {
            work.spend_on_decision()?;
            if self.is_hidden(entry) {
                continue;
            }
            if entry.kind() != ItemKind::Resource {
                let cover = match covers.entry(&entry.server().name) {
                    Place::Occupied(found) => found.into_mut(),
                    Place::Vacant(place) => place.insert(self.cover(entry, uri, work)?),
                };
                if cover.hides(entry) {
                    continue;
                }
            }
            visible.push((*entry, *uri));
        }
        Ok(visible)
    }

    /// The reason why the resources and templates that a URI may refer to are hidden, if the caller
    /// may know it.
    fn hidden_at<'v>(
        &'v self,
        address: &str,
        known: &[(&'v Entry, &str)],
    ) -> Option<RouteError<'v>> {
        let mut hidden = known.iter().filter_map(|(entry, _)| match self.decide(entry) {
            Decision::Hide(reason) => self.disclosed(entry, address, reason),
            _ => None,
        });
        hidden.next()
    }

    /// The reason why a URI that matches a template is hidden: a hidden resource with another
    /// spelling of the URI, a rule for the URI itself, or a denied template.
    fn cover(
        &self,
        template: &Entry,
        uri: &str,
        work: &LookupWork,
    ) -> Result<HiddenBy, WorkExceeded> {
        let applied = self.caller_rules();
        // Checked before spellings are computed: most servers have no rules.
        if is_unlimited(applied.rules, applied.caller, &template.server().name) {
            return Ok(HiddenBy::None);
        }
        work.spend(uri.len() as u64)?;
        let spellings = UriSpellings::of(uri);
        if self.hidden_under(template, &spellings, work)?.is_some()
            || hides_uri(applied, template, uri, &spellings).is_some()
        {
            return Ok(HiddenBy::Address);
        }
        let denied = self.denied_template(template, &spellings, work)?;
        Ok(denied.map_or(HiddenBy::None, HiddenBy::Template))
    }

    /// The literal length of the most specific denied template that a URI matches, of the server of
    /// an entry.
    pub(super) fn denied_template(
        &self,
        entry: &Entry,
        spellings: &UriSpellings,
        work: &LookupWork,
    ) -> Result<Option<usize>, WorkExceeded> {
        let mut most = None;
        for template in self.catalog.templates_spelled(spellings, work)? {
            if template.server().name != entry.server().name {
                continue;
            }
            work.spend_on_decision()?;
            let is_denied = match self.decide(template) {
                Decision::Hide(reason) => reason.excludes(),
                Decision::Allow | Decision::Deny(_) => false,
            };
            let form = template.item().template();
            for text in spellings.forms() {
                work.spend_on_match(form.pieces().count(), text)?;
            }
            if is_denied && spellings.fit(form) {
                most = most.max(Some(form.own().given()));
            }
        }
        Ok(most)
    }

    /// A hidden resource whose URI may be the same, of the server of a template.
    pub(super) fn hidden_under(
        &self,
        template: &Entry,
        spellings: &UriSpellings,
        work: &LookupWork,
    ) -> Result<Option<&Entry>, WorkExceeded> {
        let server = &template.server().name;
        let spelled = self.catalog.resources_spelled(spellings);
        for entry in spelled.filter(|entry| entry.server().name == *server) {
            work.spend_on_decision()?;
            if self.is_hidden(entry) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The results of all rules for a URI, whether or not the caller may see it (TOOL-11). Rules
    /// may apply to the URI as well as to the template that it matches.
    pub fn explain_uri<'v>(&'v self, entry: &'v Entry, address: &str) -> Vec<RuleResult<'v>> {
        let own = parse_qualified_uri(address).map_or(address, |(_, own)| own);
        if entry.kind() != ItemKind::ResourceTemplate || own == entry.name() {
            return self.explain(entry);
        }
        let spellings = UriSpellings::of(own);
        match self.hidden_under(entry, &spellings, &LookupWork::default()) {
            Ok(Some(hidden)) => self.explain(hidden),
            Ok(None) | Err(WorkExceeded) => {
                explain_uri(self.caller_rules(), entry, own, &spellings)
            }
        }
    }
}

/// The reason why a URI that matches a template of its server is hidden.
enum HiddenBy {
    /// It is not hidden.
    None,
    /// A rule for the URI, or a hidden resource: it is hidden under every template.
    Address,
    /// A denied template, by the length of its literals. It hides the URI under visible templates
    /// that are less specific; next to a more specific one, it covers more than this URI.
    Template(usize),
}

impl HiddenBy {
    fn hides(&self, template: &Entry) -> bool {
        match self {
            Self::None => false,
            Self::Address => true,
            Self::Template(given) => *given > template.item().template().own().given(),
        }
    }
}
