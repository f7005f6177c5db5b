//! A server that is being spoken to: requests out, answers back to whoever waits for them.

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
use tokio::time::{Instant, sleep_until};

use self::deadline::Deadline;
pub(super) use self::deadline::QUESTIONS;
use self::empty_replies::EmptyReplies;
pub(super) use self::masking::masked_raw;
use self::past_calls::CallEnd;
pub(super) use self::pending::MAX_PENDING_CALLS;
use self::pending::{PendingRequest, PendingRequests};
use super::client_meta::{ClientMeta, request_params, with_progress_token};
use super::handler::{CallEvent, CallHandler, CancelledRequest};
use super::param_headers::{ParamHeader, headers, subject};
use super::state::error_context::with_stderr;
use crate::channel::Sender;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Notification, Raw, RpcError};
use crate::principal::{ClientId, Requester};
use crate::protocol::{Era, ProtocolVersion};
use crate::transport::{
    AnyTransport, InboundEvent, MessageKind, OutboundMessage, RemainingProcess, SecretMask,
};
use partial_messages::{after_noise, is_cuttable, unreadable};
use server_requests::{OpenServerRequest, UnboundRequests};

/// What is taken from one server before others get their turn.
const TURNS: u32 = 64;

/// What became of a request: the server's result or error, or why there is neither.
pub(super) type RequestOutcome = Result<Result<Raw, RpcError>, Error>;

/// Something the server said that is not for one request, or that ends the conversation.
#[derive(Debug)]
pub(super) enum SessionEvent {
    /// It told something, which can only be about the calls of this client, if it is about calls.
    Notification(Notification, Option<ClientId>),
    /// It said something that is no message.
    InvalidMessage,
    /// Nobody waits for it any more.
    Idle,
    /// It has forgotten us. Requests that it had accepted before may still be answered.
    SessionExpired,
    /// No connection to it can be made any more. Requests that it has may still be answered.
    Unreachable(Error),
    /// Nothing more comes from it.
    Closed(Error),
}

/// The ids of requests to one server: never the same twice, also when it is started again.
#[derive(Debug, Default)]
pub(super) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A request on its way to the server.
pub(super) struct SessionRequest {
    pub(super) id: u64,
    pub(super) method: Arc<str>,
    pub(super) params: Option<Raw>,
    /// The conversation in which alone it is to be sent.
    pub(super) within: Option<u64>,
    /// When the answer is too late, whatever happens.
    pub(super) deadline: Instant,
    /// How long the answer may take once the server has been asked, without its own questions.
    pub(super) patience: Duration,
    pub(super) reply: oneshot::Sender<RequestOutcome>,
    /// Where to say what the server says in the meantime.
    pub(super) updates: Option<Sender<CallEvent>>,
    /// Whether the server is to say how far it is.
    pub(super) wants_progress: bool,
    /// Whether it waits for as long as the server lives.
    pub(super) is_standing: bool,
    /// The client it is made for; `None` if the connection makes it for itself.
    pub(super) requester: Option<Requester>,
}

/// A conversation with a server.
pub(super) struct Session {
    transport: AnyTransport,
    /// Which of the server's conversations this is.
    number: u64,
    /// What every modern request declares.
    client_meta: ClientMeta,
    pub(super) version: ProtocolVersion,
    pending: PendingRequests,
    asides: UnboundRequests,
    /// What the server asks and waits for.
    open: Vec<OpenServerRequest>,
    /// How long a question of the server may wait for an answer.
    question: Duration,
    /// Arguments that are repeated in headers, by tool.
    mirrored: HashMap<Box<str>, Arc<[ParamHeader]>>,
    /// When somebody was answered last.
    last_answer: Instant,
    /// What is still to be said to one request, or to all: it ends the conversation, and whoever hears
    /// it should find everything as it is then.
    unsaid: Option<(Option<u64>, Error)>,
    empty_replies: EmptyReplies,
    /// Lines that were no messages.
    pub(super) noise: u64,
    /// How often something has happened.
    turns: u32,
    /// What is masked in everything the server says, if anything is.
    pub(super) mask: Option<Arc<SecretMask>>,
}

impl Session {
    /// A conversation in which nothing has been said, with somebody who answers questions that
    /// belong to no request, if anybody does, and how long answers to questions may take.
    pub(super) fn new(
        transport: AnyTransport,
        number: u64,
        client_meta: ClientMeta,
        (handler, question): (Option<Arc<dyn CallHandler>>, Duration),
    ) -> Self {
        Self {
            transport,
            number,
            client_meta,
            version: ProtocolVersion::MODERN,
            pending: PendingRequests::default(),
            asides: UnboundRequests::new(handler, question),
            open: Vec::new(),
            question,
            mirrored: HashMap::new(),
            last_answer: Instant::now(),
            unsaid: None,
            empty_replies: EmptyReplies::default(),
            noise: 0,
            turns: 0,
            mask: None,
        }
    }

    pub(super) fn transport(&self) -> &AnyTransport {
        &self.transport
    }

    /// What every modern request declares.
    pub(super) fn client_meta(&self) -> &ClientMeta {
        &self.client_meta
    }

    /// Sends in this protocol version from now on.
    pub(super) fn set_version(&mut self, version: ProtocolVersion) {
        self.transport.set_protocol_version(version);
        self.version = version;
    }

    /// Listens to what the server says by itself.
    pub(super) fn listen(&mut self) {
        self.transport.open_get_stream();
    }

    /// Whether arguments are repeated in headers.
    pub(super) fn sends_param_headers(&self) -> bool {
        self.version.era() == Era::Modern && self.transport.cancels_by_closing()
    }

    /// Repeats these arguments in headers from now on.
    pub(super) fn set_param_headers(&mut self, mirrored: HashMap<Box<str>, Arc<[ParamHeader]>>) {
        self.mirrored = mirrored;
    }

    /// Whether another call of its requester may wait for the server.
    pub(super) fn admits(&self, asked: &SessionRequest) -> bool {
        asked.requester.as_ref().is_none_or(|requester| self.pending.admits(requester))
    }

    /// Whether so much waits to be read by the server that nothing more should be sent.
    pub(super) fn is_full(&self) -> bool {
        self.transport.is_full()
    }

    /// Stays until everybody who waits has been answered, and ends then.
    pub(super) async fn drain(mut self, patience: Duration) {
        while self.pending.len() > 0 {
            if let SessionEvent::Closed(_) = self.next().await {
                break;
            }
        }
        self.close(patience).await;
    }

    /// Since when nobody waits for anything, if that is so.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.pending.len() == 0).then_some(self.last_answer)
    }

    /// Sends a request. Its answer goes to whoever holds the other end of its reply.
    pub(super) fn send_request(&mut self, asked: SessionRequest) {
        let SessionRequest { id, method, params, reply, updates, is_standing, requester, .. } =
            asked;
        let deadline = asked.deadline.min(Instant::now() + asked.patience);
        let deadline = Deadline::new(deadline, self.question);
        let params = request_params(self.version.era(), params, &self.client_meta);
        let (params, token) = match asked.wants_progress {
            true => with_progress_token(params, id),
            false => (params, None),
        };
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

    /// Tells the server something.
    pub(super) fn notify(&mut self, method: &str, params: Option<Raw>) {
        let notification = Notification { method: method.into(), params };
        let line = Message::Notification(notification).write();
        let purpose = MessageKind::Notification { method: method.into() };
        self.transport.send(OutboundMessage::new(line, purpose));
    }

    /// Forgets a request that nobody waits for any more, and tells the server (CON-13).
    pub(super) fn cancel_request(&mut self, CancelledRequest { id, last_words }: CancelledRequest) {
        if self.pending.contains(id) {
            self.last_answer = Instant::now();
            // Another id in them must not end another's request.
            let is_clear = |words: &Raw| words.is_object() && words.get_unique("requestId").is_ok();
            let unsaid = || reason("nobody waits for the answer any more");
            let end = self.cancel(id, &last_words.filter(is_clear).unwrap_or_else(unsaid));
            self.pending.end(id, end);
        }
    }

    /// Tells the server that an answer is not wanted any more, in the way of its generation. Says how
    /// that ends the request.
    fn cancel(&mut self, id: u64, words: &Raw) -> CallEnd {
        if self.transport.cancel(id) {
            return CallEnd::Unsent;
        }
        if self.version.era() != Era::Modern || !self.transport.cancels_by_closing() {
            let params = words.with("requestId", &Raw::from_number(id));
            self.notify("notifications/cancelled", Some(params));
        }
        CallEnd::GivenUp
    }

    /// Moves messages both ways until the server says something that is not for one request, or
    /// ends. Whom that end leaves without an answer is told when it is asked for more, or closed. May
    /// be dropped at any time.
    pub(super) async fn next(&mut self) -> SessionEvent {
        let was_busy = self.pending.len() > 0;
        self.flush_deferred_failure();
        loop {
            if was_busy && self.pending.len() == 0 {
                return SessionEvent::Idle;
            }
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(TURNS) {
                // A server that never stops talking is not the only one.
                tokio::task::yield_now().await;
            }
            let incoming = tokio::select! {
                incoming = self.transport.next() => incoming,
                response = self.asides.next() => {
                    self.respond(self.number, response);
                    continue;
                }
                () = wait_until(self.pending.next_deadline()) => {
                    self.expire();
                    continue;
                }
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
                    None => self.answer(id, Err(error)),
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
            Some((Some(id), error)) => self.answer(id, Err(error)),
            Some((None, error)) => self.pending.fail_all(&error),
            None => {}
        }
    }

    /// Takes a line, perhaps about a request: answers go to whoever waits, noise is counted.
    fn on_inbound(&mut self, line: &Bytes, about: Option<u64>) -> Option<SessionEvent> {
        match Message::read(line) {
            Ok(Message::Response(response)) => self.on_response(response),
            Ok(Message::Notification(notification)) => self
                .on_notification(notification, about)
                .map(|(it, client)| SessionEvent::Notification(it, client)),
            Ok(Message::Request(request)) => {
                self.on_server_request(request, about);
                None
            }
            Err(malformed) => match (unreadable(line, malformed), after_noise(line)) {
                (Some((id, problem)), _) => {
                    self.answer(id, Err(Error::new(ErrorKind::ProtocolViolation, problem)));
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
                false => Error::new(ErrorKind::TimedOut, "it did not answer in time"),
            };
            self.last_answer = now;
            let end = self.cancel(id, &reason("the time for an answer is over"));
            self.pending.answer(id, Err(error), end);
        }
    }

    /// Asks and waits for the answer, before anybody else speaks.
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
        });
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    return answer.unwrap_or_else(|_| Err(closed_error()));
                }
                event = self.next() => {
                    if let SessionEvent::Closed(error) = event {
                        return answer.try_recv().unwrap_or(Err(error));
                    }
                }
            }
        }
    }

    /// Ends the conversation and the server. Returns the processes that could not be ended.
    pub(super) async fn close(mut self, patience: Duration) -> Vec<RemainingProcess> {
        self.flush_deferred_failure();
        self.pending.fail_all(&shutting_down());
        self.transport.close(patience).await
    }
}

/// What a server hears of a request that is given up.
fn reason(text: &str) -> Raw {
    Raw::empty_object().with("reason", &Raw::from_string(text))
}

/// What it means for the whole conversation that one request was lost; most often nothing.
fn consequence(error: &Error) -> Option<SessionEvent> {
    match error.kind() {
        ErrorKind::SessionExpired => Some(SessionEvent::SessionExpired),
        kind if kind.is_unreachable() => Some(SessionEvent::Unreachable(error.clone())),
        _ => None,
    }
}

/// The server is being ended by us.
pub(super) fn shutting_down() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the server is being stopped")
}

pub(super) fn closed_error() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the connection is closed")
}

/// Waits until then; for ever, if there is no such time.
pub(super) async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
