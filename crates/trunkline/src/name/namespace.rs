//! Assigns a part of the exposed namespace to each server, by prefix.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::digest::digest;
use super::{HOST_TOOL_NAMES, ServerName};

/// Length of a digest in a name. A collision is unlikely below a billion names; on a collision, the
/// digest is lengthened.
pub(super) const DIGEST: usize = 8;

/// Characters reserved for the upstream name after a shortened prefix.
const ROOM_FOR_OWN: usize = 8;

/// Shortest limit on names: two digests.
const MIN_LENGTH: usize = 2 * DIGEST;

/// Options for exposed names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameOptions {
    /// The string between the prefix of a server and the upstream name.
    pub separator: Box<str>,
    /// Maximum length of a name.
    pub max_length: usize,
    /// Names reserved by the embedding host (TOOL-13), besides [`HOST_TOOL_NAMES`].
    pub reserved: BTreeSet<Box<str>>,
}

impl Default for NameOptions {
    fn default() -> Self {
        Self { separator: "_".into(), max_length: 64, reserved: BTreeSet::new() }
    }
}

/// How much of a string a sanitized name keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fidelity {
    /// The unchanged string.
    Verbatim,
    /// Some characters are replaced.
    Mapped,
    /// No valid character.
    Lost,
}

/// Sanitizes a string for names: every run of invalid characters becomes one `_`.
pub(super) fn sanitised(text: &str) -> (String, Fidelity) {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if text.chars().all(fits) && !text.is_empty() {
        return (text.to_owned(), Fidelity::Verbatim);
    }
    let mut clean = String::with_capacity(text.len());
    let mut in_run = false;
    for character in text.chars() {
        if fits(character) {
            clean.push(character);
        } else if !in_run {
            clean.push('_');
        }
        in_run = !fits(character);
    }
    let readable = clean.bytes().any(|byte| byte.is_ascii_alphanumeric());
    (clean, if readable { Fidelity::Mapped } else { Fidelity::Lost })
}

/// The first bytes of a string, at most `length`.
pub(super) fn head(text: &str, length: usize) -> &str {
    text.split_at_checked(text.floor_char_boundary(length)).map_or(text, |(head, _)| head)
}

/// The namespaces of all servers of a configuration, whether they are up, down or disabled.
///
/// Every exposed name belongs to the server with the longest prefix that it starts with. So no
/// server can take a name that looks like another's, and names depend only on the configuration:
/// not on which servers are up, nor on the tools of other servers.
///
/// ```
/// use trunkline::name::{NameRequest, NameOptions, Namespaces, ServerName};
///
/// let [google, drive] = ["google", "google_drive"].map(|name| ServerName::new(name).unwrap());
/// let servers = [(&google, None), (&drive, None)];
/// let spaces = Namespaces::new(NameOptions::default(), servers);
/// let names = spaces.expose(&[
///     NameRequest { server: &google, own: "search" },
///     NameRequest { server: &drive, own: "search" },
///     // Looks like a name of the other server, so it gets an unambiguous one.
///     NameRequest { server: &google, own: "drive_search" },
/// ]);
/// assert_eq!(names[0].name.as_str(), "google_search");
/// assert_eq!(names[1].name.as_str(), "google_drive_search");
/// assert_eq!(names[2].name.as_str(), "google_ljz4rtid_drive_search");
/// ```
#[derive(Clone, Debug)]
pub struct Namespaces {
    pub(super) options: NameOptions,
    spaces: BTreeMap<ServerName, Namespace>,
    /// The start of each server's names, and one server that has it.
    owners: HashMap<Box<str>, ServerName>,
    /// The lengths of those starts, the longest first.
    lengths: Vec<usize>,
}

/// The namespace of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    /// Prefix and separator; empty for bare names.
    pub(super) start: Box<str>,
    prefix: Box<str>,
    adjusted: bool,
}

/// A prefix that is being made unique.
struct PrefixDraft<'s> {
    server: &'s ServerName,
    prefix: String,
    explicit: bool,
    fidelity: Fidelity,
}

impl Namespaces {
    /// Creates the namespaces of all servers, each with the prefix of its configuration, if any.
    pub fn new<'s>(
        mut options: NameOptions,
        servers: impl IntoIterator<Item = (&'s ServerName, Option<&'s str>)>,
    ) -> Self {
        options.max_length = options.max_length.max(MIN_LENGTH);
        let limit = prefix_limit(&options);
        let drafts: Vec<_> = servers
            .into_iter()
            .map(|(server, prefix)| PrefixDraft::new(server, prefix, limit))
            .collect();
        let mut claims: HashMap<&str, usize> = HashMap::new();
        for draft in &drafts {
            *claims.entry(&draft.prefix).or_default() += 1;
        }
        let space = |draft: &PrefixDraft<'_>| {
            let alone = claims.get(&*draft.prefix) == Some(&1);
            let kept = draft.explicit || draft.fidelity == Fidelity::Verbatim || alone;
            let prefix = if kept { draft.prefix.clone() } else { draft.marked(limit) };
            (draft.server.clone(), Namespace::new(&prefix, &options.separator, !kept))
        };
        let spaces: BTreeMap<_, _> = drafts.iter().map(space).collect();
        Self::of_spaces(options, spaces)
    }

    fn of_spaces(options: NameOptions, spaces: BTreeMap<ServerName, Namespace>) -> Self {
        let mut owners = HashMap::new();
        for (server, space) in &spaces {
            owners.entry(space.start.clone()).or_insert_with(|| server.clone());
        }
        let lengths: BTreeSet<usize> = owners.keys().map(|start| start.len()).collect();
        Self { options, spaces, owners, lengths: lengths.into_iter().rev().collect() }
    }

    /// Whether there are several servers.
    pub(crate) fn has_several(&self) -> bool {
        self.spaces.len() > 1
    }

    /// The string between a prefix and the upstream name.
    pub fn separator(&self) -> &str {
        &self.options.separator
    }

    /// Whether the embedding host reserves this name.
    pub fn is_reserved(&self, name: &str) -> bool {
        self.options.reserved.contains(name)
    }

    /// Whether an item of a server may get this name.
    pub(super) fn is_assignable(&self, name: &str) -> bool {
        !HOST_TOOL_NAMES.contains(&name) && !self.is_reserved(name)
    }

    /// Whether a name has the length of shortened names.
    pub(crate) fn may_be_shortened(&self, name: &str) -> bool {
        name.len() >= self.options.max_length
    }

    /// The prefix of a server's names; may be empty.
    pub fn prefix(&self, server: &ServerName) -> Option<&str> {
        let space = self.spaces.get(server)?;
        Some(&space.prefix)
    }

    /// Servers whose prefix differs from their name, because another server has the same.
    pub fn adjusted(&self) -> impl Iterator<Item = (&ServerName, &str)> {
        let adjusted = self.spaces.iter().filter(|(_, space)| space.adjusted);
        adjusted.map(|(server, space)| (server, &*space.prefix))
    }

    /// The server in whose namespace a name is.
    pub fn owner(&self, name: &str) -> Option<&ServerName> {
        self.other_owner(name, "").or_else(|| self.owners.get(""))
    }

    /// All servers in whose namespace a name is: several may share a prefix.
    pub fn owners(&self, name: &str) -> Vec<&ServerName> {
        let Some(prefix) = self.owner(name).and_then(|owner| self.prefix(owner)) else {
            return Vec::new();
        };
        self.spaces.keys().filter(|server| self.prefix(server) == Some(prefix)).collect()
    }

    pub(super) fn space(&self, server: &ServerName) -> Option<&Namespace> {
        self.spaces.get(server)
    }

    /// The server with a longer prefix that a name starts with.
    pub(super) fn other_owner(&self, plain: &str, start: &str) -> Option<&ServerName> {
        let longer = self.lengths.iter().take_while(|length| **length > start.len());
        longer.filter(|length| **length < plain.len()).find_map(|length| {
            // The name is an arbitrary string: a prefix length may fall inside a character.
            let candidate = plain.get(..*length)?;
            // Hashing is expensive; most lengths do not end at a separator.
            candidate.ends_with(&*self.options.separator).then(|| self.owners.get(candidate))?
        })
    }
}

impl<'s> PrefixDraft<'s> {
    fn new(server: &'s ServerName, prefix: Option<&str>, limit: usize) -> Self {
        let explicit = prefix.is_some();
        let written = prefix.unwrap_or(server.as_str());
        let (clean, fidelity) = if written.is_empty() {
            (String::new(), Fidelity::Verbatim)
        } else {
            sanitised(written)
        };
        let mut draft = Self { server, prefix: clean, explicit, fidelity };
        if fidelity == Fidelity::Lost || draft.prefix.len() > limit {
            draft.prefix = draft.marked(limit);
        }
        draft
    }

    /// The start of the prefix with a digest of the whole server name.
    fn marked(&self, limit: usize) -> String {
        let digest = digest(&[self.server.as_str().as_bytes()], DIGEST);
        let head = match self.fidelity {
            Fidelity::Lost => "",
            _ => head(&self.prefix, limit.saturating_sub(DIGEST + 1)),
        };
        if head.is_empty() { digest } else { format!("{head}-{digest}") }
    }
}

impl Namespace {
    fn new(prefix: &str, separator: &str, adjusted: bool) -> Self {
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}{separator}") };
        Self { start: start.into(), prefix: prefix.into(), adjusted }
    }
}

/// Maximum length of a prefix, so that a digest and a readable part fit after it.
fn prefix_limit(options: &NameOptions) -> usize {
    let after = options.separator.len() + ROOM_FOR_OWN + 1 + DIGEST;
    options.max_length.saturating_sub(after).max(options.max_length / 4)
}
