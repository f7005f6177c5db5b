//! Who calls a server just now, or did a moment ago: for what it says without saying about what.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use trunkline::message::Notification;
use trunkline::name::ServerName;
use trunkline::principal::ClientId;

use crate::level;
use crate::session::Session;
use crate::visits;

/// How long a call is remembered after its answer: what a server said before it may come after it,
/// on another stream.
const TAIL: Duration = Duration::from_millis(100);

/// How many sessions may be remembered before those are looked for that need not be.
const MANY: usize = 32;

/// The callers of servers.
#[derive(Default)]
pub(crate) struct Recent {
    callers: Mutex<HashMap<ServerName, Callers>>,
}

/// The callers of one server.
#[derive(Default)]
struct Callers {
    /// By their ids.
    sessions: HashMap<ClientId, OfSession>,
    /// Those without a session: nothing says whether two of their calls are of the same.
    strangers: Calls,
}

/// The calls of one session. Nobody has to remember one that has ended.
struct OfSession {
    session: Weak<Session>,
    calls: Calls,
}

/// How many calls are being made, and when the last one was over.
#[derive(Default)]
struct Calls {
    running: usize,
    ended: Option<Instant>,
}

impl Calls {
    fn begin(&mut self) {
        self.running += 1;
    }

    fn end(&mut self) {
        self.running -= 1;
        self.ended = Some(Instant::now());
    }

    fn count(&self, now: Instant) -> bool {
        self.running > 0 || self.ended.is_some_and(|ended| now.duration_since(ended) < TAIL)
    }
}

impl OfSession {
    /// Whether it is waited for that the session makes a visit.
    fn visits(&self) -> bool {
        self.session.upgrade().is_some_and(|session| !session.visits.is_empty())
    }
}

impl Callers {
    /// The calls of a session, or of those without one.
    fn of(&mut self, session: Option<&Arc<Session>>) -> &mut Calls {
        let Some(session) = session else { return &mut self.strangers };
        if self.sessions.len() >= MANY && !self.sessions.contains_key(&session.id) {
            self.forget();
        }
        let known = self.sessions.entry(session.id.clone());
        let new = || OfSession { session: Arc::downgrade(session), calls: Calls::default() };
        &mut known.or_insert_with(new).calls
    }

    /// Forgets sessions whose calls are over, unless visits are wanted of them.
    fn forget(&mut self) {
        let now = Instant::now();
        self.sessions.retain(|_, known| known.calls.count(now) || known.visits());
    }

    /// The sessions of which a server wanted a visit.
    fn visiting(&self, server: &ServerName, id: &str) -> Vec<Arc<Session>> {
        let sessions = self.sessions.values().filter_map(|known| known.session.upgrade());
        sessions.filter(|session| session.visits.contain(server, id)).collect()
    }

    /// The session that makes all calls.
    fn only(&mut self) -> Option<Arc<Session>> {
        self.forget();
        let now = Instant::now();
        let mut sessions = self.sessions.values().filter(|known| known.calls.count(now));
        match (sessions.next(), sessions.next()) {
            (Some(only), None) if !self.strangers.count(now) => only.session.upgrade(),
            _ => None,
        }
    }

    fn ended(&mut self, session: Option<&ClientId>) {
        let calls = match session {
            None => Some(&mut self.strangers),
            Some(id) => self.sessions.get_mut(id).map(|known| &mut known.calls),
        };
        if let Some(calls) = calls {
            calls.end();
        }
    }
}

/// A call that is being made.
pub(crate) struct Noted {
    recent: Arc<Recent>,
    server: ServerName,
    /// The id of its session, if it is of one.
    session: Option<ClientId>,
}

impl Recent {
    /// Notes that somebody calls a server, for as long as what is returned is held.
    pub(crate) fn note(
        self: &Arc<Self>,
        server: &ServerName,
        session: Option<&Arc<Session>>,
    ) -> Noted {
        let mut callers = self.lock();
        match callers.get_mut(server) {
            Some(known) => known.of(session).begin(),
            None => callers.entry(server.clone()).or_default().of(session).begin(),
        }
        let session = session.map(|session| session.id.clone());
        Noted { recent: Arc::clone(self), server: server.clone(), session }
    }

    /// Passes on what a server says that belongs to no request: that a visit is over, to whoever was
    /// asked for it; all else if it can only be about the calls of one session. Nobody learns what
    /// others do.
    pub(crate) fn pass_on(&self, server: &ServerName, notification: &Notification) {
        let is_line = &*notification.method == "notifications/message";
        let is_wanted = |session: &Arc<Session>| {
            !is_line || level::is_wanted(notification, Some(session.level()))
        };
        let concerned = self.concerned(server, notification);
        concerned.iter().filter(|it| is_wanted(it)).for_each(|it| it.tell(server, notification));
    }

    /// The sessions that something is for.
    fn concerned(&self, server: &ServerName, notification: &Notification) -> Vec<Arc<Session>> {
        let mut callers = self.lock();
        let Some(callers) = callers.get_mut(server) else { return Vec::new() };
        let visit = visits::over(notification);
        let visiting = visit.map(|id| callers.visiting(server, &id)).unwrap_or_default();
        match visiting.is_empty() {
            true => callers.only().into_iter().collect(),
            false => visiting,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName, Callers>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(callers) = self.recent.lock().get_mut(&self.server) {
            callers.ended(self.session.as_ref());
        }
    }
}
