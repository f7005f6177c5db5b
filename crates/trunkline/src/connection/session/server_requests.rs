//! Routes server requests to the call they belong to, or to the handler of the host.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tracing::debug;

use super::pending::{PendingRequest, Recipient};
use super::{Session, SessionEvent};
use crate::config::escape_control;
use crate::connection::handler::{
    CallEvent, CallHandler, ServerRequest, answer_within, not_offered,
};
use crate::error::{Error, ErrorKind};
use crate::message::{Id, Message, Notification, Raw, Request, Response, RpcError};
use crate::name::ServerName;
use crate::protocol::{Era, code};
use crate::transport::{MessageKind, OutboundMessage};

/// Server requests without a call that are handled concurrently.
const MAX_ASIDES: usize = 64;

/// Maximum number of open server requests per server. Each is about a call, and a call seldom has
/// two.
const MAX_OPEN: usize = 1024;

/// Maximum total size of open server requests. Most are forms; a sampling request may contain a
/// whole conversation.
const MAX_OPEN_BYTES: usize = 32 * 1024 * 1024;

/// Hint for server requests that cannot be attributed to a call.
const ADVICE: &str = "`share: \"per-client\"` gives each client its own process";

/// A server request without a response yet.
pub(super) struct OpenServerRequest {
    id: Id,
    /// The calls that it may belong to.
    about: Vec<u64>,
    /// The handler task, if the request is not forwarded to the caller of the only such call.
    aside: Option<AbortHandle>,
    /// Size of its parameters in bytes.
    bytes: usize,
}

/// Server requests that belong to no call, and their handler, if any.
pub(super) struct UnboundRequests {
    handler: Option<Arc<dyn CallHandler>>,
    server: ServerName,
    /// Timeout of each.
    bound: Duration,
    /// Run concurrently with the session, and end with it.
    answering: JoinSet<Response>,
}

impl UnboundRequests {
    pub(super) fn new(
        handler: Option<Arc<dyn CallHandler>>,
        server: ServerName,
        bound: Duration,
    ) -> Self {
        Self { handler, server, bound, answering: JoinSet::new() }
    }

    /// The next response; waits forever if no request is open.
    pub(super) async fn next(&mut self) -> Response {
        loop {
            match self.answering.join_next().await {
                Some(Ok(answered)) => return answered,
                // Aborted, because the server cancelled its request.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// Forwards a server request to the handler. Without one, returns the `refusal`.
    fn forward(&mut self, request: &Request, refusal: RpcError) -> Result<AbortHandle, RpcError> {
        let Some(handler) = &self.handler else { return Err(refusal) };
        if self.answering.len() >= MAX_ASIDES {
            return Err(busy());
        }
        let (handler, Request { id, method, params }) = (Arc::clone(handler), request.clone());
        let (server, bound) = (self.server.clone(), self.bound);
        Ok(self.answering.spawn(async move {
            let answer = answer_within(bound, &*handler, ServerRequest { server, method, params });
            let outcome = match AssertUnwindSafe(answer).catch_unwind().await {
                Ok(outcome) => outcome.map_err(RpcError::from),
                Err(_) => Err(RpcError::new(code::INTERNAL_ERROR, "answering this panicked")),
            };
            Response { id, outcome }
        }))
    }
}

impl Session {
    /// Forwards a server request to its recipient, or refuses it.
    pub(super) fn on_server_request(
        &mut self,
        request: Request,
        about: Option<u64>,
    ) -> Option<SessionEvent> {
        debug!(method = &*request.method, about, "server request received");
        // A program such as `cat` echoes its input.
        let ours = request.id.as_number().filter(|id| self.pending.contains(*id));
        if let Some(id) = ours.filter(|_| is_ours(&request.method)) {
            let message = "it repeats what it is sent, which no MCP server does";
            self.answer(id, Err(Error::new(ErrorKind::ProtocolViolation, message).into()));
            return None;
        }
        if self.version.era() == Era::Modern && self.transport.cancels_by_closing() {
            return self.fail_unanswerable(&request, about);
        }
        if &*request.method == "ping" {
            self.send_response(Response { id: request.id, outcome: Ok(Raw::empty_object()) });
            return None;
        }
        let answered = match self.has_room_for(&request) {
            true => self.record_forwarded(&request, about),
            false => Err(busy()),
        };
        match answered {
            Ok(open) => self.record_open(open),
            Err(refusal) => {
                self.send_response(Response { id: request.id, outcome: Err(refusal) });
            }
        }
        None
    }

    /// Fails the request on whose stream a modern server sent a request. Over HTTP that era has no
    /// response to it, and the server would wait until the deadline. Over stdio it is handled as in
    /// the legacy era, whose responses every server that sends requests reads.
    fn fail_unanswerable(&mut self, request: &Request, about: Option<u64>) -> Option<SessionEvent> {
        let waiting = about.and_then(|id| Some((id, self.pending.get(id)?)));
        match waiting.filter(|(_, waiting)| !waiting.is_standing) {
            Some((id, _)) => {
                let message = format!(
                    "it sent the request `{}`, which revision 2026-07-28 has no answer to",
                    escape_control(&request.method)
                );
                let error = Error::new(ErrorKind::ProtocolViolation, message).with_hint(
                    "with `\"protocol\": \"legacy\"` it is spoken to in a revision that can answer it",
                );
                // Deferred, so that a caller that retries finds a connection that can respond.
                self.unsaid = Some((Some(id), error));
                Some(SessionEvent::UnanswerableRequest)
            }
            None => {
                self.noise += 1;
                None
            }
        }
    }

    /// Whether another server request may be open. First removes those without a recipient: the
    /// call has completed, or no handler task is left.
    fn has_room_for(&mut self, request: &Request) -> bool {
        self.open.retain(|it| match it.aside {
            Some(_) => !self.asides.answering.is_empty(),
            None => it.about.iter().any(|id| self.pending.contains(*id)),
        });
        let bytes: usize = self.open.iter().map(|it| it.bytes).sum();
        self.open.len() < MAX_OPEN && bytes + bytes_of(request) <= MAX_OPEN_BYTES
    }

    /// Records an open server request and stops the deadlines of its calls, because it takes none
    /// of the server's time.
    fn record_open(&mut self, question: OpenServerRequest) {
        question.about.iter().for_each(|id| self.pending.pause_deadline(*id));
        self.open.push(question);
    }

    /// Responds to a server request of this session that is still open.
    pub(in crate::connection) fn respond(&mut self, session: u64, response: Response) {
        if session == self.number && self.closed(&response.id).is_some() {
            self.send_response(response);
        }
    }

    fn send_response(&mut self, response: Response) {
        let line = Message::Response(response).write();
        self.transport.send(OutboundMessage::new(line, MessageKind::Response));
    }

    /// Removes the open server request with this ID.
    fn closed(&mut self, id: &Id) -> Option<OpenServerRequest> {
        let place = self.open.iter().position(|it| it.id == *id)?;
        let closed = self.open.swap_remove(place);
        closed.about.iter().for_each(|id| self.pending.resume_deadline(*id));
        Some(closed)
    }

    /// Handles `notifications/cancelled` for an open server request. Returns whether it was one.
    pub(super) fn on_cancelled(&mut self, said: &Notification) -> bool {
        let params = said.params.as_ref().filter(|_| &*said.method == "notifications/cancelled");
        let id = params.and_then(|params| Id::from_raw(&params.get("requestId")?));
        let Some(closed) = id.and_then(|id| self.closed(&id)) else { return false };
        match closed.aside {
            Some(aside) => aside.abort(),
            None => {
                let asked = closed.about.iter().filter_map(|id| self.pending.get(*id));
                for updates in asked.filter_map(|it| it.updates.as_ref()) {
                    let _ = updates.send(CallEvent::RequestCancelled(closed.id.clone()));
                }
            }
        }
        true
    }

    /// Forwards a server request to a caller or to the handler.
    fn record_forwarded(
        &mut self,
        request: &Request,
        about: Option<u64>,
    ) -> Result<OpenServerRequest, RpcError> {
        let method = &request.method;
        let recipient = self.pending.recipient_of(about, request.params.as_ref());
        let (concerned, refusal) = match recipient {
            Recipient::Of(id, PendingRequest { updates: Some(updates), .. }) => {
                let asked = CallEvent::Request { session: self.number, request: request.clone() };
                let weight = asked.weight();
                let is_put = updates.try_send_sized(asked, weight);
                let (about, bytes) = (vec![id], bytes_of(request));
                let open =
                    || OpenServerRequest { id: request.id.clone(), about, aside: None, bytes };
                return is_put.map(|()| open()).map_err(|_| busy());
            }
            Recipient::Of(id, _) => (vec![id], not_offered(method)),
            Recipient::None => (Vec::new(), not_in_a_call(method)),
            Recipient::Crossing(id) => (vec![id], crossing(method)),
            Recipient::TaskOfOther => (Vec::new(), about_task(method)),
            Recipient::Unclear => {
                let refusal = ambiguous(method, self.pending.paused_since());
                (self.pending.handler_events().map(|(id, _)| id).collect(), refusal)
            }
        };
        let asked = self.asides.forward(request, refusal);
        for updates in self.pending.handler_events().filter_map(|(_, it)| it.updates.as_ref()) {
            let _ = updates.send(match asked {
                Ok(_) => CallEvent::RequestDeferred,
                Err(_) => CallEvent::RequestRefused,
            });
        }
        let (id, about) = (request.id.clone(), concerned);
        let bytes = bytes_of(request);
        asked.map(|aside| OpenServerRequest { id, about, aside: Some(aside), bytes })
    }
}

/// Size of the parameters in bytes.
fn bytes_of(request: &Request) -> usize {
    request.params.as_ref().map_or(0, |params| params.bytes().len())
}

/// Whether the client side sends requests of this method.
fn is_ours(method: &str) -> bool {
    matches!(method, "server/discover" | "initialize")
        || method.starts_with("tools/")
        || method.starts_with("prompts/")
        || method.starts_with("resources/")
}

fn busy() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "no client can respond now")
}

/// The error for a server request that may be about any of several calls.
///
/// It applies even if all but one of them wait for input already: a server may send a second
/// request before the first has a response, and no client receives a request that may be for
/// another.
fn ambiguous(method: &str, asked_since: Option<Instant>) -> RpcError {
    let others = asked_since.map_or_else(String::new, |since| {
        let seconds = since.elapsed().as_secs();
        format!(
            "; one of them has waited for {seconds} s for its client to answer another question"
        )
    });
    let message = format!(
        "`{method}` is refused: several requests are in flight, and it does not say which of them \
         it belongs to{others}; {ADVICE}"
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}

/// The error for a server request that may be about a call of another client.
fn crossing(method: &str) -> RpcError {
    let message = format!(
        "`{method}` is refused: it does not say which request it belongs to, and a request of \
         another client ended a moment ago, is in flight, or was given up without an answer (without \
         a session, each request is of another client); {ADVICE}"
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}

/// The error for a server request about a task whose client cannot be reached.
fn about_task(method: &str) -> RpcError {
    let message = format!(
        "`{method}` is refused: it is about a task, and the client of the task has no request in \
         flight, or several; {ADVICE}"
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}

fn not_in_a_call(method: &str) -> RpcError {
    let message = format!("this client does not offer `{method}` outside of a request; {ADVICE}");
    RpcError::new(code::METHOD_NOT_FOUND, &message)
}
