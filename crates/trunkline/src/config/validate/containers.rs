//! The objects at the top of a file that contain servers, bundles and agents. One that is written
//! twice, or under a misspelt key, may be the one with a limit: its entries are not used (BUN-2).

use std::collections::{BTreeMap, HashSet};

use super::{LayerReader, LayerServer, ServerDraft, holds_servers, is_comment, members};
use crate::config::decode::RawObject as _;
use crate::config::diagnostic::Code;
use crate::config::jsonc::{Node, ObjectKey, ObjectMember, Value};
use crate::config::raw::{FileEntry, McpEntry};
use crate::config::redact::quoted;
use crate::config::suggest::{Suggestions, slips};
use crate::name::ServerName;

/// The kind of entries in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerKind {
    Servers,
    Bundles,
    Agents,
}

impl ContainerKind {
    const ALL: [Self; 3] = [Self::Servers, Self::Bundles, Self::Agents];

    /// The keys of its containers.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Servers => &["mcpServers", "servers", MCP, "context_servers"],
            Self::Bundles => &["bundles"],
            Self::Agents => &["agents"],
        }
    }
}

/// The container that may contain rules for the servers of other containers (Gemini CLI).
const MCP: &str = "mcp";

/// The container inside that one.
const NESTED: &str = "servers";

/// Keys of other hosts that resemble a container, and contain other entries.
const FOREIGN: &[&str] = &["acpServers", "lspServers", "lsp_servers"];

/// The key of opencode's own agents.
const OPENCODE_AGENTS: &str = "agent";

/// Shortest key in which two misspellings are recognized, in letters. Shorter keys are too similar
/// to others: `events` to `agents`.
const LONG_KEY: usize = 8;

/// The ambiguous containers of a file: those written twice, or misspelt.
#[derive(Default)]
pub(super) struct Containers<'n> {
    ambiguous: Vec<AmbiguousContainer<'n>>,
    /// The positions of misspelt keys.
    misspelt: HashSet<usize>,
}

struct AmbiguousContainer<'n> {
    kind: ContainerKind,
    /// The key that it has, or was probably intended to have.
    key: &'static str,
    is_misspelt: bool,
    member: &'n ObjectMember,
}

impl<'n> Containers<'n> {
    pub(super) fn of(root: Option<&'n Node>, file: &'n FileEntry) -> Self {
        let mut ambiguous = Vec::new();
        let mut add = |kind, key, is_misspelt, member| {
            ambiguous.push(AmbiguousContainer { kind, key, is_misspelt, member });
        };
        for kind in ContainerKind::ALL {
            for key in kind.keys().iter().copied() {
                if members(root, key).count() > 1 {
                    members(root, key).for_each(|member| add(kind, key, false, member));
                }
            }
        }
        for mcp in members(root, MCP).filter(|mcp| McpEntry::has_own_keys(&mcp.value)) {
            let nested = || members(Some(&mcp.value), NESTED);
            if nested().count() > 1 {
                nested().for_each(|member| add(ContainerKind::Servers, NESTED, false, member));
            }
        }
        let mut misspelt = HashSet::new();
        for member in &file.unknown {
            if let Some((kind, key)) = meant_container(file, member) {
                add(kind, key, true, member);
                misspelt.insert(member.key.span.start());
            }
        }
        Self { ambiguous, misspelt }
    }

    /// Whether containers of a kind are ambiguous.
    pub(super) fn is_ambiguous(&self, kind: ContainerKind) -> bool {
        self.ambiguous.iter().any(|it| it.kind == kind)
    }

    /// Whether a member is a container under a misspelt key.
    pub(super) fn is_misspelt(&self, member: &ObjectMember) -> bool {
        self.misspelt.contains(&member.key.span.start())
    }

    /// Whether the container with rules for the servers of others is ambiguous.
    pub(super) fn has_rules(&self) -> bool {
        self.ambiguous.iter().any(|it| it.key == MCP)
    }

    /// The keys of the entries in ambiguous containers of a kind.
    pub(super) fn ambiguous_keys(
        &self,
        kind: ContainerKind,
    ) -> impl Iterator<Item = &'n ObjectKey> {
        let of_kind = self.ambiguous.iter().filter(move |it| it.kind == kind);
        of_kind.flat_map(AmbiguousContainer::entries).map(|member| &member.key)
    }

    /// The entries of a kind, in containers with the right key and in misspelt ones.
    pub(super) fn entries(
        &self,
        root: Option<&'n Node>,
        kind: ContainerKind,
    ) -> Vec<&'n ObjectMember> {
        let of_key = |key: &'static str| members(root, key).flat_map(move |it| entries(key, it));
        let right = kind.keys().iter().copied().flat_map(of_key);
        let misspelt = self.ambiguous.iter().filter(|it| it.is_misspelt && it.kind == kind);
        right.chain(misspelt.flat_map(AmbiguousContainer::entries)).collect()
    }
}

impl LayerReader<'_, '_> {
    /// Disables servers in containers that are written twice or misspelt, because the intended
    /// entry is unknown.
    pub(super) fn ambiguous_servers(
        &self,
        containers: &Containers<'_>,
        servers: &mut Vec<LayerServer>,
    ) {
        let names = containers.ambiguous_keys(ContainerKind::Servers);
        let names = names.filter_map(|key| Some((ServerName::new(&key.text).ok()?, key.span)));
        let mut ambiguous: BTreeMap<_, _> = names.collect();
        for server in servers.iter_mut() {
            if ambiguous.remove(&server.name).is_some() {
                server.draft = ServerDraft::Broken;
            }
        }
        servers.extend(ambiguous.into_iter().map(|(name, key)| LayerServer {
            name,
            location: self.decoder.location(key),
            draft: ServerDraft::Broken,
        }));
    }

    /// Reports a container under a misspelt key.
    pub(super) fn misspelt_container(&mut self, member: &ObjectMember, has_no_servers: bool) {
        let ObjectMember { key, value } = member;
        let message = format!("{} is not a known key", quoted(&key.text));
        let code = match has_no_servers && holds_servers(value) {
            true => Code::NoServers,
            false => Code::UnknownKey,
        };
        let known = FileEntry::KEYS.iter().copied();
        let help = Suggestions::default().nearest(&key.text, known);
        let found = self.decoder.error(code, key.span, message).label("is not read");
        let help = help.map(|near| format!("did you mean `{near}`?"));
        self.decoder.push(found.maybe_help(help));
    }
}

impl<'n> AmbiguousContainer<'n> {
    fn entries(&self) -> &'n [ObjectMember] {
        entries(self.key, self.member)
    }
}

/// The entries of a container with a key, or with a misspelling of it.
fn entries<'n>(key: &str, container: &'n ObjectMember) -> &'n [ObjectMember] {
    let node = match key == MCP && McpEntry::has_own_keys(&container.value) {
        true => container.value.get(NESTED),
        false => Some(&container.value),
    };
    match node.map(|node| &node.value) {
        Some(Value::Object(members)) => members,
        _ => &[],
    }
}

/// The container that an unknown key at the top was probably intended to be, by its spelling and
/// its value.
fn meant_container(
    file: &FileEntry,
    member: &ObjectMember,
) -> Option<(ContainerKind, &'static str)> {
    // With a separate work limit: many other misspellings must not make this one go unnoticed.
    let known = FileEntry::KEYS.iter().copied();
    let near = Suggestions::default().nearest(&member.key.text, known)?;
    if is_comment(&member.key.text) || !is_slip_of(near, &member.key.text) {
        return None;
    }
    let kind = ContainerKind::ALL.into_iter().find(|kind| kind.keys().contains(&near))?;
    let is_container = match &member.value.value {
        Value::Object(members) => members.iter().any(|it| is_entry(near, &it.value)),
        Value::Array(items) => !items.is_empty(),
        // A path of agent files. Claude Code writes the name of an agent under `agent`.
        Value::String(text) => kind == ContainerKind::Agents && text.contains(['/', '.']),
        _ => false,
    };
    let is_opencode = file.mcp.as_ref().is_some_and(|mcp| mcp.value.servers.is_some());
    let is_foreign = is_opencode && &*member.key.text == OPENCODE_AGENTS;
    (is_container && !is_foreign).then_some((kind, near))
}

/// Whether an unknown key is a misspelt key of a container, and not another word.
fn is_slip_of(container: &str, key: &str) -> bool {
    // Most words of three letters are similar to this one.
    let is_other = container == MCP && !key.to_lowercase().chars().all(|c| "mcps".contains(c));
    let slips_allowed = if container.len() < LONG_KEY { 1 } else { 2 };
    !is_other && !FOREIGN.contains(&key) && slips(key, container) <= slips_allowed
}

/// Whether a value can be an entry of a container. opencode's `server` has only plain values.
fn is_entry(container: &str, node: &Node) -> bool {
    let is_list = container == MCP && matches!(node.value, Value::Array(_));
    matches!(node.value, Value::Object(_)) || is_list
}
