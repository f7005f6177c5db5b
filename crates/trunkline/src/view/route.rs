//! From an exposed name to what it stands for; the one place where that is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use super::View;
use crate::catalog::{Entry, ItemKind, closest, template_pieces};
use crate::config::{Suggestions, escape_control};
use crate::name::{MAX_URI_BYTES, ServerName, UriSpellings, parse_qualified_uri, qualified_uri};
use crate::policy::{
    Decision, Disclosure, Reason, RuleResult, explain_uri, hides_uri, unavailable,
};

/// Most names that are suggested for one that does not exist.
const MAX_SUGGESTIONS: usize = 3;

/// Longest part of an unknown name that a message repeats, in characters.
const SHOWN_NAME: usize = 80;

/// Most servers that a message names as those that could have a resource: more are not read.
const MAX_SHOWN_SERVERS: usize = 10;

/// Why a name leads nowhere.
#[derive(Clone, Debug)]
pub enum RouteError<'v> {
    /// The caller knows nothing of that name. Whether it is hidden or does not exist makes no
    /// difference to a caller who does not hear of what is hidden ([`Disclosure::Nothing`]).
    Unknown {
        /// What it would be.
        kind: ItemKind,
        /// The name.
        name: String,
        /// Names the caller knows that may have been meant.
        suggestions: Vec<String>,
    },
    /// A rule hides it from this caller, who may know of that ([`Disclosure::Reasons`]).
    Hidden {
        /// What it is.
        kind: ItemKind,
        /// Its name.
        name: String,
        /// Why it is hidden.
        reason: Reason<'v>,
    },
    /// Several servers have something under that address.
    Ambiguous {
        /// The address.
        address: String,
        /// Those that say whose they are, one for each server.
        forms: Vec<String>,
    },
    /// No list has the URI, and several servers could.
    Unlisted {
        /// The address.
        address: String,
        /// Addresses the caller knows that may have been meant.
        suggestions: Vec<String>,
        /// The servers that could have it.
        servers: Vec<ServerName>,
    },
    /// The caller may know of it, and cannot have it now.
    Denied(Reason<'v>),
}

impl fmt::Display for RouteError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(reason) => reason.fmt(f),
            Self::Ambiguous { address, forms } => {
                let address = shown(address);
                let forms: Vec<_> = forms.iter().map(|form| escape_control(form)).collect();
                write!(
                    f,
                    "several servers have `{address}`; did you mean `{}`?",
                    forms.join("` or `")
                )
            }
            Self::Unlisted { address, suggestions, servers } => {
                let address: String = address.chars().take(SHOWN_NAME).collect();
                f.write_str(&could_have(&address, suggestions, servers))
            }
            Self::Hidden { kind, name, reason } => {
                write!(f, "the {} `{}` is hidden: {reason}", kind.as_str(), shown(name))?;
                match reason.location() {
                    Some(place) => write!(f, " ({})", escape_control(&place.to_string())),
                    None => Ok(()),
                }
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

impl std::error::Error for RouteError<'_> {}

/// The start of a name for a message.
fn shown(name: &str) -> String {
    escape_control(&name.chars().take(SHOWN_NAME).collect::<String>())
}

/// Where a resource is read.
#[derive(Clone, Debug)]
pub struct ResourceRoute<'v> {
    /// The resource, or the template that its address fits.
    pub entry: RoutedEntry<'v>,
    /// Its address in the words of its server.
    pub uri: String,
}

/// An entry of a catalog, or of a resource that no list names.
#[derive(Clone, Debug)]
pub enum RoutedEntry<'v> {
    /// As the catalog has it.
    Listed(&'v Entry),
    /// No list has it; one server can be meant.
    Unlisted(Box<Entry>),
}

impl std::ops::Deref for RoutedEntry<'_> {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        match self {
            Self::Listed(entry) => entry,
            Self::Unlisted(entry) => entry,
        }
    }
}

impl View {
    /// What an exposed name stands for, if the caller may have it.
    pub fn route(&self, kind: ItemKind, exposed: &str) -> Result<&Entry, RouteError<'_>> {
        let Some(entry) = self.catalog.get(kind, exposed) else {
            return Err(self.unknown(kind, exposed));
        };
        match self.decide(entry) {
            Decision::Allow => Ok(entry),
            Decision::Hide(reason) => Err(self
                .disclosed(entry, exposed, reason)
                .unwrap_or_else(|| self.unknown(kind, exposed))),
            Decision::Deny(reason) => Err(RouteError::Denied(reason)),
        }
    }

    /// Whether the caller may have something of the catalog.
    pub fn authorize<'v>(&'v self, entry: &'v Entry) -> Result<(), RouteError<'v>> {
        match self.decide(entry) {
            Decision::Allow => Ok(()),
            Decision::Deny(reason) => Err(RouteError::Denied(reason)),
            // It was there a moment ago: nothing else is suggested in its place.
            Decision::Hide(reason) => {
                let (kind, name) = (entry.kind(), entry.exposed());
                let unknown =
                    || RouteError::Unknown { kind, name: name.to_owned(), suggestions: Vec::new() };
                Err(self.disclosed(entry, name, reason).unwrap_or_else(unknown))
            }
        }
    }

    /// Why something is hidden, for a caller who may know of it.
    fn disclosed<'v>(
        &self,
        entry: &Entry,
        name: &str,
        reason: Reason<'v>,
    ) -> Option<RouteError<'v>> {
        let is_disclosed = self.caller.disclosure() == Disclosure::Reasons;
        is_disclosed.then(|| RouteError::Hidden {
            kind: entry.kind(),
            name: name.to_owned(),
            reason,
        })
    }

    /// Why every resource and template is hidden that an address may mean, for a caller who may know
    /// of it.
    fn hidden_at(&self, address: &str) -> Option<RouteError<'_>> {
        let known = self.catalog.resolve(address).into_iter();
        let mut hidden = known.filter_map(|(entry, _)| match self.decide(entry) {
            Decision::Hide(reason) => self.disclosed(entry, address, reason),
            _ => None,
        });
        hidden.next()
    }

    /// Where an address is read: by the server that has a resource of that address, or else by the
    /// server with a template that it fits, or else by the one server that can be meant. What the caller
    /// does not know of makes no difference.
    pub fn route_resource(&self, address: &str) -> Result<ResourceRoute<'_>, RouteError<'_>> {
        let own = parse_qualified_uri(address).map_or(address, |(_, own)| own);
        if own.len() > MAX_URI_BYTES {
            let (kind, suggestions) = (ItemKind::Resource, Vec::new());
            return Err(RouteError::Unknown { kind, name: shown(address), suggestions });
        }
        let mut known = self.catalog.resolve(address);
        // What hides an address depends on the server alone. Asked of each of its templates, that would be
        // as much work as there are pairs of resources and templates.
        let mut covers = BTreeMap::new();
        known.retain(|(entry, uri)| {
            let mut is_covered = || {
                let cover = || self.cover(entry, uri);
                covers.entry(&entry.server().name).or_insert_with(cover).hides(entry)
            };
            !self.is_hidden(entry) && (entry.kind() == ItemKind::Resource || !is_covered())
        });
        let meant = closest(known);
        let servers: BTreeSet<_> = meant.iter().map(|(entry, _)| &entry.server().name).collect();
        if servers.len() > 1 {
            let forms = servers.iter().map(|server| qualified_uri(server, address)).collect();
            return Err(RouteError::Ambiguous { address: address.to_owned(), forms });
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
            return Err(RouteError::Denied(reason));
        }
        if let Some(hidden) = self.hidden_at(address) {
            return Err(hidden);
        }
        let entry = self.unlisted(address)?;
        let mut servers = self.catalog.servers();
        let server = servers.find(|server| server.name == entry.server().name);
        if let Some(reason) = server.and_then(unavailable) {
            return Err(RouteError::Denied(reason));
        }
        let uri = entry.name().to_owned();
        Ok(ResourceRoute { entry: RoutedEntry::Unlisted(Box::new(entry)), uri })
    }

    /// The template that is shown under an address, or whose server the address says.
    pub fn route_template(&self, address: &str) -> Result<&Entry, RouteError<'_>> {
        let kind = ItemKind::ResourceTemplate;
        let Some((server, own)) = parse_qualified_uri(address) else {
            return self.route(kind, address);
        };
        let is_meant = |entry: &&Entry| entry.server().name == server && entry.name() == own;
        let found = self.catalog.entries(kind).iter().find(is_meant);
        self.route(kind, found.map_or(address, Entry::exposed))
    }

    pub(super) fn is_hidden(&self, entry: &Entry) -> bool {
        matches!(self.decide(entry), Decision::Hide(_))
    }

    /// What hides an address of the server of a template: a hidden resource of which it may be another
    /// spelling, a rule about the address itself, or a template that a rule takes away.
    fn cover(&self, template: &Entry, uri: &str) -> HiddenBy {
        let spellings = UriSpellings::of(uri);
        let rules = (&*self.rules, &*self.caller);
        if self.hidden_under(template, &spellings).is_some()
            || hides_uri(rules, template, uri, &spellings).is_some()
        {
            return HiddenBy::Address;
        }
        self.denied_template(template, &spellings).map_or(HiddenBy::None, HiddenBy::Template)
    }

    /// How much is given in the most specific template that an address fits and a rule takes away, of the
    /// server of an entry.
    pub(super) fn denied_template(&self, entry: &Entry, spellings: &UriSpellings) -> Option<usize> {
        let is_denied = |template: &&Entry| match self.decide(template) {
            Decision::Hide(reason) => reason.excludes(),
            Decision::Allow | Decision::Deny(_) => false,
        };
        let templates = self.catalog.entries(ItemKind::ResourceTemplate).iter();
        let own = templates.filter(|template| template.server().name == entry.server().name);
        let fitting = own.filter(|template| spellings.fit(template.name()));
        fitting.filter(is_denied).map(|template| template_pieces(template.name()).given()).max()
    }

    /// A hidden resource of the server of a template that an address may mean.
    pub(super) fn hidden_under(
        &self,
        template: &Entry,
        spellings: &UriSpellings,
    ) -> Option<&Entry> {
        let server = &template.server().name;
        let mut resources = self.catalog.entries(ItemKind::Resource).iter();
        resources.find(|entry| {
            entry.server().name == *server
                && self.is_hidden(entry)
                && spellings.are_equivalent(entry.name())
        })
    }

    /// Every rule that has a say about what an address leads to, whether or not the caller may see it
    /// (TOOL-11). Rules may be about an address as well as about the template that it fits.
    pub fn explain_uri<'v>(&'v self, entry: &'v Entry, address: &str) -> Vec<RuleResult<'v>> {
        let own = parse_qualified_uri(address).map_or(address, |(_, own)| own);
        if entry.kind() != ItemKind::ResourceTemplate || own == entry.name() {
            return self.explain(entry);
        }
        let spellings = UriSpellings::of(own);
        match self.hidden_under(entry, &spellings) {
            Some(hidden) => self.explain(hidden),
            None => explain_uri((&self.rules, &self.caller), entry, own, &spellings),
        }
    }

    pub(super) fn unknown(&self, kind: ItemKind, name: &str) -> RouteError<'_> {
        let suggestions = self.suggestions(kind, name);
        RouteError::Unknown { kind, name: name.to_owned(), suggestions }
    }

    pub(super) fn suggestions(&self, kind: ItemKind, name: &str) -> Vec<String> {
        alike(name, &self.entries(kind).collect::<Vec<_>>())
    }

    /// Names that exist, whoever may see them, and that may have been meant: for those who ask why
    /// something is hidden.
    pub fn existing_like(&self, kind: ItemKind, name: &str) -> Vec<String> {
        alike(name, &self.catalog.entries(kind).iter().collect::<Vec<_>>())
    }
}

/// What may have been meant: first what would have that name if nothing stood against it, then what
/// a server calls so itself, then what looks like it.
fn alike(name: &str, entries: &[&Entry]) -> Vec<String> {
    let is_plain = |entry: &Entry| entry.adjustment().is_some_and(|it| *it.plain == *name);
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

/// What hides an address of a server that fits a template of it.
enum HiddenBy {
    /// Nothing.
    None,
    /// A rule, or a hidden resource: under any template.
    Address,
    /// A denied template, by how much is given in it. Next to a template that the caller may have, it
    /// counts if it is the more specific one: otherwise it covers more than this address.
    Template(usize),
}

impl HiddenBy {
    fn hides(&self, template: &Entry) -> bool {
        match self {
            Self::None => false,
            Self::Address => true,
            Self::Template(given) => *given > template_pieces(template.name()).given(),
        }
    }
}

/// The message for a URI that no list names and several servers could have.
fn could_have(address: &str, suggestions: &[String], servers: &[ServerName]) -> String {
    let mut message = format!("no server lists the resource `{}`", escape_control(address));
    if !suggestions.is_empty() {
        let _ = write!(message, " (did you mean `{}`?)", suggestions.join("` or `"));
    }
    let shown: Vec<_> =
        servers.iter().take(MAX_SHOWN_SERVERS).map(|it| format!("`{it}`")).collect();
    let _ = write!(message, "; {} could have it", shown.join(", "));
    let more = servers.len().saturating_sub(MAX_SHOWN_SERVERS);
    if more > 0 {
        let _ = write!(message, ", and {more} more");
    }
    if let Some(first) = servers.first() {
        let form = qualified_uri(first, address);
        let _ = write!(message, ": name the server, as in `{}`", escape_control(&form));
    }
    message
}
