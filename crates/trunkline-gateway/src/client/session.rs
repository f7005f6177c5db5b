//! The session of a legacy client: its profile, log level and subscriptions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;
use trunkline::connection::LogLevel;
use trunkline::host::Host;
use trunkline::message::{Message, Notification, Raw};
use trunkline::name::ServerName;
use trunkline::principal::{ClientId, Requester};

use super::channel::ServerRequests;
use super::state_codec::random_id;
use super::tool_revisions::ShownRevisions;
use super::url_elicitations::{self, ElicitationEnd, UrlElicitations};
use crate::access::scope::CallerIdentity;
use crate::changes::{ResourceSubscriptions, TaskGuard};
use crate::request::incoming::ClientProfile;

/// Stream for messages that belong to none of a client's requests.
pub(crate) trait SessionStream: Send + Sync {
    /// Sends a message, or queues it until the client reads. Does not wait.
    fn notify(&self, message: Bytes);

    /// Whether the client is reading the stream.
    fn is_read(&self) -> bool;
}

/// The session of a legacy client. Its dedicated servers end with it.
pub(crate) struct Session {
    host: Host,
    /// Identifies the session.
    pub(crate) id: ClientId,
    pub(crate) client: Arc<ClientProfile>,
    pub(crate) identity: Arc<CallerIdentity>,
    pub(crate) server_requests: Arc<ServerRequests>,
    pub(crate) stream: Arc<dyn SessionStream>,
    /// Its resource subscriptions.
    pub(crate) subscriptions: Arc<ResourceSubscriptions>,
    /// Its pending URL elicitations.
    pub(crate) elicitations: UrlElicitations,
    level: Mutex<LogLevel>,
    /// Its `_meta` for modern servers with its log level, once a call needed it.
    meta: Mutex<Option<Raw>>,
    /// The revisions of the last tool list it received.
    shown: Mutex<Option<ShownRevisions>>,
    listening: Mutex<Option<TaskGuard>>,
}

/// A random session ID that cannot be guessed.
pub(crate) fn new_id() -> ClientId {
    ClientId::from(random_id().as_str())
}

/// The requester of a client with its own ID for its lifetime.
pub(crate) fn requester_of(id: &ClientId, identity: &CallerIdentity) -> Requester {
    let principal = identity.principal.of_client(id);
    Requester { client: id.clone(), principal, ..Requester::default() }
}

impl Session {
    pub(crate) fn new(
        id: ClientId,
        host: Host,
        client: ClientProfile,
        identity: Arc<CallerIdentity>,
        stream: Arc<dyn SessionStream>,
    ) -> Self {
        let requester = requester_of(&id, &identity);
        Self {
            host,
            id,
            client: Arc::new(client),
            identity,
            server_requests: Arc::default(),
            stream,
            subscriptions: Arc::new(ResourceSubscriptions::of(requester)),
            elicitations: UrlElicitations::default(),
            level: Mutex::new(LogLevel::Info),
            meta: Mutex::default(),
            shown: Mutex::default(),
            listening: Mutex::default(),
        }
    }

    /// The client and principal of its requests.
    pub(crate) fn requester(&self) -> Requester {
        requester_of(&self.id, &self.identity)
    }

    pub(crate) fn level(&self) -> LogLevel {
        *lock(&self.level)
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *lock(&self.level) = level;
        *lock(&self.meta) = None;
    }

    /// Its `_meta` for modern servers.
    pub(crate) fn client_meta(&self) -> Raw {
        let mut meta = lock(&self.meta);
        meta.get_or_insert_with(|| self.client.meta(Some(self.level()))).clone()
    }

    /// The revisions of the last tool list it received, if any.
    pub(crate) fn shown(&self) -> Option<ShownRevisions> {
        *lock(&self.shown)
    }

    pub(crate) fn set_shown_revisions(&self, shown: Option<ShownRevisions>) {
        *lock(&self.shown) = shown;
    }

    /// Starts to listen for changes, unless it already does.
    pub(crate) fn listen(&self, listening: impl FnOnce() -> TaskGuard) {
        lock(&self.listening).get_or_insert_with(listening);
    }

    /// Whether the client may receive updates of a resource, by its upstream URI and the current
    /// rules.
    pub(crate) fn may_hear_of(&self, server: &ServerName, uri: &str) -> bool {
        self.identity.scope.may_hear_of(&self.host, server, uri)
    }

    /// Forwards a notification without a request, if the client can still see an item of the server
    /// by the current rules. A completed URL elicitation is notified once: on the channel of its
    /// call while that is open.
    pub(crate) fn tell(&self, server: &ServerName, notification: &Notification) {
        let view = self.identity.scope.view(&self.host);
        if !view.is_ok_and(|view| view.may_hear_from(server)) {
            return;
        }
        let completed = url_elicitations::completed_id(notification);
        let channel = match completed
            .map_or(ElicitationEnd::Foreign, |id| self.elicitations.end(server, &id))
        {
            ElicitationEnd::Foreign => None,
            ElicitationEnd::Repeated => return,
            ElicitationEnd::New(channel) => channel,
        };
        let message = Message::Notification(notification.clone()).write();
        if !channel.is_some_and(|channel| channel.send(message.clone())) {
            self.stream.notify(message);
        }
    }
}

impl Drop for Session {
    /// Every call holds its session, so that none of them can start a server after this.
    fn drop(&mut self) {
        let (host, id) = (self.host.clone(), self.id.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { host.close_client(id.as_str()).await });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
