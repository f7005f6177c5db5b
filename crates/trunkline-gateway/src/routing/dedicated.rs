//! Tracks calls of dedicated servers, whose requests do not name the call they belong to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use trunkline::call;
use trunkline::connection::{CallHandler, HandlerFuture, ServerRequest};
use trunkline::message::Notification;
use trunkline::name::ServerName;
use trunkline::principal::ClientId;
use trunkline::protocol::{ELICITATION_COMPLETE, is_mcp_method};

use crate::client::call_handler::{RelayHandler, require_capability, to_legacy_request};
use crate::client::caller::Caller;
use crate::client::channel::{ClientChannel, FollowUpSender};
use crate::client::input_queue::InputQueue;
use crate::client::log_filter;
use crate::client::session::Session;
use crate::request::errors::{ambiguous_server_request, no_client_response};
use crate::request::incoming::ClientProfile;

/// Maximum number of processes of one server per client; a further one is started while a call
/// waits for its client.
const MAX_PROCESSES: usize = 16;

/// A client and its dedicated server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DedicatedKey {
    pub(crate) client: ClientId,
    pub(crate) server: ServerName,
}

/// How server requests reach the client of a call.
#[derive(Clone)]
pub(crate) enum InputChannel {
    /// On the stream of the call, if the client supports them.
    Stream(ClientChannel),
    /// In the input queue of the call, until the client retries it.
    Queue(Arc<InputQueue>),
}

impl DedicatedKey {
    /// The key of another process of the same client.
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

impl InputChannel {
    pub(crate) fn inputs(&self) -> Option<&InputQueue> {
        match self {
            Self::Stream(_) => None,
            Self::Queue(inputs) => Some(inputs),
        }
    }
}

/// All calls of dedicated servers in flight, including parked ones.
#[derive(Default)]
pub(crate) struct DedicatedCalls {
    open: Mutex<DedicatedCallTable>,
}

#[derive(Default)]
struct DedicatedCallTable {
    next: u64,
    calls: HashMap<DedicatedKey, Vec<(u64, InputChannel)>>,
}

impl DedicatedCallTable {
    /// Whether a call waits for its client.
    fn has_waiting_call(&self, own: &DedicatedKey) -> bool {
        let calls = self.calls.get(own).into_iter().flatten();
        calls.filter_map(|(_, input)| input.inputs()).any(InputQueue::has_open_requests)
    }
}

/// A call in flight. Dropping it removes it from the table.
pub(crate) struct DedicatedCall {
    calls: Arc<DedicatedCalls>,
    pub(crate) own: DedicatedKey,
    number: u64,
}

impl DedicatedCalls {
    /// Registers a call for as long as the returned guard is held, and selects its process: one in
    /// which no call waits for its client. Such a call may send further server requests, which
    /// could not be attributed; and its client may never return.
    pub(crate) fn begin(
        self: &Arc<Self>,
        own: &DedicatedKey,
        input: InputChannel,
    ) -> DedicatedCall {
        let mut open = self.lock();
        let numbered = (0..MAX_PROCESSES).map(|number| own.numbered(number));
        let own = numbered
            .into_iter()
            .find(|it| !open.has_waiting_call(it))
            .unwrap_or_else(|| own.clone());
        open.next += 1;
        let number = open.next;
        open.calls.entry(own.clone()).or_default().push((number, input));
        DedicatedCall { calls: Arc::clone(self), own, number }
    }

    /// The channels of all calls that a server request may be about.
    pub(crate) fn channels(&self, own: &DedicatedKey) -> Vec<InputChannel> {
        let open = self.lock();
        let calls = open.calls.get(own).into_iter().flatten();
        calls.map(|(_, input)| input.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, DedicatedCallTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DedicatedCall {
    fn drop(&mut self) {
        let mut open = self.calls.lock();
        let Some(calls) = open.calls.get_mut(&self.own) else { return };
        calls.retain(|(number, _)| *number != self.number);
        if calls.is_empty() {
            open.calls.remove(&self.own);
        }
    }
}

/// Idle timeout of the dedicated servers of a client without a session.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// Registers a call of a dedicated server, and returns the client on whose behalf it is made.
pub(crate) fn begin_call(
    handler: &RelayHandler,
    server: &ServerName,
    calls: &Arc<DedicatedCalls>,
) -> (call::ClientContext, DedicatedCall) {
    let own = DedicatedKey { client: handler.caller.dedicated_id(), server: server.clone() };
    let input = match &handler.inputs {
        Some(inputs) => InputChannel::Queue(Arc::clone(inputs)),
        None => InputChannel::Stream(handler.caller.channel.clone()),
    };
    let call = calls.begin(&own, input);
    (client_context(&handler.caller, &call.own, calls), call)
}

/// The client context of a caller, for a dedicated server.
fn client_context(
    caller: &Caller,
    own: &DedicatedKey,
    calls: &Arc<DedicatedCalls>,
) -> call::ClientContext {
    // The server outlives the request that declared the client profile.
    let client = Arc::new(caller.client.detached());
    let (id, capabilities) = (own.client.clone(), client.capabilities.clone());
    let owner = caller.identity.principal.clone();
    if let Some(session) = &caller.session {
        let (session, own) = (Arc::downgrade(session), own.clone());
        let handler = Arc::new(SessionHandler { session, own, calls: Arc::clone(calls) });
        let (handler, log_level) = (Some(handler as _), caller.level);
        return call::ClientContext { id, owner, capabilities, handler, log_level, idle: None };
    }
    let (own, calls) = (own.clone(), Arc::clone(calls));
    let handler = Arc::new(AnyCallHandler { own, client, calls });
    let idle = Some(LONGEST_ABSENCE);
    let (handler, log_level) = (Some(handler as _), caller.level);
    call::ClientContext { id, owner, capabilities, handler, log_level, idle }
}

/// Handles requests of a session's dedicated server outside of calls, or without the ID of a call:
/// all calls belong to the same client.
struct SessionHandler {
    session: Weak<Session>,
    own: DedicatedKey,
    calls: Arc<DedicatedCalls>,
}

impl SessionHandler {
    /// Sends a message on an open stream, and returns a sender for follow-ups: the stream of the
    /// session, or that of a call of this server. Otherwise the message might never be read.
    fn send(&self, session: &Session, message: Bytes) -> Option<FollowUpSender> {
        if session.stream.is_read() {
            session.stream.notify(message);
            let stream = Arc::clone(&session.stream);
            return Some(Box::new(move |message| stream.notify(message)));
        }
        self.calls.channels(&self.own).iter().find_map(|input| match input {
            InputChannel::Stream(channel) => channel.send_first(message.clone()),
            InputChannel::Queue(_) => None,
        })
    }
}

impl CallHandler for SessionHandler {
    /// All notifications of the server are for this client. List changes are those of the shared
    /// connection.
    fn on_notification(&self, notification: &Notification) {
        let Some(session) = self.session.upgrade() else { return };
        let forwarded = match &*notification.method {
            "notifications/message" => log_filter::is_wanted(notification, Some(session.level()))
                .then(|| notification.clone()),
            "notifications/resources/updated" => {
                let may_hear = |uri: &str| session.may_hear_of(&self.own.server, uri);
                session.subscriptions.updated((&self.own.server, &may_hear), notification)
            }
            method => (method == ELICITATION_COMPLETE || !is_mcp_method(method))
                .then(|| notification.clone()),
        };
        if let Some(forwarded) = forwarded {
            session.tell(&self.own.server, &forwarded);
        }
    }

    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(async move {
            let gone = || no_client_response("the client is gone");
            let session = self.session.upgrade().ok_or_else(gone)?;
            require_capability(&session.client, &request)?;
            let send = |message| self.send(&session, message);
            session.server_requests.ask(to_legacy_request(request), send).await
        })
    }
}

/// Handles requests of a modern client's dedicated server that do not name their call. Clients that
/// look the same share the server, so that only a single call in flight identifies the client.
struct AnyCallHandler {
    own: DedicatedKey,
    client: Arc<ClientProfile>,
    calls: Arc<DedicatedCalls>,
}

impl CallHandler for AnyCallHandler {
    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(async move {
            require_capability(&self.client, &request)?;
            match &*self.calls.channels(&self.own) {
                [] => Err(no_client_response("no call is being made")),
                [InputChannel::Queue(inputs)] => inputs.ask(request).await,
                [InputChannel::Stream(channel)] => channel.ask(request).await,
                several => {
                    several
                        .iter()
                        .filter_map(InputChannel::inputs)
                        .for_each(InputQueue::shorten_wait);
                    Err(ambiguous_server_request(&request.method))
                }
            }
        })
    }
}
