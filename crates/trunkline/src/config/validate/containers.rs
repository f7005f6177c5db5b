//! The objects at the top of a file that hold servers, bundles and agents. Of one
//! that is written twice, either may have a limit: what they name is not used (BUN-2).

use std::collections::BTreeMap;

use super::{LayerReader, LayerServer, ServerDraft, members};
use crate::config::jsonc::{Node, ObjectKey, ObjectMember, Value};
use crate::config::raw::McpEntry;
use crate::name::ServerName;

/// What a container holds.
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

/// The container that may hold rules for the servers of others (Gemini CLI).
const MCP: &str = "mcp";

/// The container inside of that one.
const NESTED: &str = "servers";

/// The containers of a file of which nothing says whether they count.
#[derive(Default)]
pub(super) struct Containers<'n> {
    ambiguous: Vec<AmbiguousContainer<'n>>,
}

struct AmbiguousContainer<'n> {
    kind: ContainerKind,
    key: &'static str,
    member: &'n ObjectMember,
}

impl<'n> Containers<'n> {
    pub(super) fn of(root: Option<&'n Node>) -> Self {
        let mut ambiguous = Vec::new();
        let mut add = |kind, key, member| {
            ambiguous.push(AmbiguousContainer { kind, key, member });
        };
        for kind in ContainerKind::ALL {
            for key in kind.keys().iter().copied() {
                if members(root, key).count() > 1 {
                    members(root, key).for_each(|member| add(kind, key, member));
                }
            }
        }
        for mcp in members(root, MCP).filter(|mcp| McpEntry::has_own_keys(&mcp.value)) {
            let nested = || members(Some(&mcp.value), NESTED);
            if nested().count() > 1 {
                nested().for_each(|member| add(ContainerKind::Servers, NESTED, member));
            }
        }
        Self { ambiguous }
    }

    /// Whether nothing says which container of a kind counts.
    pub(super) fn is_ambiguous(&self, kind: ContainerKind) -> bool {
        self.ambiguous.iter().any(|it| it.kind == kind)
    }

    /// Whether the rules for the servers of other containers are among these.
    pub(super) fn has_rules(&self) -> bool {
        self.ambiguous.iter().any(|it| it.key == MCP)
    }

    /// The keys of the entries in those of a kind.
    pub(super) fn ambiguous_keys(
        &self,
        kind: ContainerKind,
    ) -> impl Iterator<Item = &'n ObjectKey> {
        let of_kind = self.ambiguous.iter().filter(move |it| it.kind == kind);
        of_kind.flat_map(AmbiguousContainer::entries).map(|member| &member.key)
    }

    /// The entries of a kind.
    pub(super) fn entries(root: Option<&'n Node>, kind: ContainerKind) -> Vec<&'n ObjectMember> {
        let of_key = |key: &'static str| members(root, key).flat_map(move |it| entries(key, it));
        kind.keys().iter().copied().flat_map(of_key).collect()
    }
}

impl LayerReader<'_, '_> {
    /// Servers in containers that are written twice: nothing says which entry is meant.
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
}

impl<'n> AmbiguousContainer<'n> {
    fn entries(&self) -> &'n [ObjectMember] {
        entries(self.key, self.member)
    }
}

/// The entries of a container with a key.
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
