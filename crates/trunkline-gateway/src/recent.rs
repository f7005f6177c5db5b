//! Who calls a server just now, or did a moment ago: for what it says without saying about what.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use trunkline::message::{Message, Notification};
use trunkline::name::ServerName;

use crate::level;
use crate::session::Session;

/// How long a call is remembered after its answer: what a server said before it may come after it,
/// on another stream.
const TAIL: Duration = Duration::from_millis(100);

/// The callers of servers.
#[derive(Default)]
pub(crate) struct Recent {
    callers: Mutex<HashMap<ServerName, Vec<Calling>>>,
}

/// The calls of one session to one server.
struct Calling {
    /// Nobody has to remember a session that has ended.
    session: Weak<Session>,
    running: usize,
    ended: Instant,
}

impl Calling {
    fn is_of(&self, session: &Weak<Session>) -> bool {
        self.session.ptr_eq(session)
    }

    fn counts(&self) -> bool {
        self.running > 0 || self.ended.elapsed() < TAIL
    }
}

/// A call that is being made.
pub(crate) struct Noted {
    recent: Arc<Recent>,
    server: ServerName,
    session: Weak<Session>,
}

impl Recent {
    /// Notes that a session calls a server, for as long as what is returned is held.
    pub(crate) fn note(self: &Arc<Self>, server: &ServerName, session: &Arc<Session>) -> Noted {
        let session = Arc::downgrade(session);
        let mut callers = self.lock();
        let calling = callers.entry(server.clone()).or_default();
        calling.retain(Calling::counts);
        match calling.iter_mut().find(|it| it.is_of(&session)) {
            Some(known) => known.running += 1,
            None => {
                let session = Weak::clone(&session);
                calling.push(Calling { session, running: 1, ended: Instant::now() });
            }
        }
        Noted { recent: Arc::clone(self), server: server.clone(), session }
    }

    /// Passes on a line of a server's log that belongs to no request, if it can only be about the
    /// calls of one session. Nobody learns what others do.
    pub(crate) fn pass_on(&self, server: &ServerName, notification: &Notification) {
        let session = {
            let mut callers = self.lock();
            let Some(calling) = callers.get_mut(server) else { return };
            calling.retain(Calling::counts);
            let [only] = &**calling else { return };
            only.session.upgrade()
        };
        let Some(session) = session else { return };
        if level::is_wanted(notification, Some(session.level())) {
            session.standing.tell(Message::Notification(notification.clone()).write());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName, Vec<Calling>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut callers = self.recent.lock();
        let calling = callers.get_mut(&self.server).into_iter().flatten();
        for known in calling.filter(|it| it.is_of(&self.session)) {
            known.running -= 1;
            known.ended = Instant::now();
        }
    }
}
