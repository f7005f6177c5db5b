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

use super::channel::{LastWords, Questions};
use super::state_codec::unguessable;
use super::tool_revisions::ShownEditions;
use super::url_elicitations::{self, End, Visits};
use crate::access::scope::Identity;
use crate::changes::{Addresses, Listening};
use crate::request::incoming::Client;

/// Where messages go that belong to none of a client's requests.
pub(crate) trait Standing: Send + Sync {
    /// Sends a message, or keeps it for whoever reads later. Nobody waits for that.
    fn tell(&self, message: Bytes);

    /// Whether somebody reads it now.
    fn is_read(&self) -> bool;
}

/// A legacy client between its requests. The servers that it has for itself end with it.
pub(crate) struct Session {
    host: Arc<Host>,
    /// Which it is, for those who keep something for it.
    pub(crate) id: ClientId,
    pub(crate) client: Arc<Client>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) standing: Arc<dyn Standing>,
    /// The resources it wants to hear of.
    pub(crate) addresses: Arc<Addresses>,
    /// The visits that servers want of it.
    pub(crate) visits: Visits,
    level: Mutex<LogLevel>,
    /// The tools it was last shown.
    shown: Mutex<Option<ShownEditions>>,
    listening: Mutex<Option<Listening>>,
    requests: Mutex<Requests>,
}

/// An id for a session that nobody can guess.
pub(crate) fn new_id() -> ClientId {
    ClientId::from(unguessable().as_str())
}

/// The requests of a session.
#[derive(Default)]
struct Requests {
    running: HashMap<Id, Cancelling>,
    /// When the last one ended.
    ended: Option<Instant>,
}

impl Session {
    pub(crate) fn new(
        id: ClientId,
        host: Arc<Host>,
        client: Client,
        identity: Arc<Identity>,
        standing: Arc<dyn Standing>,
    ) -> Self {
        let principal = identity.principal.of_client(&id);
        let requester = Requester { client: id.clone(), principal };
        Self {
            host,
            id,
            client: Arc::new(client),
            identity,
            questions: Arc::default(),
            standing,
            addresses: Arc::new(Addresses::of(requester)),
            visits: Visits::default(),
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
    pub(crate) fn shown(&self) -> Option<ShownEditions> {
        *lock(&self.shown)
    }

    pub(crate) fn set_shown(&self, shown: ShownEditions) {
        *lock(&self.shown) = Some(shown);
    }

    /// Hears of changes from now on, if it does not yet.
    pub(crate) fn listen(&self, listening: impl FnOnce() -> Listening) {
        lock(&self.listening).get_or_insert_with(listening);
    }

    /// Passes on what a server says of its own accord, if the client can still see something of that
    /// server: the rules may be others than when it was last called. That a visit is over is said once,
    /// in the call that asked for it if that goes on.
    pub(crate) fn tell(&self, server: &ServerName, notification: &Notification) {
        let view = self.identity.scope.view(&self.host);
        if !view.is_ok_and(|view| view.may_hold(server)) {
            return;
        }
        let visit = url_elicitations::over(notification);
        let talk = match visit.map_or(End::Foreign, |id| self.visits.end(server, &id)) {
            End::Foreign => None,
            End::Repeated => return,
            End::New(talk) => talk,
        };
        let message = Message::Notification(notification.clone()).write();
        if !talk.is_some_and(|talk| talk.send(message.clone())) {
            self.standing.tell(message);
        }
    }

    /// Begins a request, unless one of the same id is not over yet.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Option<Running> {
        let (id, mut requests) = (id.plain(), lock(&self.requests));
        if requests.running.contains_key(&id) {
            return None;
        }
        let cancelling = Cancelling::default();
        requests.running.insert(id.clone(), cancelling.clone());
        Some(Running { session: Arc::clone(self), id, cancelling })
    }

    /// Ends a request that the client does not wait for any more, with what it says to that.
    pub(crate) fn cancel(&self, id: &Id, params: Option<&Raw>) {
        if let Some(cancelling) = lock(&self.requests).running.get(id) {
            cancelling.last_words.say(params);
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
        let (host, id) = (Arc::clone(&self.host), self.id.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { host.release(id.as_str()).await });
        }
    }
}

/// How a client ends a request that is being worked on.
#[derive(Clone, Default)]
struct Cancelling {
    cancelled: Arc<Notify>,
    last_words: LastWords,
}

/// A request that is being worked on. Dropping it ends it.
pub(crate) struct Running {
    session: Arc<Session>,
    id: Id,
    cancelling: Cancelling,
}

impl Running {
    /// What the client says when it does not wait any more.
    pub(crate) fn last_words(&self) -> LastWords {
        self.cancelling.last_words.clone()
    }

    /// Waits until the client says that it does not wait any more.
    pub(crate) async fn cancelled(&self) {
        self.cancelling.cancelled.notified().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut requests = lock(&self.session.requests);
        requests.running.remove(&self.id);
        requests.ended = Some(Instant::now());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
