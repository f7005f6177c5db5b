//! What changes behind the gateway, and who wants to hear of it.
//!
//! One task listens to all servers and to the catalog, and says what that means for each scope that
//! somebody listens in. Each listener takes from it what it asked for.

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

/// Changes that a listener may be behind before it is told that everything may have changed.
const MAX_BEHIND: usize = 1024;

/// Changes that follow each other quickly are one.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause before listening begins anew after a panic, so that one that repeats takes no processor.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);

/// The lists that clients are told about.
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

    /// The notifications that say so.
    fn notifications(self) -> impl Iterator<Item = Notification> {
        let named = [
            (self.tools, "notifications/tools/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
        ];
        let said = |(is_said, method): (bool, &str)| {
            is_said.then(|| Notification { method: method.into(), params: None })
        };
        named.into_iter().filter_map(said)
    }
}

/// Something that changed.
#[derive(Clone, Debug)]
enum Change {
    /// Lists, as one scope shows them.
    Lists { scope: Arc<CallerScope>, lists: ListKinds },
    /// The connection to a server, which is another one if its entry was changed, or who has it now.
    Connected(Weak<Connection>, Share),
    /// A resource, in the words of its server.
    Resource { server: ServerName, uri: Arc<str>, params: Raw },
}

/// Where lines of a server's log go that belong to no request, that a visit is over, and what the
/// protocol does not know.
pub(crate) type LogSink = Arc<dyn Fn(&ServerName, &ServerNotification) + Send + Sync>;

/// All that is heard of changes. Clones are the same.
#[derive(Clone)]
pub(crate) struct ChangeHub {
    told: broadcast::Sender<Change>,
    scopes: Arc<Mutex<HashMap<Arc<CallerScope>, ScopeDigest>>>,
    /// Lists that are being asked for because their servers say that they have changed.
    incoming: Arc<Mutex<HashSet<(ServerName, ItemKind)>>>,
    log: LogSink,
}

/// A scope that somebody listens in, and what its lists were.
struct ScopeDigest {
    listeners: usize,
    digests: [u64; ItemKind::ALL.len()],
}

/// Somebody who listens. Dropping it ends that.
pub(crate) struct TaskGuard(AbortHandle);

impl TaskGuard {
    /// Ends a task when it is dropped.
    pub(crate) fn of(task: &JoinHandle<()>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What has been heard for somebody who has not been told yet.
pub(crate) struct PendingListener {
    scope: ScopeGuard,
    told: broadcast::Receiver<Change>,
}

impl PendingListener {
    /// Tells somebody of changes for as long as what is returned is held.
    pub(crate) fn tell(
        self,
        wanted: ListKinds,
        subscriptions: Arc<ResourceSubscriptions>,
        tell: impl Fn(Notification) + Send + 'static,
    ) -> TaskGuard {
        let Self { scope, mut told } = self;
        let task = tokio::spawn(async move {
            loop {
                let lists = match told.recv().await {
                    Ok(Change::Resource { server, uri, params }) => {
                        let address = subscriptions
                            .downstream_uri((&server, NotificationSource::Shared), &uri);
                        if let Some(address) = address
                            && scope.may_hear_of(&server, &uri)
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
                    // It has missed some: all may have changed.
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
    /// Begins to listen to the servers of a host, for as long as the host lives and what is returned
    /// beside the changes is held.
    pub(crate) fn of(host: &Host, log: LogSink) -> (Self, TaskGuard) {
        let told = broadcast::Sender::new(MAX_BEHIND);
        let changes = Self { told, scopes: Arc::default(), incoming: Arc::default(), log };
        let (host, following) = (host.downgrade(), changes.clone());
        let task = tokio::spawn(async move {
            // A panic costs one change, not all that follow.
            while panics::outcome_of(run(host.clone(), following.clone())).await.is_none() {
                sleep(PAUSE_AFTER_PANIC).await;
            }
        });
        (changes, TaskGuard::of(&task))
    }

    /// Begins to listen for somebody who is told of it a moment later.
    pub(crate) fn begin(&self, host: &Host, scope: &CallerScope) -> PendingListener {
        PendingListener { scope: self.watch(host, scope), told: self.told.subscribe() }
    }

    /// Watches the lists of a scope while somebody listens in it.
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

    /// Looks at every scope in which somebody listens, and says what is different.
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
                let _ = self.told.send(Change::Lists { scope: Arc::clone(scope), lists });
            }
        }
    }

    /// A server says that a list of it has changed. Whose list that makes another is found by
    /// comparing once it is there. Lists that are known are asked for again anyway; one that nobody
    /// has asked for yet is asked for now, if anybody listens.
    fn on_list_change(&self, host: &Host, server: &ServerName, kind: ItemKind) {
        let connection = host.servers().get(server.as_str());
        let Some(connection) = connection.filter(|it| !it.is_loaded(kind)) else { return };
        let key = (server.clone(), kind);
        if lock(&self.scopes).is_empty() || !lock(&self.incoming).insert(key.clone()) {
            return;
        }
        let incoming = Arc::clone(&self.incoming);
        tokio::spawn(async move {
            // The catalog learns of it when it is there.
            let _ = connection.list_fresh(kind).await;
            lock(&incoming).remove(&key);
        });
    }
}

/// A scope that is watched for somebody.
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

/// What the lists of a scope are, in a few bytes.
fn digests(host: &Host, scope: &CallerScope) -> [u64; ItemKind::ALL.len()] {
    let Ok(view) = scope.view(host) else { return Default::default() };
    ItemKind::ALL.map(|kind| {
        let mut hasher = DefaultHasher::new();
        for entry in view.entries(kind) {
            entry.exposed().hash(&mut hasher);
            entry.definition().bytes().hash(&mut hasher);
        }
        hasher.finish()
    })
}

fn updated(params: &Raw) -> Notification {
    let method = "notifications/resources/updated".into();
    Notification { method, params: Some(params.clone()) }
}

/// Listens to everything, until the host is gone.
async fn run(host: WeakHost, changes: ChangeHub) {
    let (heard, mut hearing) = mpsc::channel(MAX_BEHIND);
    let mut ears = HashMap::new();
    let Some(mut catalog) = host.upgrade().map(|host| host.watch_catalog()) else { return };
    loop {
        {
            let Some(host) = host.upgrade() else { return };
            for (connection, share) in sync_listeners(&mut ears, &host, &heard) {
                let _ = changes.told.send(Change::Connected(connection, share));
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
            Some((server, said)) = hearing.recv() => {
                let Some(host) = host.upgrade() else { return };
                take(&changes, &host, server, &said);
            }
        }
    }
}

fn take(changes: &ChangeHub, host: &Host, server: ServerName, said: &ServerNotification) {
    let notification = &said.notification;
    for kind in ItemKind::list_changed_method(&notification.method) {
        changes.on_list_change(host, &server, *kind);
    }
    match &*notification.method {
        "notifications/resources/updated" => {}
        method
            if matches!(method, "notifications/message" | ELICITATION_COMPLETE)
                || !is_mcp_method(method) =>
        {
            return (changes.log)(&server, said);
        }
        _ => return,
    }
    let Some(params) = &notification.params else { return };
    let Some(uri) = params.get("uri") else { return };
    let Some(uri) = uri.as_str().map(Arc::from) else { return };
    // What a server of the modern generation says here is about a request of ours.
    let _ = changes.told.send(Change::Resource { server, uri, params: params.without("_meta") });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
