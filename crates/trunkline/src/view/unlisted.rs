//! Resolves URIs that no list contains (TOOL-14) to the only server that can have them.

use std::collections::BTreeSet;

use super::View;
use super::resources::NoResource;
use super::route::RouteError;
use crate::catalog::{CatalogServer, Entry, LookupWork, WorkExceeded};
use crate::name::{
    MAX_URI_BYTES, ServerName, UriSpellings, is_web, may_be_misread, parse_qualified_uri,
    qualified_uri, scheme,
};
use crate::policy::{Decision, Visibility, hides_unlisted, is_unlimited, unavailable};

/// Resources with an unlisted URI that servers could have.
#[derive(Default)]
struct Candidates {
    entries: Vec<Entry>,
    /// Whether neither the URI nor a list with its scheme determines the server.
    is_any: bool,
}

impl View {
    /// The resource with an unlisted URI, of the only server that can have it: the one that a
    /// qualified URI names, the only one that lists URIs of that scheme, or the only one with
    /// resources. A server is the only one with resources once all others have listed theirs. A web
    /// URI is read from a server only if it lists such URIs. Servers that the caller may not read
    /// the URI from have no influence.
    pub(super) fn unlisted(
        &self,
        address: &str,
        work: &LookupWork,
    ) -> Result<Entry, NoResource<'_>> {
        let Candidates { mut entries, is_any } = self.candidates(address, work)?;
        match (entries.pop(), entries.as_slice()) {
            (None, _) => Err(NoResource::Unknown),
            (Some(entry), []) => match self.unasked_elsewhere(&entry).filter(|_| is_any) {
                Some(other) => Err(RouteError::Unasked {
                    address: address.into(),
                    reason: unavailable(other),
                    server: other.name.clone(),
                    form: qualified_uri(&entry.server().name, entry.name()).into(),
                }
                .into()),
                None => Ok(entry),
            },
            (Some(last), others) => {
                let servers = others.iter().chain([&last]).map(|entry| entry.server().name.clone());
                Err(NoResource::Unlisted(servers.collect()))
            }
        }
    }

    /// Another server that may list a URI for the caller, and has not listed its resources yet
    /// because it is starting or failed to start.
    fn unasked_elsewhere(&self, entry: &Entry) -> Option<&CatalogServer> {
        let (server, uri) = (&entry.server().name, entry.name());
        let mut unasked = self.catalog().servers().filter(|it| it.has_unasked_resources);
        unasked.find(|it| {
            it.name != *server && self.could_contain_uri(&it.name, uri) == Visibility::Possible
        })
    }

    /// The exposed form of an upstream URI, if it differs. An unlisted URI stays unqualified if it
    /// resolves to this server, or to an error that names it as one of several, and the lists of
    /// all other servers were requested: otherwise one of them may list it.
    pub(crate) fn exposed_uri(
        &self,
        server: &ServerName,
        own: &str,
        work: &LookupWork,
    ) -> Option<String> {
        let exposed = self.catalog().exposed_uri_within(server, own, work)?;
        let is_bare = parse_qualified_uri(own).is_none()
            && !may_be_misread(own)
            && self.catalog().is_unlisted(own, work)
            && !self.catalog().is_spelled_elsewhere(server, own, work)
            && !self.catalog().has_unlisted_elsewhere(server);
        if is_bare {
            let candidates = self.candidates(own, work).unwrap_or_default();
            if candidates.entries.iter().any(|entry| entry.server().name == *server) {
                return None;
            }
        }
        Some(exposed)
    }

    /// The resources with this URI that servers could have, of servers that the caller may read it
    /// from.
    fn candidates(&self, address: &str, work: &LookupWork) -> Result<Candidates, WorkExceeded> {
        let (server, own) = match parse_qualified_uri(address) {
            Some((server, own)) => (Some(server), own),
            None => (None, address),
        };
        if own.trim().is_empty() || own.len() > MAX_URI_BYTES || own.chars().any(char::is_control) {
            return Ok(Candidates::default());
        }
        let mut listing = BTreeSet::new();
        let mut is_any = server.is_none();
        if let (None, Some(scheme)) = (&server, scheme(own)) {
            listing = self.servers_listing(&scheme, work)?;
            // Computed before the rules for the URI are evaluated: a URI that is denied on a server
            // that lists the scheme is not read from another one instead.
            is_any = listing.is_empty() && !is_web(&scheme);
        }
        let is_meant = |it: &ServerName| match &server {
            Some(server) => it == server,
            None => is_any || listing.contains(it),
        };
        work.spend(own.len() as u64)?;
        let spellings = UriSpellings::of(own);
        let mut candidates = Candidates { is_any, ..Candidates::default() };
        for entry in self.catalog().unlisted((own, address), is_meant) {
            work.spend_on_decision()?;
            work.spend(own.len() as u64)?;
            if !self.hides_unlisted(&entry, &spellings, work)? {
                candidates.entries.push(entry);
            }
        }
        Ok(candidates)
    }

    /// Whether a rule hides an unlisted resource under any spelling of its URI, or a hidden
    /// resource or a denied template of the same server covers it.
    fn hides_unlisted(
        &self,
        entry: &Entry,
        spellings: &UriSpellings,
        work: &LookupWork,
    ) -> Result<bool, WorkExceeded> {
        if is_unlimited(&self.rules, &self.caller, &entry.server().name) {
            return Ok(false);
        }
        Ok(matches!(self.decide(entry), Decision::Hide(_))
            || hides_unlisted(self.caller_rules(), entry, spellings)
            || self.hidden_under(entry, spellings, work)?.is_some()
            || self.denied_template(entry, spellings, work)?.is_some())
    }

    /// The servers with a visible resource or template of a scheme.
    fn servers_listing(
        &self,
        scheme: &str,
        work: &LookupWork,
    ) -> Result<BTreeSet<&ServerName>, WorkExceeded> {
        let mut listing = BTreeSet::new();
        for (server, entries) in self.catalog().listing_scheme(scheme) {
            for entry in entries {
                work.spend_on_decision()?;
                if !self.is_hidden(entry) {
                    listing.insert(server);
                    break;
                }
            }
        }
        Ok(listing)
    }
}
