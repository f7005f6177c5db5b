//! State shared by all connections of one run: changing lists, tasks, sessions, and a sealing key.

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

/// Capacity of the change channel, above the number of changes that tests trigger at once.
const CHANGES_KEPT: usize = 64;

/// A change that clients may be subscribed to.
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
    /// The sessions of legacy HTTP clients; empty over stdio.
    pub(crate) sessions: Arc<LocalSessionManager>,
    changes: broadcast::Sender<Change>,
    has_added_tool: AtomicBool,
    has_added_prompt: AtomicBool,
    /// Number of cancelled calls, by label.
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

    /// Subscribes to all later changes.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Applies a change and notifies all listeners.
    pub(crate) fn change(&self, change: Change) {
        match change {
            Change::Tools => self.has_added_tool.fetch_not(Ordering::Relaxed),
            Change::Prompts => self.has_added_prompt.fetch_not(Ordering::Relaxed),
            Change::WatchedResource => false,
        };
        // Fails without listeners, which is fine.
        let _ = self.changes.send(change);
    }

    pub(crate) fn has_added_tool(&self) -> bool {
        self.has_added_tool.load(Ordering::Relaxed)
    }

    pub(crate) fn has_added_prompt(&self) -> bool {
        self.has_added_prompt.load(Ordering::Relaxed)
    }

    /// Counts a cancelled call with this label.
    pub(crate) fn count_cancelled(&self, label: &str) {
        let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        *cancelled.entry(label.to_owned()).or_default() += 1;
    }

    /// Number of cancelled calls with this label.
    pub(crate) fn cancelled(&self, label: &str) -> u64 {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        cancelled.get(label).copied().unwrap_or_default()
    }

    /// Appends an authentication tag of this run. A keyed hash is sufficient for a fixture.
    pub(crate) fn seal(&self, text: &str) -> String {
        format!("{text}.{:016x}", self.seal.hash_one(text))
    }

    /// Returns the text, if its tag is valid.
    pub(crate) fn open(&self, sealed: &str) -> Option<String> {
        let (text, _) = sealed.rsplit_once('.')?;
        (self.seal(text) == sealed).then(|| text.to_owned())
    }
}
