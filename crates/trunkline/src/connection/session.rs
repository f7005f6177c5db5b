//! A session with a server: sends requests and dispatches responses, notifications and server
//! requests.

mod deadline;
mod empty_replies;
mod masking;
mod past_calls;
mod pending;
mod server_requests;
mod partial_messages;
mod responses;
mod notifications;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::debug;

use self::deadline::Deadline;
pub(super) use self::deadline::QUESTIONS;
use self::empty_replies::EmptyReplies;
pub(super) use self::masking::masked_raw;
use self::past_calls::CallEnd;
pub(super) use self::pending::MAX_PENDING_CALLS;
use self::pending::{PendingRequest, PendingRequests};
use super::client_meta::{ClientMeta, request_params, with_progress_token, without_progress_token};
use super::handler::{CallEvent, CallHandler, CancelledRequest};
use super::param_headers::{ParamHeader, headers, subject};
use super::request_error::{RequestError, late_error};
use super::state::error_context::with_stderr;
use crate::channel::Sender;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Notification, Raw};
use crate::name::ServerName;
use crate::principal::{ClientId, Requester};
use crate::protocol::{Era, ProtocolVersion};
use crate::timer::LazyTimer;
use crate::transport::{
    AnyTransport, InboundEvent, MessageKind, OutboundMessage, RemainingProcess, SecretMask,
};
use partial_messages::{after_noise, is_cuttable, unreadable};
use server_requests::{OpenServerRequest, UnboundRequests};

/// Messages of one server that are handled before the task yields to others.
const TURNS: u32 = 64;

/// The outcome of a request: the server's result or error, or the reason why there is neither.
pub(super) type RequestOutcome = Result<Raw, RequestError>;

/// An event that does not belong to one request, or that ends the session.
#[derive(Debug)]
pub(super) enum SessionEvent {
    /// A notification, with the only client whose calls it can be about, if it is about calls.
    Notification(Notification, Option<ClientId>),
    /// A line that is not a JSON-RPC message.
    InvalidMessage,
    /// A server request that cannot be answered in this era.
    UnanswerableRequest,
    /// No request is pending any more.
    Idle,
    /// The server lost the session. Requests that it accepted before may still complete.
    SessionExpired,
    /// The server is unreachable. Requests that it received may still complete.
    Unreachable(Error),
    /// The transport closed.
    Closed(Error),
}

/// Request IDs of one server: unique, also across restarts.
#[derive(Debug, Default)]
pub(super) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Leaves out the IDs below this one, which another client of the server has used.
    pub(super) fn skip_to(&self, first: u64) {
        self.0.fetch_max(first.saturating_sub(1), Ordering::Relaxed);
    }
}

/// A request to be sent.
pub(super) struct SessionRequest {
    pub(super) id: u64,
    pub(super) method: Arc<str>,
    pub(super) params: Option<Raw>,
    /// The revision of the tool list that the request requires.
    pub(super) within: Option<u64>,
    /// Deadline for the response, including the time before it is sent.
    pub(super) deadline: Instant,
    /// Timeout for the response from the time of sending, excluding the time of server requests.
    pub(super) patience: Duration,
    pub(super) reply: oneshot::Sender<RequestOutcome>,
    /// Receives notifications and server requests that belong to this request.
    pub(super) updates: Option<Sender<CallEvent>>,
    /// Whether to request progress notifications.
    pub(super) wants_progress: bool,
    /// Whether the request stays pending until the session ends.
    pub(super) is_standing: bool,
    /// The client of the request; `None` for requests of the connection itself.
    pub(super) requester: Option<Requester>,
    /// Metadata of that client, for modern servers.
    pub(super) client_meta: Option<Raw>,
}

/// A session with a server.
pub(super) struct Session {
    transport: AnyTransport,
    /// Identifies this session among those of the server.
    number: u64,
    /// The client metadata of every modern request.
    client_meta: ClientMeta,
    pub(super) version: ProtocolVersion,
    pending: PendingRequests,
    /// For the deadlines of pending requests.
    timer: LazyTimer,
    asides: UnboundRequests,
    /// Open server requests.
    open: Vec<OpenServerRequest>,
    /// Timeout for the response to a server request.
    question: Duration,
    /// Tool arguments to repeat in headers, by tool.
    mirrored: HashMap<Box<str>, Arc<[ParamHeader]>>,
    /// Time of the last response.
    last_answer: Instant,
    /// Failure of one request, or of all, to deliver on the next poll, after the state change it
    /// causes has been published.
    unsaid: Option<(Option<u64>, Error)>,
    empty_replies: EmptyReplies,
    /// Lines that were not JSON-RPC messages.
    pub(super) noise: u64,
    /// Number of loop iterations so far, to yield every [`TURNS`].
    turns: u32,
    /// Secrets to mask in every message of the server, if any.
    pub(super) mask: Option<Arc<SecretMask>>,
}

impl Session {
    /// Creates a session, with the handler for server requests that belong to no call, if any, and
    /// the server and timeout for responses to server requests.
    pub(super) fn new(
        transport: AnyTransport,
        number: u64,
        client_meta: ClientMeta,
        (handler, server, question): (Option<Arc<dyn CallHandler>>, ServerName, Duration),
    ) -> Self {
        Self {
            transport,
            number,
            client_meta,
            version: ProtocolVersion::MODERN,
            pending: PendingRequests::default(),
            asides: UnboundRequests::new(handler, server, question),
            open: Vec::new(),
            question,
            mirrored: HashMap::new(),
            last_answer: Instant::now(),
            unsaid: None,
            empty_replies: EmptyReplies::default(),
            noise: 0,
            timer: LazyTimer::default(),
            turns: 0,
            mask: None,
        }
    }

    pub(super) fn transport(&self) -> &AnyTransport {
        &self.transport
    }

    /// The client metadata of every modern request.
    pub(super) fn client_meta(&self) -> &ClientMeta {
        &self.client_meta
    }

    /// Sends in this protocol version from now on.
    pub(super) fn set_version(&mut self, version: ProtocolVersion) {
        self.transport.set_protocol_version(version);
        self.version = version;
    }

    /// Opens the stream for messages that the server initiates.
    pub(super) fn listen(&mut self) {
        self.transport.open_get_stream();
    }

    /// Whether tool arguments are repeated in headers.
    pub(super) fn sends_param_headers(&self) -> bool {
        self.version.era() == Era::Modern && self.transport.cancels_by_closing()
    }

    /// Sets the tool arguments to repeat in headers.
    pub(super) fn set_param_headers(&mut self, mirrored: HashMap<Box<str>, Arc<[ParamHeader]>>) {
        self.mirrored = mirrored;
    }

    /// Whether the requester of this request may have another pending call.
    pub(super) fn admits(&self, asked: &SessionRequest) -> bool {
        asked.requester.as_ref().is_none_or(|requester| self.pending.admits(requester))
    }

    /// Whether the outbound queue is full, so that nothing more should be sent.
    pub(super) fn is_full(&self) -> bool {
        self.transport.is_full()
    }

    /// Runs until no request is pending, and closes then.
    pub(super) async fn drain(mut self, patience: Duration) {
        while self.pending.len() > 0 {
            if let SessionEvent::Closed(_) = self.next().await {
                break;
            }
        }
        self.close(patience).await;
    }

    /// Time since which no request is pending, if so.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.pending.len() == 0).then_some(self.last_answer)
    }

    /// Sends a request. The response goes to its `reply` channel.
    pub(super) fn send_request(&mut self, asked: SessionRequest) {
        let SessionRequest { id, method, params, reply, updates, is_standing, requester, .. } =
            asked;
        let deadline = asked.deadline.min(Instant::now() + asked.patience);
        let deadline = Deadline::new(deadline, self.question);
        let (params, token) = match asked.wants_progress {
            true => with_progress_token(params, id),
            false => (params.map(without_progress_token), None),
        };
        let client = (asked.client_meta.as_ref(), &self.client_meta);
        let params = request_params(self.version.era(), params, client);
        let params = params.as_ref();
        let name = if self.sends_param_headers() { subject(&method, params) } else { None };
        let parameters = self.parameters(&method, params, name.as_deref());
        let line = Message::write_request(id, &method, params);
        let (is_settled, is_cuttable) = (false, is_cuttable(&method));
        let waiting = PendingRequest {
            reply,
            deadline,
            updates,
            token,
            is_standing,
            is_settled,
            is_cuttable,
            requester,
        };
        debug!(id, method = &*method, bytes = line.len(), "request sent");
        let path = waiting.requester.as_ref().map(|it| it.path.clone()).unwrap_or_default();
        self.pending.insert(id, waiting);
        self.transport.send(OutboundMessage {
            line,
            purpose: MessageKind::Request { id, method, name, parameters },
            path,
        });
    }

    fn parameters(
        &self,
        method: &str,
        params: Option<&Raw>,
        name: Option<&str>,
    ) -> Vec<(Box<str>, Box<str>)> {
        match name.and_then(|name| self.mirrored.get(name)) {
            Some(mirrored) if method == "tools/call" => headers(mirrored, params),
            _ => Vec::new(),
        }
    }

    /// Sends a notification on behalf of a client. Later messages of the server may be about it.
    pub(super) fn notify_for(&mut self, requester: &Requester, notification: Notification) {
        self.notify(&notification.method, notification.params);
        self.pending.record_notification(requester);
    }

    /// Sends a notification to the server.
    pub(super) fn notify(&mut self, method: &str, params: Option<Raw>) {
        let notification = Notification { method: method.into(), params };
        let line = Message::Notification(notification).write();
        debug!(method, bytes = line.len(), "notification sent");
        let purpose = MessageKind::Notification { method: method.into() };
        self.transport.send(OutboundMessage::new(line, purpose));
    }

    /// Removes a request whose caller has stopped waiting, and notifies the server (CON-13).
    pub(super) fn cancel_request(&mut self, CancelledRequest { id, last_words }: CancelledRequest) {
        if self.pending.contains(id) {
            self.last_answer = Instant::now();
            // An ambiguous request ID in the parameters could cancel another request.
            let is_clear = |words: &Raw| words.is_object() && words.get_unique("requestId").is_ok();
            let unsaid = || reason("the response is not needed any more");
            let end = self.cancel(id, &last_words.filter(is_clear).unwrap_or_else(unsaid));
            self.pending.end(id, end);
        }
    }

    /// Cancels a request at the server, as its era defines it. Returns how the call ended.
    fn cancel(&mut self, id: u64, words: &Raw) -> CallEnd {
        debug!(id, "request cancelled");
        if self.transport.cancel(id) {
            return CallEnd::Unsent;
        }
        if self.version.era() != Era::Modern || !self.transport.cancels_by_closing() {
            let params = words.with("requestId", &Raw::from_number(id));
            self.notify("notifications/cancelled", Some(params));
        }
        CallEnd::GivenUp
    }

    /// Moves messages both ways until an event occurs that does not belong to one request. When the
    /// session ends, pending requests fail on the next poll, or when it is closed. Cancel safe.
    pub(super) async fn next(&mut self) -> SessionEvent {
        let was_busy = self.pending.len() > 0;
        self.flush_deferred_failure();
        loop {
            if was_busy && self.pending.len() == 0 {
                return SessionEvent::Idle;
            }
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(TURNS) {
                // A server that sends without a pause must not starve others.
                tokio::task::yield_now().await;
            }
            // In this order: a server that asks as it starts gets its response before the first call.
            let incoming = tokio::select! { biased;
                () = self.timer.wait_until(self.pending.next_deadline()) => {
                    self.expire();
                    continue;
                }
                response = self.asides.next() => {
                    self.respond(self.number, response);
                    continue;
                }
                incoming = self.transport.next() => incoming,
            };
            match masking::masked(self.mask.as_deref(), incoming) {
                InboundEvent::Message(line) => {
                    if let Some(event) = self.on_inbound(&line, None) {
                        return event;
                    }
                }
                InboundEvent::Response(response) => {
                    if let Some(event) = self.on_response(response) {
                        return event;
                    }
                }
                InboundEvent::OnRequestStream { id, line } => {
                    if let Some(event) = self.on_inbound(&line, Some(id)) {
                        return event;
                    }
                }
                InboundEvent::RequestFailed { id, error } => match consequence(&error) {
                    Some(event) => {
                        self.unsaid = Some((Some(id), error));
                        return event;
                    }
                    None => self.answer(id, Err(error.into())),
                },
                InboundEvent::EmptyReply { id, error } => {
                    if let Some(event) = self.on_empty_reply(id, error) {
                        return event;
                    }
                }
                InboundEvent::Closed(error) => {
                    let error = with_stderr(error, &self.transport.stderr_lines(), 0);
                    self.unsaid = Some((None, error.clone()));
                    return SessionEvent::Closed(error);
                }
            }
        }
    }

    fn flush_deferred_failure(&mut self) {
        match self.unsaid.take() {
            Some((Some(id), error)) => self.answer(id, Err(error.into())),
            Some((None, error)) => self.pending.fail_all(&error),
            None => {}
        }
    }

    /// Dispatches a line, perhaps received on the stream of a request. Counts lines that are not
    /// JSON-RPC messages.
    fn on_inbound(&mut self, line: &Bytes, about: Option<u64>) -> Option<SessionEvent> {
        match Message::read(line) {
            Ok(Message::Response(response)) => self.on_response(response),
            Ok(Message::Notification(notification)) => self
                .on_notification(notification, about)
                .map(|(it, client)| SessionEvent::Notification(it, client)),
            Ok(Message::Request(request)) => self.on_server_request(request, about),
            Err(malformed) => match (unreadable(line, malformed), after_noise(line)) {
                (Some((id, problem)), _) => {
                    let error = Error::new(ErrorKind::ProtocolViolation, problem);
                    self.answer(id, Err(error.into()));
                    None
                }
                (None, Some(rest)) => {
                    self.noise += 1;
                    self.on_inbound(&rest, about)
                }
                (None, None) => self.on_noise(),
            },
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some(id) = self.pending.expired(now) {
            let error = match self.pending.has_open_input(id) {
                true => Error::new(ErrorKind::TimedOut, "its question was not answered in time")
                    .with_hint("`timeouts.question` is the bound"),
                false => late_error(),
            };
            self.last_answer = now;
            let end = self.cancel(id, &reason("the time for an answer is over"));
            self.pending.answer(id, Err(error.into()), end);
        }
    }

    /// Sends a request and waits for the response, before other requests are served.
    pub(super) async fn exchange(
        &mut self,
        id: u64,
        method: &str,
        params: Option<Raw>,
        deadline: Instant,
    ) -> RequestOutcome {
        let (reply, mut answer) = oneshot::channel();
        self.send_request(SessionRequest {
            id,
            method: method.into(),
            params,
            within: None,
            deadline,
            patience: deadline.saturating_duration_since(Instant::now()),
            reply,
            updates: None,
            wants_progress: false,
            is_standing: false,
            requester: None,
            client_meta: None,
        });
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    return answer.unwrap_or_else(|_| Err(closed_error().into()));
                }
                event = self.next() => {
                    if let SessionEvent::Closed(error) = event {
                        return answer.try_recv().unwrap_or(Err(error.into()));
                    }
                }
            }
        }
    }

    /// Closes the session and the server. Returns the processes that could not be ended.
    pub(super) async fn close(mut self, patience: Duration) -> Vec<RemainingProcess> {
        self.flush_deferred_failure();
        self.pending.fail_all(&shutting_down());
        self.transport.close(patience).await
    }
}

/// The parameters of `notifications/cancelled`, with a reason.
fn reason(text: &str) -> Raw {
    Raw::empty_object().with("reason", &Raw::from_string(text))
}

/// The consequence of a failed request for the whole session; usually none.
fn consequence(error: &Error) -> Option<SessionEvent> {
    match error.kind() {
        ErrorKind::SessionExpired => Some(SessionEvent::SessionExpired),
        kind if kind.is_unreachable() => Some(SessionEvent::Unreachable(error.clone())),
        _ => None,
    }
}

/// The error while the host stops the server.
pub(super) fn shutting_down() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the server is being stopped")
}

pub(super) fn closed_error() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the connection is closed")
}
