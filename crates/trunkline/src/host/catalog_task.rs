//! The task that maintains the catalog: rebuilds it whenever the lists of a server change.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use super::ActiveConfig;
use crate::catalog::{Availability, Catalog, CatalogBuilder, ServerItems};
use crate::config::{Config, Fingerprint};
use crate::connection::{Connection, State};
use crate::error::Error;
use crate::item::{Item, ItemKind};
use crate::message::Raw;
use crate::name::ServerName;
use crate::registry::ServerSet;

/// Concurrent refresh requests; the next refresh completes all of them.
const MAX_LOOKS: usize = 64;

/// Many servers start at once, and each change of one would wake this task, which takes processor time from their
/// starts.
const BETWEEN_CHANGES: Duration = Duration::from_millis(1);

/// The lists and state of a server at the last refresh.
struct ServerSnapshot {
    lists: [Arc<[Arc<Item>]>; ItemKind::ALL.len()],
    state: State,
    down: Option<Box<str>>,
    declares_resources: bool,
    has_unasked_resources: bool,
    are_tools_listed: bool,
    has_unasked_names: bool,
}

impl ServerSnapshot {
    fn of(connection: &Connection, before: Option<&Self>) -> Self {
        let watched = connection.watch();
        // Borrowed only here: a copy of a status is large, and methods of the connection borrow it again.
        let (state, down, declares_resources) = {
            let status = watched.borrow();
            let down = match status.state {
                State::Failed => {
                    let error = status.last_error.as_ref().map(Error::message_with_login);
                    Some(error.unwrap_or("it failed".into()).into())
                }
                // It counts as down until it is ready: most attempts fail like the one before.
                State::Starting => before.and_then(|before| before.down.clone()),
                State::Idle | State::Ready | State::Stopped => None,
            };
            let capability = ItemKind::Resource.capability();
            let declares = |capabilities: &Raw| capabilities.get(capability).is_some();
            (status.state, down, status.capabilities.as_ref().is_some_and(declares))
        };
        let lists = ItemKind::ALL.map(|kind| connection.list(kind));
        let is_known = |kind: &ItemKind| connection.is_loaded(*kind);
        let addressed = [ItemKind::Resource, ItemKind::ResourceTemplate];
        let has_unasked_resources =
            connection.offers(ItemKind::Resource) && !addressed.iter().all(is_known);
        let are_tools_listed = is_known(&ItemKind::Tool);
        let has_unasked_names = !are_tools_listed
            || (connection.offers(ItemKind::Prompt) && !is_known(&ItemKind::Prompt));
        Self {
            lists,
            state,
            down,
            declares_resources,
            has_unasked_resources,
            are_tools_listed,
            has_unasked_names,
        }
    }

    fn is_as(&self, other: &Self) -> bool {
        let are_same = |(left, right): (&Arc<[_]>, &Arc<[_]>)| Arc::ptr_eq(left, right);
        self.down == other.down
            && self.declares_resources == other.declares_resources
            && self.has_unasked_resources == other.has_unasked_resources
            && self.are_tools_listed == other.are_tools_listed
            && self.has_unasked_names == other.has_unasked_names
            && self.has_lists() == other.has_lists()
            && self.lists.iter().zip(&other.lists).all(are_same)
    }

    /// Whether its lists are valid. A server that failed, or is restarting, has lost them.
    fn has_lists(&self) -> bool {
        let is_running = !matches!(self.state, State::Failed | State::Starting);
        is_running || self.lists.iter().any(|list| !list.is_empty())
    }
}

/// The last valid lists of a server, with the fingerprint of its transport.
struct LastKnown {
    fingerprint: Fingerprint,
    listing: Arc<ServerItems>,
}

/// A new task, with the catalog that it maintains and a handle to refresh it.
pub(super) struct NewCatalog {
    pub(super) task: CatalogTask,
    pub(super) catalog: watch::Receiver<Arc<Catalog>>,
    pub(super) refresh: RefreshHandle,
}

/// The task that maintains the catalog.
pub(super) struct CatalogTask {
    servers: Arc<ServerSet>,
    standing: watch::Receiver<ActiveConfig>,
    reserved: BTreeSet<Box<str>>,
    wanted: mpsc::Receiver<oneshot::Sender<()>>,
    catalog: watch::Sender<Arc<Catalog>>,
    config: Arc<Config>,
    sources: CatalogBuilder,
    seen: BTreeMap<ServerName, ServerSnapshot>,
    known: BTreeMap<ServerName, LastKnown>,
}

/// The servers that a refresh looks at. With a thousand servers that start, looking at all of them for each one
/// takes longer than the starts.
#[derive(Clone, Copy)]
enum RefreshScope<'a> {
    All,
    /// Those that may have changed.
    Changed(&'a BTreeSet<ServerName>),
}

/// Requests a refresh of the catalog.
pub(super) struct RefreshHandle(mpsc::Sender<oneshot::Sender<()>>);

impl RefreshHandle {
    /// Waits until the catalog contains the current lists of all servers.
    pub(super) async fn request(&self) {
        let (done, looked) = oneshot::channel();
        if self.0.send(done).await.is_ok() {
            let _ = looked.await;
        }
    }
}

impl CatalogTask {
    /// Builds the first catalog, and the task that maintains it.
    pub(super) fn build(
        servers: Arc<ServerSet>,
        standing: watch::Receiver<ActiveConfig>,
        reserved: BTreeSet<Box<str>>,
    ) -> NewCatalog {
        let (looks, wanted) = mpsc::channel(MAX_LOOKS);
        let config = Arc::clone(&standing.borrow().config);
        let sources = CatalogBuilder::with_reserved(&config, reserved.clone());
        let catalog = watch::Sender::new(Arc::new(Catalog::build(&sources)));
        let receiver = catalog.subscribe();
        let (seen, known) = (BTreeMap::new(), BTreeMap::new());
        let mut task =
            Self { servers, standing, reserved, wanted, catalog, config, sources, seen, known };
        // Cached lists of servers that do not run yet are in the first catalog.
        task.refresh(RefreshScope::All);
        NewCatalog { task, catalog: receiver, refresh: RefreshHandle(looks) }
    }

    pub(super) async fn run(mut self) {
        let mut changes = self.servers.watch();
        loop {
            let (mut changed, mut waiting) = (BTreeSet::new(), Vec::new());
            tokio::select! {
                Some(change) = changes.next() => {
                    changed.insert(change.server);
                    waiting.extend(self.wait_for_more().await);
                }
                Some(done) = self.wanted.recv() => waiting.push(done),
                Ok(()) = self.standing.changed() => {}
                else => return,
            }
            // One refresh covers everything that has happened already.
            changed.extend(iter::from_fn(|| changes.try_next()).map(|change| change.server));
            waiting.extend(iter::from_fn(|| self.wanted.try_recv().ok()));
            let is_named = waiting.is_empty() && !changed.is_empty();
            let scope = if is_named { RefreshScope::Changed(&changed) } else { RefreshScope::All };
            // After a panic the catalog stays as it was, and the next refresh rebuilds it.
            if panic::catch_unwind(AssertUnwindSafe(|| self.refresh(scope))).is_err() {
                self.seen.clear();
            }
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    /// Waits a moment for changes of other servers, but not while a caller waits for the catalog.
    async fn wait_for_more(&mut self) -> Option<oneshot::Sender<()>> {
        tokio::select! {
            () = sleep(BETWEEN_CHANGES) => None,
            done = self.wanted.recv() => done,
            Ok(()) = self.standing.changed() => None,
        }
    }

    /// Applies a new configuration, if there is one: other names and servers, the same lists. Every
    /// refresh checks for it, because a reload requests a refresh.
    fn follow_configuration(&mut self) -> bool {
        let config = Arc::clone(&self.standing.borrow_and_update().config);
        if Arc::ptr_eq(&config, &self.config) {
            return false;
        }
        self.sources = CatalogBuilder::with_reserved(&config, self.reserved.clone());
        self.config = config;
        self.seen.clear();
        true
    }

    /// Reads the lists of servers, and builds a new catalog if anything changed.
    fn refresh(&mut self, scope: RefreshScope<'_>) {
        let mut is_different = self.follow_configuration();
        // After a new configuration and after a panic, nothing has been seen.
        let scope = if self.seen.is_empty() { RefreshScope::All } else { scope };
        let connections = match scope {
            RefreshScope::All => self.servers.connections(),
            RefreshScope::Changed(names) => {
                names.iter().filter_map(|name| self.servers.get(name.as_str())).collect()
            }
        };
        is_different |= self.remove_gone(scope, &connections);
        for connection in &connections {
            let name = &connection.server().name;
            let now = ServerSnapshot::of(connection, self.seen.get(name));
            if self.seen.get(name).is_some_and(|before| before.is_as(&now)) {
                continue;
            }
            is_different = true;
            self.take(connection, now);
        }
        if is_different {
            self.catalog.send_replace(Arc::new(Catalog::build(&self.sources)));
        }
    }

    /// Updates the lists of a server. While it is down or restarting, its last lists stay, so that
    /// names do not change.
    fn take(&mut self, connection: &Connection, now: ServerSnapshot) {
        let (server, fingerprint) = (&connection.server().name, connection.fingerprint());
        let known = self.known.get(server).filter(|known| known.fingerprint == *fingerprint);
        let listing = match known {
            Some(known) if !now.has_lists() => Arc::clone(&known.listing),
            _ => {
                let items = now.lists.iter().flat_map(|list| list.iter().cloned());
                let listing = ServerItems::new(items).declare_resources(now.declares_resources);
                let listing = listing.with_unlisted_resources(now.has_unasked_resources);
                let listing = listing.with_listed_tools(now.are_tools_listed);
                Arc::new(listing.with_unlisted_names(now.has_unasked_names))
            }
        };
        self.sources.add(server, Arc::clone(&listing));
        if let Some(reason) = &now.down {
            self.sources.set_availability(server, Availability::Down(reason.clone()));
        }
        self.known.insert(server.clone(), LastKnown { fingerprint: *fingerprint, listing });
        self.seen.insert(server.clone(), now);
    }

    /// Removes servers that are gone. Returns whether there were any.
    fn remove_gone(&mut self, scope: RefreshScope<'_>, connections: &[Arc<Connection>]) -> bool {
        let names: HashSet<_> = connections.iter().map(|it| &it.server().name).collect();
        let is_gone = |name: &&ServerName| !names.contains(name) && self.known.contains_key(*name);
        let gone: Vec<_> = match scope {
            RefreshScope::All => self.known.keys().filter(is_gone).cloned().collect(),
            RefreshScope::Changed(names) => names.iter().filter(is_gone).cloned().collect(),
        };
        for name in &gone {
            self.known.remove(name);
            self.seen.remove(name);
            self.sources.remove(name);
        }
        !gone.is_empty()
    }
}
