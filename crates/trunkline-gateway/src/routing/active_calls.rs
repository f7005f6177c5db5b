//! Tracks the sessions that have called each server, to route notifications that carry no request
//! ID.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use foldhash::HashMap;
use trunkline::connection::ServerNotification;
use trunkline::message::Notification;
use trunkline::name::ServerName;
use trunkline::principal::ClientId;

use crate::client::session::Session;
use crate::client::{log_filter, url_elicitations};

/// Number of sessions of one server at which ended ones are pruned first.
const FIRST_PRUNE: usize = 32;

/// The sessions that have called each server.
#[derive(Default)]
pub(crate) struct ActiveCalls {
    callers: Mutex<HashMap<ServerName, ServerCallers>>,
}

/// The sessions that have called one server.
struct ServerCallers {
    sessions: HashMap<ClientId, Weak<Session>>,
    /// Number of sessions at which to prune next.
    prune_at: usize,
}

impl Default for ServerCallers {
    fn default() -> Self {
        Self { sessions: HashMap::default(), prune_at: FIRST_PRUNE }
    }
}

impl ServerCallers {
    fn record(&mut self, session: &Arc<Session>) {
        if self.sessions.contains_key(&session.id) {
            return;
        }
        if self.sessions.len() >= self.prune_at {
            self.sessions.retain(|_, known| known.strong_count() > 0);
            self.prune_at = (self.sessions.len() * 2).max(FIRST_PRUNE);
        }
        self.sessions.insert(session.id.clone(), Arc::downgrade(session));
    }

    /// The sessions that received a URL elicitation of the server with this ID.
    fn awaiting_elicitation(&self, server: &ServerName, id: &str) -> Vec<Arc<Session>> {
        let sessions = self.sessions.values().filter_map(Weak::upgrade);
        sessions.filter(|session| session.elicitations.contains(server, id)).collect()
    }
}

impl ActiveCalls {
    /// Records that a session calls a server.
    pub(crate) fn note(&self, server: &ServerName, session: Option<&Arc<Session>>) {
        // A client without a session is reachable only through its requests.
        let Some(session) = session else { return };
        let mut callers = self.lock();
        match callers.get_mut(server) {
            Some(known) => known.record(session),
            None => callers.entry(server.clone()).or_default().record(session),
        }
    }

    /// Delivers a notification that belongs to no request. The completion of a URL elicitation goes
    /// to the sessions that received the elicitation; any other to the only client whose calls it
    /// can be about.
    pub(crate) fn deliver(&self, server: &ServerName, received: &ServerNotification) {
        let notification = &received.notification;
        let is_line = &*notification.method == "notifications/message";
        let is_wanted = |session: &Arc<Session>| {
            !is_line || log_filter::is_wanted(notification, Some(session.level()))
        };
        let concerned = self.recipients(server, notification, received.client.as_ref());
        concerned.iter().filter(|it| is_wanted(it)).for_each(|it| it.tell(server, notification));
    }

    /// The sessions that receive a notification.
    fn recipients(
        &self,
        server: &ServerName,
        notification: &Notification,
        client: Option<&ClientId>,
    ) -> Vec<Arc<Session>> {
        let callers = self.lock();
        let Some(callers) = callers.get(server) else { return Vec::new() };
        let completed = url_elicitations::completed_id(notification);
        let awaiting =
            completed.map(|id| callers.awaiting_elicitation(server, &id)).unwrap_or_default();
        if !awaiting.is_empty() {
            return awaiting;
        }
        let session = client.and_then(|client| callers.sessions.get(client));
        session.and_then(Weak::upgrade).into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName, ServerCallers>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
