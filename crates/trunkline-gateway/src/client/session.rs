//! A legacy client between its requests: what it said when it opened, and what it wants to hear.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use trunkline::connection::LogLevel;
use trunkline::host::Host;
use trunkline::message::{Id, Message, Notification, Raw};
use trunkline::name::ServerName;
use trunkline::principal::{ClientId, Requester};

use super::channel::{CancelParams, ServerRequests};
use super::state_codec::random_id;
use super::tool_revisions::ShownRevisions;
use super::url_elicitations::{self, ElicitationEnd, UrlElicitations};
use crate::access::scope::CallerIdentity;
use crate::changes::{ResourceSubscriptions, TaskGuard};
use crate::request::incoming::ClientProfile;

/// Where messages go that belong to none of a client's requests.
pub(crate) trait SessionStream: Send + Sync {
    /// Sends a message, or keeps it for whoever reads later. Nobody waits for that.
    fn notify(&self, message: Bytes);

    /// Whether somebody reads it now.
    fn is_read(&self) -> bool;
}

/// A legacy client between its requests. The servers that it has for itself end with it.
pub(crate) struct Session {
    host: Host,
    /// Which it is, for those who keep something for it.
    pub(crate) id: ClientId,
    pub(crate) client: Arc<ClientProfile>,
    pub(crate) identity: Arc<CallerIdentity>,
    pub(crate) questions: Arc<ServerRequests>,
    pub(crate) stream: Arc<dyn SessionStream>,
    /// The resources it wants to hear of.
    pub(crate) subscriptions: Arc<ResourceSubscriptions>,
    /// The visits that servers want of it.
    pub(crate) elicitations: UrlElicitations,
    level: Mutex<LogLevel>,
    /// The tools it was last shown.
    shown: Mutex<Option<ShownRevisions>>,
    listening: Mutex<Option<TaskGuard>>,
    requests: Mutex<RequestTable>,
}

/// An id for a session that nobody can guess.
pub(crate) fn new_id() -> ClientId {
    ClientId::from(random_id().as_str())
}

/// The requests of a session.
#[derive(Default)]
struct RequestTable {
    running: HashMap<Id, CancelHandle>,
    /// When the last one ended.
    ended: Option<Instant>,
}

impl Session {
    pub(crate) fn new(
        id: ClientId,
        host: Host,
        client: ClientProfile,
        identity: Arc<CallerIdentity>,
        stream: Arc<dyn SessionStream>,
    ) -> Self {
        let principal = identity.principal.of_client(&id);
        let requester = Requester { client: id.clone(), principal };
        Self {
            host,
            id,
            client: Arc::new(client),
            identity,
            questions: Arc::default(),
            stream,
            subscriptions: Arc::new(ResourceSubscriptions::of(requester)),
            elicitations: UrlElicitations::default(),
            level: Mutex::new(LogLevel::Info),
            shown: Mutex::default(),
            listening: Mutex::default(),
            requests: Mutex::default(),
        }
    }

    pub(crate) fn level(&self) -> LogLevel {
        *lock(&self.level)
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *lock(&self.level) = level;
    }

    /// The tools it was last shown, if it has asked for a list.
    pub(crate) fn shown(&self) -> Option<ShownRevisions> {
        *lock(&self.shown)
    }

    pub(crate) fn set_shown_revisions(&self, shown: ShownRevisions) {
        *lock(&self.shown) = Some(shown);
    }

    /// Hears of changes from now on, if it does not yet.
    pub(crate) fn listen(&self, listening: impl FnOnce() -> TaskGuard) {
        lock(&self.listening).get_or_insert_with(listening);
    }

    /// Whether the client may hear of changes of a resource, in the words of its server, by the rules of now.
    pub(crate) fn may_hear_of(&self, server: &ServerName, uri: &str) -> bool {
        self.identity.scope.may_hear_of(&self.host, server, uri)
    }

    /// Passes on what a server says of its own accord, if the client can still see something of that
    /// server: the rules may be others than when it was last called. That a visit is over is said once,
    /// in the call that asked for it if that goes on.
    pub(crate) fn tell(&self, server: &ServerName, notification: &Notification) {
        let view = self.identity.scope.view(&self.host);
        if !view.is_ok_and(|view| view.may_hear_from(server)) {
            return;
        }
        let visit = url_elicitations::completed_id(notification);
        let channel =
            match visit.map_or(ElicitationEnd::Foreign, |id| self.elicitations.end(server, &id)) {
                ElicitationEnd::Foreign => None,
                ElicitationEnd::Repeated => return,
                ElicitationEnd::New(channel) => channel,
            };
        let message = Message::Notification(notification.clone()).write();
        if !channel.is_some_and(|channel| channel.send(message.clone())) {
            self.stream.notify(message);
        }
    }

    /// Begins a request, unless one of the same id is not over yet.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Option<InFlightRequest> {
        let (id, mut requests) = (id.normalized(), lock(&self.requests));
        if requests.running.contains_key(&id) {
            return None;
        }
        let cancelling = CancelHandle::default();
        requests.running.insert(id.clone(), cancelling.clone());
        Some(InFlightRequest { session: Arc::clone(self), id, cancelling })
    }

    /// Ends a request that the client does not wait for any more, with what it says to that.
    pub(crate) fn cancel(&self, id: &Id, params: Option<&Raw>) {
        if let Some(cancelling) = lock(&self.requests).running.get(id) {
            cancelling.last_words.send(params);
            cancelling.cancelled.notify_one();
        }
    }

    /// Ends every request, because nobody can hear an answer any more.
    pub(crate) fn cancel_all(&self) {
        lock(&self.requests).running.values().for_each(|it| it.cancelled.notify_one());
    }

    /// Whether it waits for anything.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.requests).running.is_empty()
    }

    /// When it last stopped to wait for something, if it ever did.
    pub(crate) fn last_end(&self) -> Option<Instant> {
        lock(&self.requests).ended
    }
}

impl Drop for Session {
    /// Every call holds its session, so that none of them can start another server after this.
    fn drop(&mut self) {
        let (host, id) = (self.host.clone(), self.id.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { host.close_client(id.as_str()).await });
        }
    }
}

/// How a client ends a request that is being worked on.
#[derive(Clone, Default)]
struct CancelHandle {
    cancelled: Arc<Notify>,
    last_words: CancelParams,
}

/// A request that is being worked on. Dropping it ends it.
pub(crate) struct InFlightRequest {
    session: Arc<Session>,
    id: Id,
    cancelling: CancelHandle,
}

impl InFlightRequest {
    /// What the client says when it does not wait any more.
    pub(crate) fn cancel_params(&self) -> CancelParams {
        self.cancelling.last_words.clone()
    }

    /// Waits until the client says that it does not wait any more.
    pub(crate) async fn cancelled(&self) {
        self.cancelling.cancelled.notified().await;
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let mut requests = lock(&self.session.requests);
        requests.running.remove(&self.id);
        requests.ended = Some(Instant::now());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
