//! Finds changes, for the event stream.
//!
//! A task compares the state four times a second, and only while there is a listener. Compared with callbacks from
//! every place that changes something, nothing can be forgotten, and a burst of changes is one event.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::{Instant, MissedTickBehavior, interval};
use trunkline::catalog::Catalog;
use trunkline::policy::ProjectToggles;

use crate::source::OpenProject;
use crate::types::{Call, Change, Server, TrustRequest};

/// Time between two comparisons.
const PAUSE: Duration = Duration::from_millis(250);

/// Time between two looks at files that wait for a decision, which have to be read.
const TRUST_PAUSE: Duration = Duration::from_secs(2);

/// Events that are kept for listeners that come back.
const MAX_EVENTS: usize = 256;

/// Items in one event; if there are more, the listener reads the list.
const MAX_ITEMS: usize = 100;

/// The kinds of events.
pub(crate) const KINDS: [&str; 5] = ["servers", "tools", "calls", "conversations", "trust"];

/// The events of a program.
pub(crate) struct EventHub {
    sender: broadcast::Sender<Arc<Change>>,
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    last: u64,
    kept: VecDeque<Arc<Change>>,
    /// Whether the task runs.
    is_running: bool,
    seen: Option<Snapshot>,
}

/// The state at the last comparison.
struct Snapshot {
    servers: BTreeMap<(String, String), Value>,
    tools: u64,
    conversations: u64,
    trust: u64,
    trust_checked: Instant,
    last_call: u64,
}

/// The input of a comparison.
pub(crate) trait ChangeSource: Send + Sync + 'static {
    fn projects(&self) -> Vec<OpenProject>;
    fn servers(&self, projects: &[OpenProject]) -> Vec<Server>;
    fn calls_since(&self, id: u64) -> Vec<Call>;
    fn last_call(&self) -> u64;
    fn trust(&self) -> impl Future<Output = Vec<TrustRequest>> + Send;
    fn hub(&self) -> &EventHub;
}

impl Default for EventHub {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(MAX_EVENTS), state: Mutex::default() }
    }
}

impl EventHub {
    /// The number of the newest event.
    pub(crate) fn last_id(&self) -> u64 {
        self.state().last
    }

    /// Starts to listen: the events after a given one, and all later ones. If that event is not kept any more, or
    /// is of another process, every kind may have changed.
    pub(crate) fn listen(
        &self,
        since: Option<u64>,
    ) -> (Vec<Arc<Change>>, broadcast::Receiver<Arc<Change>>) {
        let state = self.state();
        let receiver = self.sender.subscribe();
        let Some(since) = since else { return (Vec::new(), receiver) };
        let first = state.kept.front().map_or(state.last, |change| change.id - 1);
        // Nothing is compared without a listener, so that a change may be unknown.
        if !state.is_running || since < first || since > state.last {
            let change = |kind: &&str| {
                Arc::new(Change { id: state.last, kind: (*kind).to_owned(), items: Vec::new() })
            };
            return (KINDS.iter().map(change).collect(), receiver);
        }
        (state.kept.iter().filter(|change| change.id > since).cloned().collect(), receiver)
    }

    pub(crate) fn has_listeners(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Whether the caller has to run the task.
    fn begin(&self) -> bool {
        !std::mem::replace(&mut self.state().is_running, true)
    }

    fn send(&self, kind: &str, items: Vec<Value>) {
        let mut state = self.state();
        state.last += 1;
        let items = if items.len() > MAX_ITEMS { Vec::new() } else { items };
        let change = Arc::new(Change { id: state.last, kind: kind.to_owned(), items });
        if state.kept.len() == MAX_EVENTS {
            state.kept.pop_front();
        }
        state.kept.push_back(Arc::clone(&change));
        let _ = self.sender.send(change);
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares while there is a listener. Started by the first one.
pub(crate) fn follow(watched: Arc<impl ChangeSource>) {
    if !watched.hub().begin() {
        return;
    }
    tokio::spawn(async move {
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            compare(&*watched).await;
            ticks.tick().await;
            let hub = watched.hub();
            let mut state = hub.state();
            if hub.sender.receiver_count() == 0 {
                (state.is_running, state.seen) = (false, None);
                return;
            }
        }
    });
}

async fn compare(watched: &impl ChangeSource) {
    let hub = watched.hub();
    let before = hub.state().seen.take();
    let projects = watched.projects();
    let servers = watched.servers(&projects).into_iter();
    let servers = servers.map(|it| ((it.project.clone(), it.name.clone()), comparable(&it)));
    let trust_is_due =
        before.as_ref().is_none_or(|before| before.trust_checked.elapsed() >= TRUST_PAUSE);
    let (trust, trust_checked) = match &before {
        Some(before) if !trust_is_due => (before.trust, before.trust_checked),
        _ => (digest(&json!(watched.trust().await)), Instant::now()),
    };
    let now = Snapshot {
        servers: servers.collect(),
        tools: digest_catalogs(&projects),
        conversations: digest_toggles(&projects),
        trust,
        trust_checked,
        last_call: watched.last_call(),
    };
    if let Some(before) = before {
        send_changes(watched, &before, &now);
    }
    hub.state().seen = Some(now);
}

fn send_changes(watched: &impl ChangeSource, before: &Snapshot, now: &Snapshot) {
    let hub = watched.hub();
    if before.servers != now.servers {
        let is_changed =
            |(key, server): &(&(String, String), &Value)| before.servers.get(*key) != Some(*server);
        let changed = now.servers.iter().filter(is_changed);
        hub.send("servers", changed.map(|(_, server)| server.clone()).collect());
    }
    if before.tools != now.tools {
        hub.send("tools", Vec::new());
    }
    if before.last_call != now.last_call {
        let calls = watched.calls_since(before.last_call);
        hub.send("calls", calls.iter().map(|call| json!(call)).collect());
    }
    if before.conversations != now.conversations {
        hub.send("conversations", Vec::new());
    }
    if before.trust != now.trust {
        hub.send("trust", Vec::new());
    }
}

/// A server without the members that change all the time.
fn comparable(server: &Server) -> Value {
    json!(Server { uptime_ms: None, next_attempt_ms: None, ..server.clone() })
}

fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Catalogs are replaced as a whole, so that their addresses tell.
fn digest_catalogs(projects: &[OpenProject]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for project in projects {
        let catalog: Arc<Catalog> = project.host.catalog();
        (&project.info.id, Arc::as_ptr(&catalog) as usize).hash(&mut hasher);
        (Arc::as_ptr(&project.host.config()) as usize).hash(&mut hasher);
    }
    hasher.finish()
}

fn digest_toggles(projects: &[OpenProject]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for project in projects {
        let toggles: Arc<ProjectToggles> = project.host.conversations().toggles();
        (&project.info.id, Arc::as_ptr(&toggles) as usize).hash(&mut hasher);
    }
    hasher.finish()
}
