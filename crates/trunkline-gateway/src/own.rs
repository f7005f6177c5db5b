//! The calls that clients make of servers of their own: such a server asks without saying about which
//! of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline::name::ServerName;
use trunkline::principal::ClientId;

use crate::desk::Desk;
use crate::talk::Talk;

/// Processes that one client may have of one server, because calls of it wait for their client.
const MAX_PROCESSES: usize = 16;

/// A client, and a server of which it has one of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Own {
    pub(crate) client: ClientId,
    pub(crate) server: ServerName,
}

/// How the client of a call is asked something.
#[derive(Clone)]
pub(crate) enum Way {
    /// On the stream of the call, if it can be asked at all.
    Stream(Talk),
    /// On the desk of the call, until it calls again.
    Desk(Arc<Desk>),
}

impl Own {
    /// The same client with another process.
    fn numbered(&self, number: usize) -> Self {
        match number {
            0 => self.clone(),
            _ => Self {
                client: format!("{}\n{number}", self.client.as_str()).as_str().into(),
                ..self.clone()
            },
        }
    }
}

impl Way {
    pub(crate) fn desk(&self) -> Option<&Desk> {
        match self {
            Self::Stream(_) => None,
            Self::Desk(desk) => Some(desk),
        }
    }
}

/// All calls that are being made of servers of clients' own, parked ones included.
#[derive(Default)]
pub(crate) struct OwnCalls {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    calls: HashMap<Own, Vec<(u64, Way)>>,
}

impl Open {
    /// Whether a call waits for its client.
    fn waits(&self, own: &Own) -> bool {
        let calls = self.calls.get(own).into_iter().flatten();
        calls.filter_map(|(_, way)| way.desk()).any(Desk::has_questions)
    }
}

/// A call that is being made. Dropping it says that it is over.
pub(crate) struct OwnCall {
    calls: Arc<OwnCalls>,
    pub(crate) own: Own,
    number: u64,
}

impl OwnCalls {
    /// Notes a call, for as long as what is returned is held, and says which process it is for: one
    /// in which no call waits for its client. Such a call may have more to ask, so that nobody could
    /// say whom a question is for; and its client may never come back.
    pub(crate) fn begin(self: &Arc<Self>, own: &Own, way: Way) -> OwnCall {
        let mut open = self.lock();
        let numbered = (0..MAX_PROCESSES).map(|number| own.numbered(number));
        let own = numbered.into_iter().find(|it| !open.waits(it)).unwrap_or_else(|| own.clone());
        open.next += 1;
        let number = open.next;
        open.calls.entry(own.clone()).or_default().push((number, way));
        OwnCall { calls: Arc::clone(self), own, number }
    }

    /// The ways to the clients of all calls that a question of a server may be about.
    pub(crate) fn ways(&self, own: &Own) -> Vec<Way> {
        let open = self.lock();
        let calls = open.calls.get(own).into_iter().flatten();
        calls.map(|(_, way)| way.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OwnCall {
    fn drop(&mut self) {
        let mut open = self.calls.lock();
        let Some(calls) = open.calls.get_mut(&self.own) else { return };
        calls.retain(|(number, _)| *number != self.number);
        if calls.is_empty() {
            open.calls.remove(&self.own);
        }
    }
}
