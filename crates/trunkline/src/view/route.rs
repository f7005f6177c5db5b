//! From an exposed name to what it stands for; the one place where that is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::View;
use crate::catalog::{Entry, Kind, closest};
use crate::config::{Suggestions, printable};
use crate::name::{MAX_ADDRESS_BYTES, Spellings, address_of, split_address};
use crate::policy::{Decision, Reason, Step, explain_address, hides_address};

/// Most names that are suggested for one that does not exist.
const MAX_SUGGESTIONS: usize = 3;

/// Longest part of an unknown name that a message repeats, in characters.
const SHOWN_NAME: usize = 80;

/// Why a name leads nowhere.
#[derive(Clone, Debug)]
pub enum NoRoute<'v> {
    /// The caller knows nothing of that name. Whether it is hidden or does not exist makes no
    /// difference.
    Unknown {
        /// What it would be.
        kind: Kind,
        /// The name.
        name: String,
        /// Names the caller knows that may have been meant.
        suggestions: Vec<String>,
    },
    /// Several servers have something under that address.
    Ambiguous {
        /// The address.
        address: String,
        /// Those that say whose they are, one for each server.
        forms: Vec<String>,
    },
    /// The caller may know of it, and cannot have it now.
    Denied(Reason<'v>),
}

impl fmt::Display for NoRoute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(reason) => reason.fmt(f),
            Self::Ambiguous { address, forms } => {
                let address = shown(address);
                let forms: Vec<_> = forms.iter().map(|form| printable(form)).collect();
                write!(
                    f,
                    "several servers have `{address}`; did you mean `{}`?",
                    forms.join("` or `")
                )
            }
            Self::Unknown { kind, name, suggestions } => {
                let name = shown(name);
                write!(f, "there is no {} `{name}`", kind.as_str())?;
                match &**suggestions {
                    [] => Ok(()),
                    names => write!(f, "; did you mean `{}`?", names.join("` or `")),
                }
            }
        }
    }
}

impl std::error::Error for NoRoute<'_> {}

/// The start of a name for a message.
fn shown(name: &str) -> String {
    printable(&name.chars().take(SHOWN_NAME).collect::<String>())
}

/// Where a resource is read.
#[derive(Clone, Debug)]
pub struct ResourceRoute<'v> {
    /// The resource, or the template that its address fits.
    pub entry: &'v Entry,
    /// Its address in the words of its server.
    pub uri: String,
}

impl View {
    /// What an exposed name stands for, if the caller may have it.
    pub fn route(&self, kind: Kind, exposed: &str) -> Result<&Entry, NoRoute<'_>> {
        let Some(entry) = self.catalog.get(kind, exposed) else {
            return Err(self.unknown(kind, exposed));
        };
        match self.decide(entry) {
            Decision::Allow => Ok(entry),
            Decision::Hide(_) => Err(self.unknown(kind, exposed)),
            Decision::Deny(reason) => Err(NoRoute::Denied(reason)),
        }
    }

    /// Whether the caller may have something of the catalog.
    pub fn admits<'v>(&'v self, entry: &'v Entry) -> Result<(), NoRoute<'v>> {
        match self.decide(entry) {
            Decision::Allow => Ok(()),
            Decision::Deny(reason) => Err(NoRoute::Denied(reason)),
            // It was there a moment ago: nothing else is suggested in its place.
            Decision::Hide(_) => Err(NoRoute::Unknown {
                kind: entry.kind(),
                name: entry.exposed().to_owned(),
                suggestions: Vec::new(),
            }),
        }
    }

    /// Where an address is read: by the server that has a resource of that address, or else by the
    /// server with a template that it fits. What the caller does not know of makes no difference.
    pub fn route_resource(&self, address: &str) -> Result<ResourceRoute<'_>, NoRoute<'_>> {
        let own = split_address(address).map_or(address, |(_, own)| own);
        if own.len() > MAX_ADDRESS_BYTES {
            let (kind, suggestions) = (Kind::Resource, Vec::new());
            return Err(NoRoute::Unknown { kind, name: shown(address), suggestions });
        }
        let mut known = self.catalog.resolve(address);
        // Whether an address spells something hidden depends on the server alone. Asked of each of its
        // templates, that would be as much work as there are pairs of resources and templates.
        let mut spelling_hidden = BTreeMap::new();
        known.retain(|(entry, uri)| {
            let mut spells = || {
                let spells = || self.spells_hidden(entry, uri);
                *spelling_hidden.entry(&entry.server().name).or_insert_with(spells)
            };
            !self.is_hidden(entry) && (entry.kind() == Kind::Resource || !spells())
        });
        let meant = closest(known);
        let servers: BTreeSet<_> = meant.iter().map(|(entry, _)| &entry.server().name).collect();
        if servers.len() > 1 {
            let forms = servers.iter().map(|server| address_of(server, address)).collect();
            return Err(NoRoute::Ambiguous { address: address.to_owned(), forms });
        }
        let mut denied = None;
        for (entry, uri) in meant {
            match self.decide(entry) {
                Decision::Allow => return Ok(ResourceRoute { entry, uri: uri.to_owned() }),
                Decision::Deny(reason) => denied = denied.or(Some(reason)),
                Decision::Hide(_) => {}
            }
        }
        Err(denied.map_or_else(|| self.unknown(Kind::Resource, address), NoRoute::Denied))
    }

    /// The template that is shown under an address, or whose server the address says.
    pub fn route_template(&self, address: &str) -> Result<&Entry, NoRoute<'_>> {
        let kind = Kind::ResourceTemplate;
        let Some((server, own)) = split_address(address) else { return self.route(kind, address) };
        let is_meant = |entry: &&Entry| entry.server().name == server && entry.name() == own;
        let found = self.catalog.entries(kind).iter().find(is_meant);
        self.route(kind, found.map_or(address, Entry::exposed))
    }

    fn is_hidden(&self, entry: &Entry) -> bool {
        matches!(self.decide(entry), Decision::Hide(_))
    }

    /// Whether an address that fits a template may be another spelling for a resource that is hidden,
    /// or is hidden by itself.
    fn spells_hidden(&self, template: &Entry, uri: &str) -> bool {
        let spellings = Spellings::of(uri);
        let rules = (&*self.rules, &*self.caller);
        self.hidden_under(template, &spellings).is_some()
            || hides_address(rules, template, uri, &spellings).is_some()
    }

    /// A hidden resource of the server of a template that an address may mean.
    fn hidden_under(&self, template: &Entry, spellings: &Spellings) -> Option<&Entry> {
        let server = &template.server().name;
        let mut resources = self.catalog.entries(Kind::Resource).iter();
        resources.find(|entry| {
            entry.server().name == *server && self.is_hidden(entry) && spellings.mean(entry.name())
        })
    }

    /// Every rule that has a say about what an address leads to, whether or not the caller may see it
    /// (TOOL-11). Rules may be about an address as well as about the template that it fits.
    pub fn explain_address<'v>(&'v self, entry: &'v Entry, address: &str) -> Vec<Step<'v>> {
        let own = split_address(address).map_or(address, |(_, own)| own);
        if entry.kind() != Kind::ResourceTemplate || own == entry.name() {
            return self.explain(entry);
        }
        let spellings = Spellings::of(own);
        match self.hidden_under(entry, &spellings) {
            Some(hidden) => self.explain(hidden),
            None => explain_address((&self.rules, &self.caller), entry, own, &spellings),
        }
    }

    fn unknown(&self, kind: Kind, name: &str) -> NoRoute<'_> {
        let suggestions = self.suggestions(kind, name);
        NoRoute::Unknown { kind, name: name.to_owned(), suggestions }
    }

    fn suggestions(&self, kind: Kind, name: &str) -> Vec<String> {
        alike(name, &self.entries(kind).collect::<Vec<_>>())
    }

    /// Names that exist, whoever may see them, and that may have been meant: for those who ask why
    /// something is hidden.
    pub fn existing_like(&self, kind: Kind, name: &str) -> Vec<String> {
        alike(name, &self.catalog.entries(kind).iter().collect::<Vec<_>>())
    }
}

/// What may have been meant: first what would have that name if nothing stood against it, then what
/// a server calls so itself, then what looks like it.
fn alike(name: &str, entries: &[&Entry]) -> Vec<String> {
    let is_plain = |entry: &Entry| entry.adjusted().is_some_and(|it| *it.plain == *name);
    let plain = entries.iter().filter(|entry| is_plain(entry));
    let own = entries.iter().filter(|entry| entry.name() == name && !is_plain(entry));
    let meant = plain.chain(own).map(|entry| entry.exposed());
    let mut found: Vec<&str> = meant.take(MAX_SUGGESTIONS).collect();
    let mut near = Suggestions::default();
    while found.len() < MAX_SUGGESTIONS {
        let others = entries.iter().map(|entry| entry.exposed());
        let others = others.filter(|exposed| !found.contains(exposed));
        let Some(nearest) = near.nearest(name, others) else { break };
        found.push(nearest);
    }
    found.into_iter().map(str::to_owned).collect()
}
