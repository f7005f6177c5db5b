//! Notifies clients of list changes and resource updates of upstream servers.
//!
//! One task receives the notifications of all servers and the changes of the catalog, and derives
//! the list changes of each scope with a listener. Each listener filters by its subscription.

mod upstream;
mod resource_subscriptions;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::sleep;
use trunkline::catalog::Entry;
use trunkline::config::Share;
use trunkline::connection::{Connection, ServerNotification};
use trunkline::host::{Host, WeakHost};
use trunkline::item::ItemKind;
use trunkline::message::{Notification, Raw};
use trunkline::name::ServerName;
use trunkline::protocol::is_mcp_method;

use crate::access::scope::CallerScope;
pub(crate) use crate::changes::resource_subscriptions::{
    MAX_ADDRESSES, NotificationSource, ResourceSubscriptions, resubscribe,
};
use trunkline::protocol::ELICITATION_COMPLETE;

use crate::request::panics;
use upstream::sync_listeners;

/// Changes that a listener may lag behind before it is notified that everything may have changed.
const MAX_BEHIND: usize = 1024;

/// Time within which successive changes are merged into one.
const PAUSE: Duration = Duration::from_millis(50);

/// Pause before the task restarts after a panic, so that a repeated panic does not use all of a
/// CPU.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);

/// The lists whose changes are notified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListKinds {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListKinds {
    pub(crate) const ALL: Self = Self { tools: true, prompts: true, resources: true };

    fn from_kind(kind: ItemKind) -> Self {
        match kind {
            ItemKind::Tool => Self { tools: true, ..Self::default() },
            ItemKind::Prompt => Self { prompts: true, ..Self::default() },
            ItemKind::Resource | ItemKind::ResourceTemplate => {
                Self { resources: true, ..Self::default() }
            }
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            prompts: self.prompts && other.prompts,
            resources: self.resources && other.resources,
        }
    }

    /// The `list_changed` notifications of these lists.
    fn notifications(self) -> impl Iterator<Item = Notification> {
        let named = [
            (self.tools, "notifications/tools/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
        ];
        let notification = |(has_changed, method): (bool, &str)| {
            has_changed.then(|| Notification { method: method.into(), params: None })
        };
        named.into_iter().filter_map(notification)
    }
}

/// A change that listeners receive. Small, because the channel allocates [`MAX_BEHIND`] of them at once.
#[derive(Clone, Debug)]
enum Change {
    /// Changed lists of one scope.
    Lists { scope: Arc<CallerScope>, lists: ListKinds },
    /// A server has a new connection, because its entry was changed, or another `share` mode.
    Connected(Weak<Connection>, Share),
    /// An updated resource.
    Resource(Arc<UpdatedResource>),
}

/// An updated resource, with its upstream URI.
#[derive(Debug)]
struct UpdatedResource {
    server: ServerName,
    uri: Arc<str>,
    params: Raw,
}

/// Receives log messages without a request, completed URL elicitations, and custom notifications.
pub(crate) type LogSink = Arc<dyn Fn(&ServerName, &ServerNotification) + Send + Sync>;

/// Distributes changes to all listeners. Clones share their state.
#[derive(Clone)]
pub(crate) struct ChangeHub {
    sender: broadcast::Sender<Change>,
    scopes: Arc<Mutex<HashMap<Arc<CallerScope>, ScopeDigest>>>,
    /// Lists that are being requested after a `list_changed` notification.
    incoming: Arc<Mutex<HashSet<(ServerName, ItemKind)>>>,
    log: LogSink,
}

/// A scope with listeners, and digests of its lists.
struct ScopeDigest {
    listeners: usize,
    digests: [u64; ItemKind::ALL.len()],
}

/// A task that is aborted when this is dropped.
pub(crate) struct TaskGuard(AbortHandle);

impl TaskGuard {
    /// Creates the guard of a task.
    pub(crate) fn of(task: &JoinHandle<()>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A listener that already collects changes, and does not forward them yet.
pub(crate) struct PendingListener {
    scope: ScopeGuard,
    receiver: broadcast::Receiver<Change>,
}

impl PendingListener {
    /// Forwards changes as notifications while the returned guard is held.
    pub(crate) fn tell(
        self,
        wanted: ListKinds,
        subscriptions: Arc<ResourceSubscriptions>,
        tell: impl Fn(Notification) + Send + 'static,
    ) -> TaskGuard {
        let Self { scope, mut receiver } = self;
        let task = tokio::spawn(async move {
            loop {
                let lists = match receiver.recv().await {
                    Ok(Change::Resource(resource)) => {
                        let UpdatedResource { server, uri, params } = &*resource;
                        let address =
                            subscriptions.downstream_uri((server, NotificationSource::Shared), uri);
                        if let Some(address) = address
                            && scope.may_hear_of(server, uri)
                        {
                            tell(updated(&params.with("uri", &Raw::from_string(&address))));
                        }
                        continue;
                    }
                    Ok(Change::Connected(connection, share)) => {
                        if let Some(connection) = connection.upgrade() {
                            let now = (&connection, NotificationSource::Shared);
                            resubscribe(
                                &subscriptions,
                                now,
                                NotificationSource::before_shared(share),
                            );
                        }
                        continue;
                    }
                    Ok(Change::Lists { scope: changed, lists }) if changed == scope.scope => lists,
                    Ok(Change::Lists { .. }) => continue,
                    // Changes were missed, so any list or resource may have changed.
                    Err(RecvError::Lagged(_)) => {
                        for (server, uri, address) in subscriptions.all() {
                            if scope.may_hear_of(&server, &uri) {
                                tell(updated(
                                    &Raw::empty_object().with("uri", &Raw::from_string(&address)),
                                ));
                            }
                        }
                        ListKinds::ALL
                    }
                    Err(RecvError::Closed) => return,
                };
                lists.and(wanted).notifications().for_each(&tell);
            }
        });
        TaskGuard::of(&task)
    }
}

impl ChangeHub {
    /// Starts the task that listens to the servers of a host. It ends with the host or with the
    /// returned guard.
    pub(crate) fn of(host: &Host, log: LogSink) -> (Self, TaskGuard) {
        let sender = broadcast::Sender::new(MAX_BEHIND);
        let changes = Self { sender, scopes: Arc::default(), incoming: Arc::default(), log };
        let (host, following) = (host.downgrade(), changes.clone());
        let task = tokio::spawn(async move {
            // A panic loses one change, not all later ones.
            while panics::outcome_of(run(host.clone(), following.clone())).await.is_none() {
                sleep(PAUSE_AFTER_PANIC).await;
            }
        });
        (changes, TaskGuard::of(&task))
    }

    /// Starts to collect changes for a listener, which are forwarded later.
    pub(crate) fn begin(&self, host: &Host, scope: &CallerScope) -> PendingListener {
        PendingListener { scope: self.watch(host, scope), receiver: self.sender.subscribe() }
    }

    /// Tracks the lists of a scope while it has a listener.
    fn watch(&self, host: &Host, scope: &CallerScope) -> ScopeGuard {
        let mut scopes = lock(&self.scopes);
        let known = scopes.get_key_value(scope).map(|(scope, _)| Arc::clone(scope));
        let scope = known.unwrap_or_else(|| Arc::new(scope.clone()));
        let entry = scopes.entry(Arc::clone(&scope));
        let watched =
            entry.or_insert_with(|| ScopeDigest { listeners: 0, digests: digests(host, &scope) });
        watched.listeners += 1;
        ScopeGuard { scope, host: host.downgrade(), changes: self.clone() }
    }

    /// Compares the lists of every scope with a listener, and sends the differences.
    fn compare(&self, host: &Host) {
        let mut scopes = lock(&self.scopes);
        for (scope, watched) in scopes.iter_mut() {
            let now = digests(host, scope);
            let mut lists = ListKinds::default();
            for kind in ItemKind::ALL {
                if now[kind as usize] != watched.digests[kind as usize] {
                    lists = lists.or(ListKinds::from_kind(kind));
                }
            }
            watched.digests = now;
            if lists != ListKinds::default() {
                let _ = self.sender.send(Change::Lists { scope: Arc::clone(scope), lists });
            }
        }
    }

    /// Handles a `list_changed` notification. The affected scopes are found by comparison after the
    /// list is refreshed. Lists that were requested before are refreshed by their connection;
    /// others are requested now, if there is a listener.
    fn on_list_change(&self, host: &Host, server: &ServerName, kind: ItemKind) {
        let connection = host.servers().get(server.as_str());
        let Some(connection) = connection.filter(|it| !it.is_loaded(kind)) else { return };
        let key = (server.clone(), kind);
        if lock(&self.scopes).is_empty() || !lock(&self.incoming).insert(key.clone()) {
            return;
        }
        let incoming = Arc::clone(&self.incoming);
        tokio::spawn(async move {
            // The catalog is updated with the list.
            let _ = connection.list_fresh(kind).await;
            lock(&incoming).remove(&key);
        });
    }
}

/// Tracks a scope until it is dropped.
struct ScopeGuard {
    scope: Arc<CallerScope>,
    host: WeakHost,
    changes: ChangeHub,
}

impl ScopeGuard {
    fn may_hear_of(&self, server: &ServerName, uri: &str) -> bool {
        let host = self.host.upgrade();
        host.is_some_and(|host| self.scope.may_hear_of(&host, server, uri))
    }
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        let mut scopes = lock(&self.changes.scopes);
        let Some(watched) = scopes.get_mut(&self.scope) else { return };
        watched.listeners -= 1;
        if watched.listeners == 0 {
            scopes.remove(&self.scope);
        }
    }
}

/// A digest of each list of a scope.
fn digests(host: &Host, scope: &CallerScope) -> [u64; ItemKind::ALL.len()] {
    let Ok(view) = scope.view(host) else { return Default::default() };
    let (surface, connections) = (view.surface(), host.servers().connections());
    ItemKind::ALL.map(|kind| {
        let mut hasher = DefaultHasher::new();
        if kind == ItemKind::Tool {
            surface.has_meta_tools().hash(&mut hasher);
            surface.item_tools().for_each(|tool| tool.hash(&mut hasher));
        }
        // A model finds the other tools itself: they are in no list.
        let is_listed = |entry: &&Entry| kind != ItemKind::Tool || surface.is_direct(entry);
        for entry in view.entries(kind).filter(is_listed) {
            entry.exposed().hash(&mut hasher);
            entry.definition().bytes().hash(&mut hasher);
        }
        // A new server that is started by the next list has items that no client knows of.
        for connection in connections.iter().filter(|it| !it.is_recorded(kind)) {
            let name = &connection.server().name;
            view.could_contain(name).then(|| name.hash(&mut hasher));
        }
        hasher.finish()
    })
}

fn updated(params: &Raw) -> Notification {
    let method = "notifications/resources/updated".into();
    Notification { method, params: Some(params.clone()) }
}

/// Handles changes of the catalog and notifications of servers, until the host is gone.
async fn run(host: WeakHost, changes: ChangeHub) {
    let (heard, mut hearing) = mpsc::channel(MAX_BEHIND);
    let mut ears = HashMap::new();
    let watched = host.upgrade().map(|it| (it.watch_catalog(), it.conversations().watch()));
    let Some((mut catalog, mut toggles)) = watched else { return };
    loop {
        {
            let Some(host) = host.upgrade() else { return };
            for (connection, share) in sync_listeners(&mut ears, &host, &heard) {
                let _ = changes.sender.send(Change::Connected(connection, share));
            }
        }
        tokio::select! {
            changed = catalog.changed() => {
                if changed.is_err() {
                    return;
                }
                sleep(PAUSE).await;
                catalog.borrow_and_update();
                let Some(host) = host.upgrade() else { return };
                changes.compare(&host);
            }
            changed = toggles.changed() => {
                let Some(host) = host.upgrade() else { return };
                if changed.is_err() {
                    return;
                }
                changes.compare(&host);
            }
            Some((server, received)) = hearing.recv() => {
                let Some(host) = host.upgrade() else { return };
                take(&changes, &host, server, &received);
            }
        }
    }
}

fn take(changes: &ChangeHub, host: &Host, server: ServerName, received: &ServerNotification) {
    let notification = &received.notification;
    for kind in ItemKind::list_changed_method(&notification.method) {
        changes.on_list_change(host, &server, *kind);
    }
    match &*notification.method {
        "notifications/resources/updated" => {}
        method
            if matches!(method, "notifications/message" | ELICITATION_COMPLETE)
                || !is_mcp_method(method) =>
        {
            return (changes.log)(&server, received);
        }
        _ => return,
    }
    let Some(params) = &notification.params else { return };
    let Some(uri) = params.get("uri") else { return };
    let Some(uri) = uri.as_str().map(Arc::from) else { return };
    // The `_meta` of a modern server names the subscription of this gateway, not of the client.
    let params = params.without("_meta");
    let _ =
        changes.sender.send(Change::Resource(Arc::new(UpdatedResource { server, uri, params })));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
