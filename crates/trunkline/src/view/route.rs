//! Resolves exposed names and URIs to entries.

use std::fmt::{self, Write as _};

use super::View;
use crate::catalog::{Entry, ItemKind};
use crate::config::{Suggestions, escape_control};
use crate::name::{HOST_TOOL_NAMES, ServerName, parse_qualified_uri, qualified_uri};
use crate::policy::{Decision, Disclosure, Reason};

/// Maximum number of names suggested for one that does not exist.
const MAX_SUGGESTIONS: usize = 3;

/// Longest part of an unknown name in a message, in characters.
const SHOWN_NAME: usize = 80;

/// Maximum number of entries considered for suggestions; each needs a policy decision.
const MAX_ENTRIES_TO_SUGGEST: usize = 20_000;

/// Maximum number of servers that a message lists as those that could have a resource, to keep it
/// short.
const MAX_SHOWN_SERVERS: usize = 10;

/// The reason why a name does not resolve.
#[derive(Clone, Debug)]
pub enum RouteError<'v> {
    /// The caller sees no item of that name. Hidden and nonexistent items look the same to callers
    /// with [`Disclosure::Nothing`].
    Unknown {
        /// The requested kind.
        kind: ItemKind,
        /// The name.
        name: String,
        /// Similar names that the caller sees.
        suggestions: Vec<String>,
    },
    /// A rule hides the item, and the caller may know it ([`Disclosure::Reasons`]).
    Hidden {
        /// The kind of the item.
        kind: ItemKind,
        /// Its name.
        name: String,
        /// The reason why it is hidden.
        reason: Reason<'v>,
    },
    /// Several servers have a resource with that URI.
    Ambiguous {
        /// The URI.
        address: String,
        /// The qualified URIs, one for each server.
        forms: Vec<String>,
    },
    /// No list contains the URI, and several servers could have it.
    Unlisted {
        /// The URI.
        address: String,
        /// Similar URIs that the caller sees.
        suggestions: Vec<String>,
        /// The servers that could have it.
        servers: Vec<ServerName>,
    },
    /// No list contains the URI, one server could have it, and another server that may list it has
    /// not listed its resources yet.
    Unasked {
        /// The URI.
        address: Box<str>,
        /// The server whose resources are unknown.
        server: ServerName,
        /// The reason why that server is unavailable, if it is down.
        reason: Option<Reason<'v>>,
        /// The URI qualified with the server that could have it.
        form: Box<str>,
    },
    /// The caller may see the item, but cannot use it now.
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
            Self::Unasked { address, server, reason, form } => {
                let (address, form) = (shown(address), escape_control(form));
                write!(f, "no server has listed the resource `{address}`, and ")?;
                match reason {
                    Some(reason) => reason.fmt(f)?,
                    None => write!(f, "server `{server}` has not listed its resources yet")?,
                }
                write!(f, "; try again, or name another server, as in `{form}`")
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

/// The start of a name, escaped for a message.
pub(super) fn shown(name: &str) -> String {
    escape_control(&name.chars().take(SHOWN_NAME).collect::<String>())
}

/// A URI resolved to the server that serves it.
#[derive(Clone, Debug)]
pub struct ResourceRoute<'v> {
    /// The resource, or the template that its URI matches.
    pub entry: RoutedEntry<'v>,
    /// The upstream URI.
    pub uri: String,
}

/// An entry of the catalog, or of an unlisted resource.
#[derive(Clone, Debug)]
pub enum RoutedEntry<'v> {
    /// An entry of the catalog.
    Listed(&'v Entry),
    /// An unlisted resource of the only server that can have it.
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
    /// Resolves an exposed name, if the caller may use the item.
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

    /// Whether the caller may use an item of the catalog.
    pub fn authorize<'v>(&'v self, entry: &'v Entry) -> Result<(), RouteError<'v>> {
        match self.decide(entry) {
            Decision::Allow => Ok(()),
            Decision::Deny(reason) => Err(RouteError::Denied(reason)),
            // The item was visible before, so no other one is suggested.
            Decision::Hide(reason) => {
                let (kind, name) = (entry.kind(), entry.exposed());
                let unknown =
                    || RouteError::Unknown { kind, name: name.to_owned(), suggestions: Vec::new() };
                Err(self.disclosed(entry, name, reason).unwrap_or_else(unknown))
            }
        }
    }

    /// The error that reports why an item is hidden, for a caller that may know it.
    pub(super) fn disclosed<'v>(
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

    /// The template with an exposed or a qualified URI template.
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

    pub(super) fn unknown(&self, kind: ItemKind, name: &str) -> RouteError<'_> {
        // A model that was shown this tool of the host would send its arguments to a server.
        let suggestions = match HOST_TOOL_NAMES.contains(&name) {
            true => Vec::new(),
            false => self.suggestions(kind, name),
        };
        RouteError::Unknown { kind, name: name.to_owned(), suggestions }
    }

    pub(super) fn suggestions(&self, kind: ItemKind, name: &str) -> Vec<String> {
        let entries = self.catalog.entries(kind);
        let entries = entries.get(..MAX_ENTRIES_TO_SUGGEST).unwrap_or(entries);
        let is_allowed = |entry: &&Entry| matches!(self.decide(entry), Decision::Allow);
        alike(name, &entries.iter().filter(is_allowed).collect::<Vec<_>>())
    }

    /// Similar names of all items, hidden ones included, to explain why an item is hidden.
    pub fn existing_like(&self, kind: ItemKind, name: &str) -> Vec<String> {
        alike(name, &self.catalog.entries(kind).iter().collect::<Vec<_>>())
    }
}

/// Similar names: first items whose plain name this is, then those whose upstream name it is, then
/// those with the smallest edit distance.
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

/// The message for an unlisted URI that several servers could have.
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
