//! Where a URI is read that no list names (TOOL-14): by the one server that can be meant.

use std::collections::BTreeSet;

use super::View;
use super::route::RouteError;
use crate::catalog::{Entry, ItemKind};
use crate::name::{MAX_URI_BYTES, ServerName, UriSpellings, is_web, parse_qualified_uri, scheme};
use crate::policy::{Decision, hides_unlisted};

impl View {
    /// The resource at a URI that no list names, of the server that can be meant: the one that the address
    /// says, the only one that lists URIs of that scheme, or the only one with resources. A URI of the web
    /// is read by a server only if that lists such URIs. Servers that the caller may not read the URI from
    /// make no difference.
    pub(super) fn unlisted(&self, address: &str) -> Result<Entry, RouteError<'_>> {
        let mut candidates = self.candidates(address);
        match (candidates.pop(), candidates.as_slice()) {
            (None, _) => Err(self.unknown(ItemKind::Resource, address)),
            (Some(entry), []) => Ok(entry),
            (Some(last), others) => {
                let servers = others.iter().chain([&last]).map(|entry| entry.server().name.clone());
                Err(RouteError::Unlisted {
                    address: address.to_owned(),
                    suggestions: self.suggestions(ItemKind::Resource, address),
                    servers: servers.collect(),
                })
            }
        }
    }

    /// What the caller calls a URI of a server, if that is not what the server calls it. A URI that no list
    /// names stays as it is if it leads to this server, or to an error that names it as one of several, and
    /// all other servers were asked for their lists: else one of them may list it.
    pub(crate) fn exposed_uri(&self, server: &ServerName, own: &str) -> Option<String> {
        let exposed = self.catalog().exposed_uri(server, own)?;
        let is_bare = parse_qualified_uri(own).is_none()
            && self.catalog().is_unlisted(own)
            && !self.catalog().has_unlisted_elsewhere(server);
        let may_mean = |entry: Entry| entry.server().name == *server;
        if is_bare && self.candidates(own).into_iter().any(may_mean) {
            return None;
        }
        Some(exposed)
    }

    /// The resources that servers could have under a URI, of those servers that the caller may read it
    /// from.
    fn candidates(&self, address: &str) -> Vec<Entry> {
        let (server, own) = match parse_qualified_uri(address) {
            Some((server, own)) => (Some(server), own),
            None => (None, address),
        };
        if own.trim().is_empty() || own.len() > MAX_URI_BYTES || own.chars().any(char::is_control) {
            return Vec::new();
        }
        let mut entries: Vec<_> = self.catalog().unlisted(own, address).collect();
        match (server, scheme(own)) {
            (Some(server), _) => entries.retain(|entry| entry.server().name == server),
            (None, Some(scheme)) => {
                let listing = self.servers_listing(&scheme);
                // Before the rules are asked: what is denied at a server that lists the scheme is not
                // asked of another one instead.
                if !listing.is_empty() || is_web(&scheme) {
                    entries.retain(|entry| listing.contains(&entry.server().name));
                }
            }
            (None, None) => {}
        }
        let spellings = UriSpellings::of(own);
        entries.retain(|entry| !self.hides_unlisted(entry, &spellings));
        entries
    }

    /// Whether a rule hides an unlisted resource under any spelling of its URI, or a hidden resource or
    /// a denied template of the same server covers it.
    fn hides_unlisted(&self, entry: &Entry, spellings: &UriSpellings) -> bool {
        matches!(self.decide(entry), Decision::Hide(_))
            || hides_unlisted((&self.rules, &self.caller), entry, spellings)
            || self.hidden_under(entry, spellings).is_some()
            || self.denied_template(entry, spellings).is_some()
    }

    /// The servers that show the caller a resource or a template of a scheme.
    fn servers_listing(&self, wanted: &str) -> BTreeSet<&ServerName> {
        let kinds = [ItemKind::Resource, ItemKind::ResourceTemplate];
        let entries = kinds.iter().flat_map(|kind| self.catalog().entries(*kind));
        let of_scheme = entries.filter(|entry| scheme(entry.name()).as_deref() == Some(wanted));
        let mut listing = BTreeSet::new();
        for entry in of_scheme {
            if !listing.contains(&entry.server().name) && !self.is_hidden(entry) {
                listing.insert(&entry.server().name);
            }
        }
        listing
    }
}
