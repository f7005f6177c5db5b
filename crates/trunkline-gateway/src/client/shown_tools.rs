//! Tools that meta tools have shown to clients, so that a tool that has changed since is not called.
//!
//! A search shows a few tools at a time, so the revision of a list does not tell what a client has
//! seen: here each tool counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline::meta::{ShownTool, ShownToolSet};
use trunkline::principal::{ClientId, Evictable, FairShare, Principal};

use super::tool_revisions::ShownRevisions;

/// Clients that are remembered. Above this, one of the principal with most is forgotten.
const MAX_SHOWN_CLIENTS: usize = 512;

/// The tools that clients were shown.
#[derive(Default)]
pub(crate) struct ShownTools {
    /// Whether any meta tool was used, so that other calls cost nothing.
    is_used: AtomicBool,
    state: Mutex<ShownTable>,
}

#[derive(Default)]
struct ShownTable {
    /// The number of answers so far.
    count: u64,
    clients: HashMap<ClientId, ShownClient>,
    /// The catalog revisions that forgotten clients were shown, by token; those of clients without
    /// one together.
    forgotten: HashMap<Principal, ShownRevisions>,
}

struct ShownClient {
    owner: Principal,
    tools: ShownToolSet,
    /// The catalog revisions of its answers.
    shown: ShownRevisions,
    /// The catalog revisions of forgotten answers.
    forgotten: Option<ShownRevisions>,
    last_use: u64,
}

impl Evictable for ShownClient {
    type LastUse = u64;

    fn holder(&self) -> &Principal {
        &self.owner
    }

    fn is_in_use(&self) -> bool {
        false
    }

    fn last_use(&self) -> u64 {
        self.last_use
    }
}

/// What is known about a tool and a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownDefinition {
    /// The client was shown this.
    Known(ShownTool),
    /// The client was not shown the tool, or only in these revisions.
    Forgotten(ShownRevisions),
    /// The client was not shown the tool.
    Unknown,
}

impl ShownTools {
    /// Whether no meta tool was used yet.
    pub(crate) fn is_unused(&self) -> bool {
        !self.is_used.load(Ordering::Acquire)
    }

    /// Forgets the tools of a client that another list has shown since.
    pub(crate) fn forget(&self, client: &ClientId, is_listed: impl Fn(&str) -> bool) {
        if let Some(shown) = self.lock().clients.get_mut(client) {
            shown.tools.forget(is_listed);
        }
    }

    /// Records the tools that a client was shown, in a catalog of a revision.
    pub(crate) fn record(
        &self,
        (client, owner): (&ClientId, &Principal),
        revision: u64,
        tools: Vec<(String, ShownTool)>,
    ) {
        self.is_used.store(true, Ordering::Release);
        let mut table = self.lock();
        table.count += 1;
        let last_use = table.count;
        if !table.clients.contains_key(client) {
            table.make_room(owner);
        }
        let shown_now = ShownRevisions { first: revision, last: revision };
        let forgotten = table.forgotten.get(&key(owner)).copied();
        let client = table.clients.entry(client.clone()).or_insert_with(|| ShownClient {
            owner: owner.clone(),
            tools: ShownToolSet::default(),
            shown: shown_now,
            // It may be a client that was forgotten.
            forgotten,
            last_use,
        });
        client.last_use = last_use;
        if client.tools.record(tools) {
            client.forgotten = Some(joined(client.forgotten, client.shown));
        }
        client.shown = joined(Some(client.shown), shown_now);
    }

    /// Forgets a client that is gone.
    pub(crate) fn remove(&self, client: &ClientId) {
        self.lock().clients.remove(client);
    }

    /// The tool as a client was shown it.
    pub(crate) fn of(
        &self,
        (client, owner): (&ClientId, &Principal),
        tool: &str,
    ) -> ShownDefinition {
        let table = self.lock();
        let (known, forgotten) = match table.clients.get(client) {
            Some(client) => (client.tools.get(tool), client.forgotten),
            None => (None, table.forgotten.get(&key(owner)).copied()),
        };
        match (known, forgotten) {
            (Some(shown), _) => ShownDefinition::Known(shown),
            (None, Some(revisions)) => ShownDefinition::Forgotten(revisions),
            (None, None) => ShownDefinition::Unknown,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ShownTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShownTable {
    /// Forgets a client if there is no room for another.
    fn make_room(&mut self, newcomer: &Principal) {
        if self.clients.len() < MAX_SHOWN_CLIENTS {
            return;
        }
        let owners = self.clients.values().map(|it| &it.owner);
        let share = FairShare::with_holders(MAX_SHOWN_CLIENTS, owners);
        let evicted = share.evict_for(newcomer, &self.clients).cloned();
        if let Some(client) = evicted.and_then(|client| self.clients.remove(&client)) {
            let shown = joined(client.forgotten, client.shown);
            let key = key(&client.owner);
            let known = self.forgotten.get(&key).copied();
            self.forgotten.insert(key, joined(known, shown));
        }
    }
}

/// The principal under which forgotten clients are counted.
fn key(owner: &Principal) -> Principal {
    match owner {
        Principal::Token(_) => owner.clone(),
        Principal::Anonymous | Principal::Client(_) => Principal::Anonymous,
    }
}

/// Both ranges of revisions as one.
fn joined(known: Option<ShownRevisions>, shown: ShownRevisions) -> ShownRevisions {
    let known = known.unwrap_or(shown);
    let (first, last) = (known.first.min(shown.first), known.last.max(shown.last));
    ShownRevisions { first, last }
}

#[cfg(test)]
mod tests {
    use trunkline::meta::MAX_SHOWN_TOOLS;

    use super::*;

    const ANYONE: Principal = Principal::Anonymous;

    fn range(first: u64, last: u64) -> ShownRevisions {
        ShownRevisions { first, last }
    }

    fn record(shown: &ShownTools, client: usize, revision: u64, tools: usize) {
        let id: ClientId = format!("client {client}").as_str().into();
        let tools =
            (0..tools).map(|it| (format!("t{revision}_{it}"), ShownTool::line("x"))).collect();
        shown.record((&id, &Principal::Anonymous), revision, tools);
    }

    #[test]
    fn the_last_definition_counts() {
        let shown = ShownTools::default();
        let id: ClientId = "ann".into();
        assert_eq!(shown.of((&id, &ANYONE), "t"), ShownDefinition::Unknown);
        for (revision, text) in [(1, "old"), (2, "new")] {
            let tools = vec![("t".to_owned(), ShownTool::line(text))];
            shown.record((&id, &Principal::Anonymous), revision, tools);
        }
        let known = ShownDefinition::Known(ShownTool::line("new"));
        assert_eq!(shown.of((&id, &ANYONE), "t"), known);
        assert_eq!(shown.of((&id, &ANYONE), "other"), ShownDefinition::Unknown);
        assert_eq!(shown.of((&"bob".into(), &ANYONE), "t"), ShownDefinition::Unknown);
    }

    /// What was forgotten does not count as never shown.
    #[test]
    fn forgotten_tools_and_clients_are_known_to_be_forgotten() {
        let shown = ShownTools::default();
        record(&shown, 0, 3, MAX_SHOWN_TOOLS);
        record(&shown, 0, 4, 1);
        let id: ClientId = "client 0".into();
        assert_eq!(shown.of((&id, &ANYONE), "t3_0"), ShownDefinition::Forgotten(range(3, 3)));
        let known = ShownDefinition::Known(ShownTool::line("x"));
        assert_eq!(shown.of((&id, &ANYONE), "t4_0"), known);
        for client in 1..=MAX_SHOWN_CLIENTS {
            record(&shown, client, 9, 1);
        }
        // Clients of a token are not those that were forgotten.
        let token = Principal::Token("ann".into());
        assert_eq!(shown.of((&"other".into(), &token), "t4_0"), ShownDefinition::Unknown);
        assert_eq!(shown.of((&id, &ANYONE), "t4_0"), ShownDefinition::Forgotten(range(3, 4)));
    }
}
