//! Who calls a server just now, or did a moment ago: for what it says without saying about what.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
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
    strangers: AtomicU64,
}

/// Who calls a server.
#[derive(Clone)]
enum Who {
    /// A session. Nobody has to remember one that has ended.
    Session(Weak<Session>),
    /// Somebody without one, by the number of the call: nothing says whether two are of the same.
    Stranger(u64),
}

impl Who {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Session(one), Self::Session(other)) => one.ptr_eq(other),
            (Self::Stranger(one), Self::Stranger(other)) => one == other,
            _ => false,
        }
    }
}

/// The calls of one client to one server.
struct Calling {
    who: Who,
    running: usize,
    ended: Instant,
}

impl Calling {
    fn counts(&self) -> bool {
        self.running > 0 || self.ended.elapsed() < TAIL
    }
}

/// A call that is being made.
pub(crate) struct Noted {
    recent: Arc<Recent>,
    server: ServerName,
    who: Who,
}

impl Recent {
    /// Notes that somebody calls a server, for as long as what is returned is held.
    pub(crate) fn note(
        self: &Arc<Self>,
        server: &ServerName,
        session: Option<&Arc<Session>>,
    ) -> Noted {
        let who = match session {
            Some(session) => Who::Session(Arc::downgrade(session)),
            None => Who::Stranger(self.strangers.fetch_add(1, Ordering::Relaxed)),
        };
        let mut callers = self.lock();
        let calling = callers.entry(server.clone()).or_default();
        calling.retain(Calling::counts);
        match calling.iter_mut().find(|it| it.who.is(&who)) {
            Some(known) => known.running += 1,
            None => {
                calling.push(Calling { who: who.clone(), running: 1, ended: Instant::now() });
            }
        }
        Noted { recent: Arc::clone(self), server: server.clone(), who }
    }

    /// Passes on what a server says that belongs to no request, if it can only be about the calls of
    /// one session. Nobody learns what others do.
    pub(crate) fn pass_on(&self, server: &ServerName, notification: &Notification) {
        let session = {
            let mut callers = self.lock();
            let Some(calling) = callers.get_mut(server) else { return };
            calling.retain(Calling::counts);
            match &**calling {
                [Calling { who: Who::Session(session), .. }] => session.upgrade(),
                _ => None,
            }
        };
        let Some(session) = session else { return };
        let is_line = &*notification.method == "notifications/message";
        if !is_line || level::is_wanted(notification, Some(session.level())) {
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
        for known in calling.filter(|it| it.who.is(&self.who)) {
            known.running -= 1;
            known.ended = Instant::now();
        }
    }
}
