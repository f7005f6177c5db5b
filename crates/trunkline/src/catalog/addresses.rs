//! Where addresses lead, and what callers call them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Catalog, Entry, Kind};
use crate::name::{Pieces, ServerName, address_of, split_address};

impl Catalog {
    /// The entries that an address may mean and what their servers call it: of each server a
    /// resource of that address, or else the templates that it fits. Resources come first, then
    /// templates, the closest first.
    ///
    /// An address in the form that says whose it is leads to that server only, whether or not it is
    /// shown in that form.
    pub fn resolve<'u>(&self, address: &'u str) -> Vec<(&Entry, &'u str)> {
        let (server, own) = match split_address(address) {
            Some((server, own)) => (Some(server), own),
            None => (None, address),
        };
        let is_meant =
            |entry: &&Entry| server.as_ref().is_none_or(|server| entry.server.name == *server);
        let resources = self.entries(Kind::Resource).iter().filter(is_meant);
        let mut found: Vec<_> = resources.filter(|entry| entry.name() == own).collect();
        let exact: BTreeSet<_> = found.iter().map(|entry| &entry.server.name).collect();
        let templates = self.entries(Kind::ResourceTemplate).iter().filter(is_meant);
        let mut templates: Vec<_> = templates
            .filter(|entry| !exact.contains(&entry.server.name))
            .map(|entry| (template_pieces(entry.name()), entry))
            .filter(|(pieces, _)| pieces.matches(own))
            .collect();
        templates.sort_by_key(|(pieces, entry)| (Reverse(pieces.given()), &entry.exposed));
        found.extend(templates.into_iter().map(|(_, entry)| entry));
        found.into_iter().map(|entry| (entry, own)).collect()
    }

    /// What callers call an address of a server, if that is not what the server calls it: where the
    /// bare address would lead elsewhere, or is not what is shown.
    pub fn exposed_address(&self, server: &ServerName, own: &str) -> Option<String> {
        let meant = closest(self.resolve(own));
        let leads_here = meant.iter().all(|(entry, _)| entry.server.name == *server);
        let is_shown_so = meant.first().is_none_or(|(entry, _)| entry.is_shown_bare());
        let is_bare = leads_here && is_shown_so && split_address(own).is_none();
        (!is_bare).then(|| address_of(server, own))
    }
}

impl Entry {
    /// Whether it is shown under the address that its server gave it.
    fn is_shown_bare(&self) -> bool {
        *self.exposed == *self.name()
    }
}

/// Of what an address may mean, what it does mean: resources before templates. If they are of
/// several servers, only what is shown as bare as the address is, if anything is.
pub(crate) fn closest<T>(mut found: Vec<(&Entry, T)>) -> Vec<(&Entry, T)> {
    if found.iter().any(|(entry, _)| entry.kind == Kind::Resource) {
        found.retain(|(entry, _)| entry.kind == Kind::Resource);
    }
    let servers: BTreeSet<_> = found.iter().map(|(entry, _)| &entry.server.name).collect();
    if servers.len() > 1 && found.iter().any(|(entry, _)| entry.is_shown_bare()) {
        found.retain(|(entry, _)| entry.is_shown_bare());
    }
    found
}

/// What is given in a template of addresses. Every expression may stand for anything.
fn template_pieces(template: &str) -> Pieces {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else { break };
        pieces.push(before);
        rest = after;
    }
    pieces.push(rest);
    Pieces::new(pieces)
}
