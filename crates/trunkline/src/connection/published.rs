//! The status and lists that the actor publishes for readers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::cache::{CachedList, CachedLists};
use super::options::ConnectionOptions;
use super::pagination::ItemList;
use super::session::{Session, masked_raw};
use super::state::status::{ServerDescription, State, Status};
use crate::error::Error;
use crate::item::{Item, ItemKind};
use crate::message::Raw;
use crate::name::ServerName;
use crate::protocol::ProtocolVersion;
use crate::transport::{RemainingProcess, SecretMask, StderrTail};

/// The items of one kind, and until when they are fresh.
#[derive(Clone)]
pub(super) struct ListSnapshot {
    pub(super) items: Arc<[Arc<Item>]>,
    /// Whether the kind was ever listed.
    pub(super) is_known: bool,
    /// `None` if the list is stale.
    pub(super) fresh_until: Option<tokio::time::Instant>,
    /// For a list of an earlier run: when the server sent it.
    pub(super) saved_at: Option<SystemTime>,
}

impl ListSnapshot {
    fn unknown() -> Self {
        Self { items: Arc::new([]), is_known: false, fresh_until: None, saved_at: None }
    }

    /// A list of an earlier run.
    fn cached(kind: ItemKind, list: CachedList) -> Self {
        // A server without tools is asked again.
        let is_known = kind != ItemKind::Tool || !list.items.is_empty();
        let saved_at = Some(list.saved_at);
        Self { items: list.items.into(), is_known, fresh_until: None, saved_at }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh_until.is_some_and(|until| tokio::time::Instant::now() < until)
    }
}

/// The published state of a server. Only its actor changes it, except that callers count failures
/// and mark lists as stale.
pub(super) struct PublishedState {
    status: watch::Sender<Status>,
    listed: [watch::Sender<ListSnapshot>; ItemKind::ALL.len()],
    /// Counted outside of the status: watchers of the status are not notified of every call.
    calls: AtomicU64,
    failures: AtomicU64,
    /// The current revision of the tools while the server is ready; else zero.
    edition: AtomicU64,
    /// Whether the server also supports the legacy era, according to `server/discover`.
    speaks_both_eras: AtomicBool,
    /// Whether the server has sent a request in an era that cannot answer it.
    sends_unanswerable: AtomicBool,
    /// The last of all editions.
    last_edition: AtomicU64,
    /// The standard error of the last process, with the secrets that it received.
    tail: Mutex<StderrTail>,
    /// The first start since the server was last ready or stopped in order.
    unready_since: Mutex<Option<tokio::time::Instant>>,
}

impl PublishedState {
    /// A server that has not been started, with the lists from the cache.
    pub(super) fn new(mut cached: CachedLists) -> Self {
        let mut status = Status::default();
        let listed = ItemKind::ALL.map(|kind| {
            let Some(mut list) = cached.take(kind) else { return ListSnapshot::unknown() };
            status.set_aside.append(&mut list.set_aside);
            ListSnapshot::cached(kind, list)
        });
        status.tools = listed[ItemKind::Tool as usize].items.len();
        Self {
            status: watch::Sender::new(status),
            listed: listed.map(watch::Sender::new),
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            edition: AtomicU64::new(0),
            speaks_both_eras: AtomicBool::new(false),
            sends_unanswerable: AtomicBool::new(false),
            last_edition: AtomicU64::new(0),
            tail: Mutex::default(),
            unready_since: Mutex::default(),
        }
    }

    fn of(&self, kind: ItemKind) -> &watch::Sender<ListSnapshot> {
        &self.listed[kind as usize]
    }

    pub(super) fn status(&self) -> Status {
        let calls = self.calls.load(Ordering::Relaxed);
        let failures = self.failures.load(Ordering::Relaxed);
        let stderr = self.tail.lock().unwrap_or_else(PoisonError::into_inner).lines();
        Status { calls, failures, stderr, ..self.status.borrow().clone() }
    }

    pub(super) fn state(&self) -> State {
        self.status.borrow().state
    }

    pub(super) fn tools_revision(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// Begins a revision: the tools changed, or belong to a new session. Called once they are
    /// published.
    fn begin_revision(&self) {
        let next = self.last_edition.fetch_add(1, Ordering::Relaxed) + 1;
        self.edition.store(next, Ordering::Release);
    }

    /// Whether this protocol version was negotiated.
    pub(super) fn speaks(&self, version: ProtocolVersion) -> bool {
        self.status.borrow().protocol.as_deref() == Some(version.as_str())
    }

    pub(super) fn speaks_both_eras(&self) -> bool {
        self.speaks_both_eras.load(Ordering::Acquire)
    }

    /// Notes that the server has sent a request in an era that cannot answer it.
    pub(super) fn record_unanswerable(&self) {
        self.sends_unanswerable.store(true, Ordering::Release);
    }

    pub(super) fn sends_unanswerable(&self) -> bool {
        self.sends_unanswerable.load(Ordering::Acquire)
    }

    pub(super) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(super) fn listed(&self, kind: ItemKind) -> ListSnapshot {
        self.of(kind).borrow().clone()
    }

    pub(super) fn is_fresh(&self, kind: ItemKind) -> bool {
        self.of(kind).borrow().is_fresh()
    }

    pub(super) fn watch_list(&self, kind: ItemKind) -> watch::Receiver<ListSnapshot> {
        self.of(kind).subscribe()
    }

    /// Whether the server declares the capability for a kind. Before it has declared any, it may
    /// have all.
    pub(super) fn offers(&self, kind: ItemKind) -> bool {
        let status = self.status.borrow();
        let capabilities = status.capabilities.as_ref();
        capabilities.is_none_or(|capabilities| capabilities.get(kind.capability()).is_some())
    }

    /// Sets the standard error of a new process.
    pub(super) fn set_stderr(&self, tail: StderrTail) {
        *self.tail.lock().unwrap_or_else(PoisonError::into_inner) = tail;
    }

    /// The mask for the secrets that the server received.
    pub(super) fn mask(&self) -> Arc<SecretMask> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).mask()
    }

    /// The first start since the server was last ready or stopped in order, if there was one. Later
    /// attempts do not reset it: callers do not wait again for a server that fails again.
    pub(super) fn unready_since(&self) -> Option<tokio::time::Instant> {
        *self.unready_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_unready_since(&self, since: Option<tokio::time::Instant>) {
        *self.unready_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    pub(super) fn starting(&self) {
        let first = self.unready_since().unwrap_or_else(tokio::time::Instant::now);
        self.set_unready_since(Some(first));
        info!("server starting");
        self.status.send_modify(|status| {
            status.state = State::Starting;
            status.next_attempt = None;
        });
    }

    pub(super) fn ready(&self, session: &Session, described: &ServerDescription) {
        self.speaks_both_eras.store(described.speaks_both_eras, Ordering::Release);
        let mask = self.mask();
        let shown = |raw: &Option<Raw>| raw.clone().map(|raw| masked_raw(&mask, raw));
        let evicted = self.evict_cached();
        self.status.send_modify(|status| {
            status.state = State::Ready;
            status.set_aside.retain(|item| !evicted.contains(&item.kind));
            status.transport = Some(session.transport().transport());
            status.protocol = Some(session.version.as_str().into());
            status.server_info = shown(&described.server_info);
            status.capabilities = shown(&described.capabilities);
            status.instructions.clone_from(&described.instructions);
            status.last_error = None;
            status.process_id = session.transport().process_id();
            status.ready_since = Some(Instant::now());
        });
        self.set_unready_since(None);
        let (transport, version) = (session.transport().transport(), session.version.as_str());
        info!(transport, version, process = session.transport().process_id(), "server ready");
        self.begin_revision();
    }

    /// Evicts the lists of an earlier run: a server that runs is asked for its lists. Its tools are of this run already.
    fn evict_cached(&self) -> Vec<ItemKind> {
        let mut kinds = ItemKind::ALL.to_vec();
        kinds.retain(|kind| self.of(*kind).borrow().saved_at.is_some());
        for kind in &kinds {
            self.of(*kind).send_replace(ListSnapshot::unknown());
        }
        kinds
    }

    /// Publishes a list with its TTL.
    pub(super) fn set_list(&self, list: ItemList, ttl: Duration) {
        let ItemList { kind, items, mut set_aside, .. } = list;
        let mask = self.mask();
        for item in &mut set_aside {
            item.name = item.name.take().map(|name| mask.masked(&name).into());
            item.reason = mask.masked(&item.reason).into();
        }
        let count = items.len();
        debug!(
            method = kind.list_method(),
            items = count,
            rejected = set_aside.len(),
            "list published"
        );
        let fresh_until = tokio::time::Instant::now().checked_add(ttl);
        let items = items.into();
        let listed = ListSnapshot { items, is_known: true, fresh_until, saved_at: None };
        let items = Arc::clone(&listed.items);
        let before = self.of(kind).send_replace(listed).items;
        if kind == ItemKind::Tool && self.tools_revision() != 0 && differ(&before, &items) {
            self.begin_revision();
        }
        // Watchers of the status are notified of a changed list this way.
        self.status.send_modify(|status| {
            if kind == ItemKind::Tool {
                status.tools = count;
            }
            status.set_aside.retain(|other| other.kind != kind);
            status.set_aside.extend(set_aside);
        });
    }

    /// Marks a list as stale.
    pub(super) fn mark_stale(&self, kind: ItemKind) {
        self.of(kind).send_modify(|listed| listed.fresh_until = None);
    }

    /// Publishes the number of lines that were no messages.
    pub(super) fn record_noise(&self, session: &Session) {
        self.status.send_modify(|status| {
            status.noise = session.noise;
        });
    }

    pub(super) fn record_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn call_failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Records an error that does not end the server.
    pub(super) fn record_error(&self, error: Error) {
        self.status.send_modify(|status| status.last_error = Some(error));
    }

    pub(super) fn record_cache_error(&self, reason: Option<Box<str>>) {
        self.status.send_if_modified(|status| {
            let changed = status.not_remembered != reason;
            status.not_remembered = reason;
            changed
        });
    }

    /// Marks the server as failed; `pause` is the delay until it is restarted, if it is.
    pub(super) fn failed(&self, error: &Error, pause: Option<Duration>, restarts: u32) {
        self.end_session();
        self.forget_lists();
        warn!(%error, restart_in = pause.map(debug), restarts, "server failed");
        self.status.send_modify(|status| {
            mark_gone(status, State::Failed);
            status.tools = 0;
            status.last_error = Some(error.clone());
            status.next_attempt = pause.map(|pause| Instant::now() + pause);
            status.restarts = restarts;
        });
    }

    /// Marks the session as ended.
    fn end_session(&self) {
        self.edition.store(0, Ordering::Release);
    }

    fn forget_lists(&self) {
        for listed in &self.listed {
            listed.send_replace(ListSnapshot::unknown());
        }
    }

    /// Records processes of the server that could not be ended.
    pub(super) fn record_orphans(
        &self,
        server: &ServerName,
        processes: Vec<RemainingProcess>,
        options: &ConnectionOptions,
    ) {
        if !processes.is_empty() {
            warn!(processes = processes.len(), "processes of the server could not be ended");
            options.record_orphan(server, &processes);
            self.status.send_modify(|status| status.remaining_processes.extend(processes));
        }
    }

    /// Marks the server as stopped until its next use. Its lists stay.
    pub(super) fn idle(&self) {
        self.end_session();
        self.set_unready_since(None);
        info!("server idle");
        self.status.send_modify(|status| {
            mark_gone(status, State::Idle);
            status.next_attempt = None;
            status.restarts = 0;
        });
    }

    /// Marks the server as shut down for good.
    pub(super) fn stopped(&self) {
        self.end_session();
        self.forget_lists();
        info!("server stopped");
        self.status.send_modify(|status| {
            mark_gone(status, State::Stopped);
            status.next_attempt = None;
        });
    }
}

fn differ(before: &[Arc<Item>], now: &[Arc<Item>]) -> bool {
    before.iter().map(|item| item.definition()).ne(now.iter().map(|item| item.definition()))
}

fn mark_gone(status: &mut Status, state: State) {
    status.state = state;
    status.process_id = None;
    status.ready_since = None;
}
