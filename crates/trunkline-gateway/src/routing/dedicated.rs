//! The calls that clients make of servers of their own: such a server asks without saying about which
//! of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use trunkline::call;
use trunkline::connection::{Answering, CallHandler, Question};
use trunkline::message::{Notification, RpcError};
use trunkline::name::ServerName;
use trunkline::principal::ClientId;
use trunkline::protocol::{ELICITATION_COMPLETE, code, is_mcp_method};

use crate::client::call_handler::{Attending, in_words_of_legacy, require_offered};
use crate::client::caller::Caller;
use crate::client::channel::{Talk, WayAfter};
use crate::client::input_queue::Desk;
use crate::client::log_filter;
use crate::client::session::Session;
use crate::request::incoming::Client;

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

/// How long a client that has no session may be away before servers of its own are ended.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// Registers a call of a dedicated server, and returns the client on whose behalf it is made.
pub(crate) fn begin_call(
    attending: &Attending,
    server: &ServerName,
    calls: &Arc<OwnCalls>,
) -> (call::Client, OwnCall) {
    let own = Own { client: attending.caller.id(), server: server.clone() };
    let way = match &attending.desk {
        Some(desk) => Way::Desk(Arc::clone(desk)),
        None => Way::Stream(attending.caller.talk.clone()),
    };
    let call = calls.begin(&own, way);
    (on_behalf(&attending.caller, &call.own, calls), call)
}

/// The caller as the host knows it, for a server of which each client has its own.
fn on_behalf(caller: &Caller, own: &Own, calls: &Arc<OwnCalls>) -> call::Client {
    // Its server lives longer than the request in which it said what it is.
    let client = Arc::new(caller.client.detached());
    let (id, capabilities) = (own.client.clone(), client.capabilities.clone());
    let owner = caller.identity.principal.clone();
    if let Some(session) = &caller.session {
        let (session, own) = (Arc::downgrade(session), own.clone());
        let attendant = Arc::new(OfSession { session, own, calls: Arc::clone(calls) });
        let (attendant, log_level) = (Some(attendant as _), caller.level);
        return call::Client { id, owner, capabilities, attendant, log_level, idle: None };
    }
    let (own, calls) = (own.clone(), Arc::clone(calls));
    let attendant = Arc::new(OfAnyCall { own, client, calls });
    let idle = Some(LONGEST_ABSENCE);
    let (attendant, log_level) = (Some(attendant as _), caller.level);
    call::Client { id, owner, capabilities, attendant, log_level, idle }
}

/// Answers what the server of a session asks outside of any call, or without saying about which: all
/// are of the same client.
struct OfSession {
    session: Weak<Session>,
    own: Own,
    calls: Arc<OwnCalls>,
}

impl OfSession {
    /// Sends a message on a stream that is open, and returns the way for another one: the stream for
    /// what belongs to no call, or that of a call of this server. Without one it would wait for somebody
    /// who may never read it.
    fn send(&self, session: &Session, message: Bytes) -> Option<WayAfter> {
        if session.standing.is_read() {
            session.standing.tell(message);
            let standing = Arc::clone(&session.standing);
            return Some(Box::new(move |message| standing.tell(message)));
        }
        self.calls.ways(&self.own).iter().find_map(|way| match way {
            Way::Stream(talk) => talk.send_first(message.clone()),
            Way::Desk(_) => None,
        })
    }
}

impl CallHandler for OfSession {
    /// Whatever such a server says is for this client. Lists are those of the one that all share.
    fn on_notification(&self, notification: &Notification) {
        let Some(session) = self.session.upgrade() else { return };
        let said = match &*notification.method {
            "notifications/message" => log_filter::is_wanted(notification, Some(session.level()))
                .then(|| notification.clone()),
            "notifications/resources/updated" => {
                session.addresses.updated(&self.own.server, notification)
            }
            method => (method == ELICITATION_COMPLETE || !is_mcp_method(method))
                .then(|| notification.clone()),
        };
        if let Some(said) = said {
            session.tell(&self.own.server, &said);
        }
    }

    fn asked(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            let gone = || RpcError::new(code::INTERNAL_ERROR, "the client is gone");
            let session = self.session.upgrade().ok_or_else(gone)?;
            require_offered(&session.client, &question)?;
            let send = |message| self.send(&session, message);
            session.questions.ask(in_words_of_legacy(question), send).await
        })
    }
}

/// Answers what a modern client's own server asks without saying about which call. Clients that look
/// the same share it, so that only the client of the only call can be the right one.
struct OfAnyCall {
    own: Own,
    client: Arc<Client>,
    calls: Arc<OwnCalls>,
}

impl CallHandler for OfAnyCall {
    fn asked(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            require_offered(&self.client, &question)?;
            match &*self.calls.ways(&self.own) {
                [] => Err(RpcError::new(code::INTERNAL_ERROR, "no call is being made")),
                [Way::Desk(desk)] => desk.ask(question).await,
                [Way::Stream(talk)] => talk.ask(question).await,
                several => {
                    several.iter().filter_map(Way::desk).for_each(Desk::hurry);
                    Err(unclear(&question))
                }
            }
        })
    }
}

fn unclear(question: &Question) -> RpcError {
    let message = format!(
        "`{}` is refused: several calls are being made, and it does not say which of them it \
         belongs to; clients with the same token, name and capabilities share this process",
        question.method
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}
