//! The public shadow of a task: what it says about its server while it works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::options::Options;
use super::pagination::List;
use super::session::{Session, masked_raw};
use super::state::status::{Described, State, Status};
use crate::error::Error;
use crate::item::{Item, Kind};
use crate::message::Raw;
use crate::name::ServerName;
use crate::protocol::ProtocolVersion;
use crate::transport::{RemainingProcess, SecretMask, Tail};

/// What a server has of one kind, and until when that need not be asked for again.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) items: Arc<[Arc<Item>]>,
    /// Whether it has ever been asked for.
    pub(super) is_known: bool,
    /// Nothing if they have to be asked for in any case.
    pub(super) fresh_until: Option<tokio::time::Instant>,
}

impl Listed {
    fn none() -> Self {
        Self { items: Arc::new([]), is_known: false, fresh_until: None }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh_until.is_some_and(|until| tokio::time::Instant::now() < until)
    }
}

/// What everybody may know about a server. Only its task changes it, but for the count of failures.
pub(super) struct Shadow {
    status: watch::Sender<Status>,
    listed: [watch::Sender<Listed>; Kind::ALL.len()],
    /// Counted apart from the status: those who watch it do not watch calls.
    calls: AtomicU64,
    failures: AtomicU64,
    /// Which edition of its tools is known, while it is ready; else zero.
    edition: AtomicU64,
    /// Whether the server speaks the older era as well, as it said in the newer one.
    speaks_both_eras: AtomicBool,
    /// The last of all editions.
    last_edition: AtomicU64,
    /// The standard error of the process that was started last, and what it was given.
    tail: Mutex<Tail>,
    /// The first start since it was last ready or stopped in order.
    unready_since: Mutex<Option<tokio::time::Instant>>,
}

impl Shadow {
    /// A server that has not been started, with the tools it had at an earlier time.
    pub(super) fn new(remembered: Vec<Arc<Item>>) -> Self {
        let status = Status { tools: remembered.len(), ..Status::default() };
        let shadow = Self {
            status: watch::Sender::new(status),
            listed: Kind::ALL.map(|_| watch::Sender::new(Listed::none())),
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            edition: AtomicU64::new(0),
            speaks_both_eras: AtomicBool::new(false),
            last_edition: AtomicU64::new(0),
            tail: Mutex::default(),
            unready_since: Mutex::default(),
        };
        let is_known = !remembered.is_empty();
        let remembered = Listed { items: remembered.into(), is_known, fresh_until: None };
        shadow.of(Kind::Tool).send_replace(remembered);
        shadow
    }

    fn of(&self, kind: Kind) -> &watch::Sender<Listed> {
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

    pub(super) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// Its tools are others, or those of another conversation. Said once they are there.
    fn begin_edition(&self) {
        let next = self.last_edition.fetch_add(1, Ordering::Relaxed) + 1;
        self.edition.store(next, Ordering::Release);
    }

    /// Whether this revision of the protocol was agreed on.
    pub(super) fn speaks(&self, version: ProtocolVersion) -> bool {
        self.status.borrow().protocol.as_deref() == Some(version.as_str())
    }

    pub(super) fn speaks_both_eras(&self) -> bool {
        self.speaks_both_eras.load(Ordering::Acquire)
    }

    pub(super) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(super) fn listed(&self, kind: Kind) -> Listed {
        self.of(kind).borrow().clone()
    }

    pub(super) fn is_fresh(&self, kind: Kind) -> bool {
        self.of(kind).borrow().is_fresh()
    }

    pub(super) fn watch_list(&self, kind: Kind) -> watch::Receiver<Listed> {
        self.of(kind).subscribe()
    }

    /// Whether the server says that it has things of a kind. One that says nothing may have some.
    pub(super) fn offers(&self, kind: Kind) -> bool {
        let status = self.status.borrow();
        let capabilities = status.capabilities.as_ref();
        capabilities.is_none_or(|capabilities| capabilities.get(kind.capability()).is_some())
    }

    /// A process has been started, and this is its standard error.
    pub(super) fn hears(&self, tail: Tail) {
        *self.tail.lock().unwrap_or_else(PoisonError::into_inner) = tail;
    }

    /// What the server was given and must not be shown.
    pub(super) fn mask(&self) -> Arc<SecretMask> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).mask()
    }

    /// The first start since the server was last ready or stopped in order, if there was one. Later
    /// attempts do not count: nobody waits again for a server that fails again.
    pub(super) fn unready_since(&self) -> Option<tokio::time::Instant> {
        *self.unready_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_unready_since(&self, since: Option<tokio::time::Instant>) {
        *self.unready_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    pub(super) fn starting(&self) {
        let first = self.unready_since().unwrap_or_else(tokio::time::Instant::now);
        self.set_unready_since(Some(first));
        self.status.send_modify(|status| {
            status.state = State::Starting;
            status.next_attempt = None;
        });
    }

    pub(super) fn ready(&self, session: &Session, described: &Described) {
        self.speaks_both_eras.store(described.speaks_both_eras, Ordering::Release);
        let mask = self.mask();
        let shown = |raw: &Option<Raw>| raw.clone().map(|raw| masked_raw(&mask, raw));
        self.status.send_modify(|status| {
            status.state = State::Ready;
            status.transport = Some(session.wire().transport());
            status.protocol = Some(session.version.as_str().into());
            status.server_info = shown(&described.server_info);
            status.capabilities = shown(&described.capabilities);
            status.instructions.clone_from(&described.instructions);
            status.last_error = None;
            status.process_id = session.wire().process_id();
            status.ready_since = Some(Instant::now());
        });
        self.set_unready_since(None);
        self.begin_edition();
    }

    /// A list is this, and holds for so long.
    pub(super) fn took(&self, list: List, ttl: Duration) {
        let List { kind, items, mut set_aside, .. } = list;
        let mask = self.mask();
        for item in &mut set_aside {
            item.name = item.name.take().map(|name| mask.masked(&name).into());
            item.reason = mask.masked(&item.reason).into();
        }
        let count = items.len();
        let fresh_until = tokio::time::Instant::now().checked_add(ttl);
        let listed = Listed { items: items.into(), is_known: true, fresh_until };
        let items = Arc::clone(&listed.items);
        let before = self.of(kind).send_replace(listed).items;
        if kind == Kind::Tool && self.edition() != 0 && are_others(&before, &items) {
            self.begin_edition();
        }
        // Those who watch the status learn that way that the list is another.
        self.status.send_modify(|status| {
            if kind == Kind::Tool {
                status.tools = count;
            }
            status.set_aside.retain(|other| other.kind != kind);
            status.set_aside.extend(set_aside);
        });
    }

    /// A list may have changed.
    pub(super) fn is_stale(&self, kind: Kind) {
        self.of(kind).send_modify(|listed| listed.fresh_until = None);
    }

    /// What the server has said beside its messages.
    pub(super) fn noticed(&self, session: &Session) {
        self.status.send_modify(|status| {
            status.noise = session.noise;
        });
    }

    pub(super) fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn call_failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Something went wrong that does not end the server.
    pub(super) fn trouble(&self, error: Error) {
        self.status.send_modify(|status| status.last_error = Some(error));
    }

    pub(super) fn not_remembered(&self, reason: Option<Box<str>>) {
        self.status.send_if_modified(|status| {
            let changed = status.not_remembered != reason;
            status.not_remembered = reason;
            changed
        });
    }

    /// It failed, and is perhaps started again by itself.
    pub(super) fn failed(&self, error: &Error, pause: Option<Duration>, restarts: u32) {
        self.is_over();
        self.forget_lists();
        self.status.send_modify(|status| {
            gone(status, State::Failed);
            status.tools = 0;
            status.last_error = Some(error.clone());
            status.next_attempt = pause.map(|pause| Instant::now() + pause);
            status.restarts = restarts;
        });
    }

    /// No conversation is going on.
    fn is_over(&self) {
        self.edition.store(0, Ordering::Release);
    }

    fn forget_lists(&self) {
        for listed in &self.listed {
            listed.send_replace(Listed::none());
        }
    }

    /// Processes of the server could not be ended.
    pub(super) fn left_behind(
        &self,
        server: &ServerName,
        processes: Vec<RemainingProcess>,
        options: &Options,
    ) {
        if !processes.is_empty() {
            options.left_behind(server, &processes);
            self.status.send_modify(|status| status.remaining_processes.extend(processes));
        }
    }

    /// It is not needed at the moment. What it has stays.
    pub(super) fn idle(&self) {
        self.is_over();
        self.set_unready_since(None);
        self.status.send_modify(|status| {
            gone(status, State::Idle);
            status.next_attempt = None;
            status.restarts = 0;
        });
    }

    /// It has been ended for good.
    pub(super) fn stopped(&self) {
        self.is_over();
        self.forget_lists();
        self.status.send_modify(|status| {
            gone(status, State::Stopped);
            status.next_attempt = None;
        });
    }
}

fn are_others(before: &[Arc<Item>], now: &[Arc<Item>]) -> bool {
    before.iter().map(|item| item.definition()).ne(now.iter().map(|item| item.definition()))
}

fn gone(status: &mut Status, state: State) {
    status.state = state;
    status.process_id = None;
    status.ready_since = None;
}
