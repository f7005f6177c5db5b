//! Tracks the tools that clients were last shown, so that a tool that has changed since is not
//! called.
//!
//! Catalog revisions are numbered. For a client, the revision of its last list is stored; for a
//! tool, the revision in which it changed. So no state is needed per client and tool.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use foldhash::HashMap;
use trunkline::catalog::{Catalog, DefinitionDigest};
use trunkline::item::ItemKind;
use trunkline::name::ServerName;
use trunkline::principal::{ClientId, FairShare, Principal};

/// Removed tools that are remembered, in case they come back changed: as many as one server can
/// have. Above this, those of the server with most are evicted. A client that listed before then
/// has to list again before it calls a tool that was added after its list.
const MAX_GONE_TOOLS: usize = 10_000;

/// Clients without a session whose last list is remembered: more than use one gateway. Above this,
/// the oldest list of the principal with most lists is evicted. Clients without a remembered list
/// have to list again before they call a tool that has changed since.
const MAX_LAST_LISTS: usize = 4_096;

/// The catalog revisions of one list: of its first page, and of the last page that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownRevisions {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The catalog revisions in which tools were added and changed.
#[derive(Default)]
pub(crate) struct ToolRevisions {
    hasher: RandomState,
    state: Mutex<RevisionTable>,
}

#[derive(Default)]
struct RevisionTable {
    newest: u64,
    /// The catalog of the newest revision.
    catalog: Weak<Catalog>,
    /// By the hash of the exposed name.
    tools: HashMap<u64, ToolState>,
    /// The revision in which removed tools were last evicted.
    forgotten: u64,
}

struct ToolState {
    server: ServerName,
    digest: DefinitionDigest,
    /// The first revision with a tool of this name.
    came: u64,
    /// The first revision with this definition.
    changed: u64,
    /// The last revision with the tool.
    last: u64,
}

impl ToolRevisions {
    /// The revision of the newest catalog.
    pub(crate) fn newest(&self, catalog: impl Fn() -> Arc<Catalog>) -> u64 {
        self.following(catalog).newest
    }

    /// Whether a tool still has the definition that a client was shown under its name, if any.
    pub(crate) fn is_unchanged(
        &self,
        catalog: impl Fn() -> Arc<Catalog>,
        exposed: &str,
        shown: ShownRevisions,
    ) -> bool {
        let revisions = self.following(catalog);
        // A removed tool cannot be called.
        let Some(tool) = revisions.tools.get(&self.hasher.hash_one(exposed)) else { return true };
        let was_not_shown = tool.came > shown.last && shown.last >= revisions.forgotten;
        tool.changed <= shown.first || was_not_shown
    }

    /// The table, updated to the newest catalog.
    fn following(&self, catalog: impl Fn() -> Arc<Catalog>) -> MutexGuard<'_, RevisionTable> {
        let now = catalog();
        if !self.lock().are_of(&now) {
            // Computed before the lock is taken: digests of long definitions take time.
            for entry in now.entries(ItemKind::Tool) {
                let _ = entry.digest();
            }
        }
        let mut revisions = self.lock();
        // Read again under the lock, so that revisions have the order of the catalogs.
        let now = catalog();
        if !revisions.are_of(&now) {
            revisions.follow(&now, &self.hasher);
        }
        revisions
    }

    fn lock(&self) -> MutexGuard<'_, RevisionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RevisionTable {
    fn are_of(&self, catalog: &Arc<Catalog>) -> bool {
        std::ptr::eq(self.catalog.as_ptr(), Arc::as_ptr(catalog))
    }

    /// Adds the revision of a new catalog.
    fn follow(&mut self, catalog: &Arc<Catalog>, hasher: &RandomState) {
        self.newest += 1;
        self.catalog = Arc::downgrade(catalog);
        let newest = self.newest;
        for entry in catalog.entries(ItemKind::Tool) {
            let (server, digest) = (&entry.server().name, entry.digest());
            let came = || ToolState {
                server: server.clone(),
                digest,
                came: newest,
                changed: newest,
                last: newest,
            };
            let tool = self.tools.entry(hasher.hash_one(entry.exposed())).or_insert_with(came);
            if tool.digest != digest || tool.server != *server {
                (tool.server, tool.digest, tool.changed) = (server.clone(), digest, newest);
            }
            tool.last = newest;
        }
        self.remove_gone();
    }

    /// Evicts removed tools above the limit, those of the server with most first.
    fn remove_gone(&mut self) {
        let newest = self.newest;
        loop {
            let mut gone: BTreeMap<&ServerName, usize> = BTreeMap::new();
            for tool in self.tools.values().filter(|tool| tool.last < newest) {
                *gone.entry(&tool.server).or_default() += 1;
            }
            if gone.values().sum::<usize>() <= MAX_GONE_TOOLS {
                return;
            }
            let most = gone.iter().max_by_key(|(_, count)| **count);
            let Some(server) = most.map(|(server, _)| ServerName::clone(server)) else { return };
            self.tools.retain(|_, tool| tool.last == newest || tool.server != server);
            self.forgotten = newest;
        }
    }
}

/// The last lists of clients without a session.
#[derive(Default)]
pub(crate) struct LastLists {
    state: Mutex<LastListTable>,
}

#[derive(Default)]
struct LastListTable {
    /// The number of lists so far.
    count: u64,
    clients: HashMap<ClientId, LastList>,
    /// The range of revisions in evicted lists.
    forgotten: Option<ShownRevisions>,
}

struct LastList {
    owner: Principal,
    /// `None` if it had only meta tools.
    shown: Option<ShownRevisions>,
    /// The sequence number of the list, among those of all clients.
    number: u64,
}

impl LastLists {
    /// Records the revisions that a client was shown.
    pub(crate) fn note(&self, client: &ClientId, owner: &Principal, shown: Option<ShownRevisions>) {
        let mut lists = self.lock();
        lists.count += 1;
        if lists.clients.len() >= MAX_LAST_LISTS && !lists.clients.contains_key(client) {
            lists.evict(owner);
        }
        let list = LastList { owner: owner.clone(), shown, number: lists.count };
        lists.clients.insert(client.clone(), list);
    }

    /// The revisions that a client was last shown; those of evicted lists if it is unknown.
    pub(crate) fn of(&self, client: &ClientId) -> Option<ShownRevisions> {
        let lists = self.lock();
        lists.clients.get(client).map_or(lists.forgotten, |list| list.shown)
    }

    fn lock(&self) -> MutexGuard<'_, LastListTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastListTable {
    /// Evicts the oldest list of the principal that has most.
    fn evict(&mut self, newcomer: &Principal) {
        let owners = self.clients.values().map(|list| &list.owner);
        let share = FairShare::with_holders(MAX_LAST_LISTS, owners);
        let held = |owner: &Principal| share.held_by(owner) + usize::from(owner == newcomer);
        let rank = |list: &LastList| (held(&list.owner), Reverse(list.number));
        let oldest_of_most = self.clients.iter().max_by_key(|(_, list)| rank(list));
        let Some(client) = oldest_of_most.map(|(client, _)| client.clone()) else { return };
        let evicted = self.clients.remove(&client);
        let Some(shown) = evicted.and_then(|list| list.shown) else { return };
        let forgotten = self.forgotten.unwrap_or(shown);
        self.forgotten = Some(ShownRevisions {
            first: forgotten.first.min(shown.first),
            last: forgotten.last.max(shown.last),
        });
    }
}

#[cfg(test)]
mod tests {
    use trunkline::catalog::{CatalogBuilder, Item, ServerItems};
    use trunkline::config::{self, Config};
    use trunkline::message::Raw;

    use super::*;

    fn configured() -> Config {
        let text = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#;
        config::parse("x", text).config
    }

    /// A catalog of servers with tools, each with a description.
    fn catalog(servers: &[(&str, &[(String, &str)])]) -> Arc<Catalog> {
        let config = configured();
        let mut sources = CatalogBuilder::new(&config);
        for (server, tools) in servers {
            let tools = tools.iter().map(|(name, description)| {
                let text = format!(
                    r#"{{"name":"{name}","inputSchema":{{}},"description":"{description}"}}"#
                );
                Item::new(ItemKind::Tool, name, Raw::from_text(&text).unwrap())
            });
            let name = &config.server(server).unwrap().name;
            sources.add(name, Arc::new(ServerItems::new(tools)));
        }
        Arc::new(Catalog::build(&sources))
    }

    /// The revision of a catalog, as for a list of one page.
    fn shown(revisions: &ToolRevisions, catalog: &Arc<Catalog>) -> ShownRevisions {
        let revision = revisions.newest(|| Arc::clone(catalog));
        ShownRevisions { first: revision, last: revision }
    }

    fn tool(name: &str, description: &'static str) -> (String, &'static str) {
        (name.to_owned(), description)
    }

    #[test]
    fn a_tool_that_has_changed_since_a_list_is_not_as_shown() {
        let revisions = ToolRevisions::default();
        let good = catalog(&[("a", &[tool("t", "good"), tool("u", "same")])]);
        let evil = catalog(&[("a", &[tool("t", "evil"), tool("u", "same"), tool("new", "new")])]);
        let first = shown(&revisions, &good);
        let is = |catalog: &Arc<Catalog>, name: &str, shown| {
            revisions.is_unchanged(|| Arc::clone(catalog), name, shown)
        };
        assert!(is(&good, "a_t", first));
        assert!(!is(&evil, "a_t", first), "it has changed");
        assert!(is(&evil, "a_u", first), "it has not");
        assert!(is(&evil, "a_new", first), "nothing was shown of it");
        let second = shown(&revisions, &evil);
        assert!(is(&evil, "a_t", second) && !is(&evil, "a_t", first));
        // Removed, and added again, unchanged or changed.
        let none = catalog(&[("a", &[])]);
        shown(&revisions, &none);
        assert!(is(&evil, "a_t", second));
        shown(&revisions, &none);
        assert!(!is(&good, "a_t", second));
    }

    /// A list of two pages. A tool was added between them, and has changed since.
    #[test]
    fn pages_of_different_editions_do_not_mix() {
        let revisions = ToolRevisions::default();
        let first = revisions.newest(|| catalog(&[("a", &[tool("t", "1")])]));
        let with_new = catalog(&[("a", &[tool("t", "1"), tool("z", "good")])]);
        let last = revisions.newest(|| Arc::clone(&with_new));
        let changed = catalog(&[("a", &[tool("t", "1"), tool("z", "evil")])]);
        let pages = ShownRevisions { first, last };
        assert!(!revisions.is_unchanged(|| Arc::clone(&changed), "a_z", pages));
        assert!(revisions.is_unchanged(|| Arc::clone(&changed), "a_t", pages));
    }

    #[test]
    fn a_server_cannot_have_tools_of_others_forgotten() {
        let revisions = ToolRevisions::default();
        let mine = [tool("t", "good")];
        let before = shown(&revisions, &catalog(&[("a", &mine), ("b", &[])]));
        // The tool is removed while the other server adds and removes many tools.
        for round in 0..3 {
            let names = 0..MAX_GONE_TOOLS / 2;
            let many: Vec<_> =
                names.map(|number| tool(&format!("x{round}-{number}"), "x")).collect();
            revisions.newest(|| catalog(&[("a", &[]), ("b", &many)]));
        }
        let kept = revisions.lock().tools.len();
        assert!(kept <= 2 * MAX_GONE_TOOLS, "{kept}");
        let back = catalog(&[("a", &mine), ("b", &[])]);
        assert!(revisions.is_unchanged(|| Arc::clone(&back), "a_t", before));
        let evil = catalog(&[("a", &[tool("t", "evil")]), ("b", &[tool("x0-1", "evil")])]);
        assert!(!revisions.is_unchanged(|| Arc::clone(&evil), "a_t", before));
        assert!(!revisions.is_unchanged(|| Arc::clone(&evil), "b_x0-1", before), "forgotten");
        let now = shown(&revisions, &evil);
        assert!(revisions.is_unchanged(|| Arc::clone(&evil), "b_x0-1", now));
    }

    #[test]
    fn a_list_that_is_forgotten_counts_for_all_that_are_not_known() {
        let (lists, revision) =
            (LastLists::default(), |it| Some(ShownRevisions { first: it, last: it }));
        let client = |number: usize| ClientId::from(format!("{number}").as_str());
        let (ann, bob) = (Principal::Token("ann".into()), Principal::Token("bob".into()));
        assert_eq!(lists.of(&client(0)), None);
        lists.note(&client(0), &bob, revision(7));
        for number in 1..MAX_LAST_LISTS {
            lists.note(&client(number), &ann, revision(8));
        }
        assert_eq!(lists.of(&"new".into()), None, "none is forgotten yet");
        lists.note(&"new".into(), &ann, revision(9));
        assert_eq!(lists.of(&client(0)), revision(7), "the principal with most is evicted");
        assert_eq!(lists.of(&client(1)), revision(8), "as if it was not forgotten");
        lists.note(&client(1), &ann, revision(10));
        assert_eq!(lists.of(&client(1)), revision(10));
        assert_eq!(lists.of(&"never".into()), revision(8));
        assert_eq!(lists.lock().clients.len(), MAX_LAST_LISTS);
    }
}
