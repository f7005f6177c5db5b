//! What all connections of one run share: lists that change, tasks, sessions, and a seal.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::broadcast;

use crate::profile::Profile;

/// The resource that clients may subscribe to.
pub(crate) const WATCHED: &str = "test://watched-resource";

/// More than anybody triggers before the others have been told.
const CHANGES_KEPT: usize = 64;

/// Something that clients may have subscribed to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Tools,
    Prompts,
    WatchedResource,
}

/// The shared state of one run.
pub(crate) struct World {
    pub(crate) profile: Profile,
    pub(crate) tasks: TaskManager,
    /// The sessions of legacy clients over HTTP; empty over stdio.
    pub(crate) sessions: Arc<LocalSessionManager>,
    changes: broadcast::Sender<Change>,
    has_added_tool: AtomicBool,
    has_added_prompt: AtomicBool,
    /// How many calls were cancelled, by their label.
    cancelled: Mutex<HashMap<String, u64>>,
    seal: RandomState,
}

impl World {
    pub(crate) fn new(profile: Profile) -> Self {
        Self {
            profile,
            tasks: TaskManager::new(),
            sessions: Arc::new(LocalSessionManager::default()),
            changes: broadcast::channel(CHANGES_KEPT).0,
            has_added_tool: AtomicBool::new(false),
            has_added_prompt: AtomicBool::new(false),
            cancelled: Mutex::default(),
            seal: RandomState::new(),
        }
    }

    /// Every change from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Makes a change happen and tells everybody who listens.
    pub(crate) fn change(&self, change: Change) {
        match change {
            Change::Tools => self.has_added_tool.fetch_not(Ordering::Relaxed),
            Change::Prompts => self.has_added_prompt.fetch_not(Ordering::Relaxed),
            Change::WatchedResource => false,
        };
        // Nobody listens: nobody has to be told.
        let _ = self.changes.send(change);
    }

    pub(crate) fn has_added_tool(&self) -> bool {
        self.has_added_tool.load(Ordering::Relaxed)
    }

    pub(crate) fn has_added_prompt(&self) -> bool {
        self.has_added_prompt.load(Ordering::Relaxed)
    }

    /// Remembers that a call with this label was cancelled.
    pub(crate) fn count_cancelled(&self, label: &str) {
        let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        *cancelled.entry(label.to_owned()).or_default() += 1;
    }

    /// How many calls with this label were cancelled.
    pub(crate) fn cancelled(&self, label: &str) -> u64 {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        cancelled.get(label).copied().unwrap_or_default()
    }

    /// The text with a mark that only this run can make. A keyed hash is seal enough for a fixture.
    pub(crate) fn seal(&self, text: &str) -> String {
        format!("{text}.{:016x}", self.seal.hash_one(text))
    }

    /// The text under the seal, if the seal is ours and unbroken.
    pub(crate) fn open(&self, sealed: &str) -> Option<String> {
        let (text, _) = sealed.rsplit_once('.')?;
        (self.seal(text) == sealed).then(|| text.to_owned())
    }
}
