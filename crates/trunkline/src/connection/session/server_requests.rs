//! Questions of a server: whom they are for, and who answers those that are for nobody.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::pending::{PendingRequest, Recipient};
use super::{Session, SessionEvent};
use crate::config::escape_control;
use crate::connection::handler::{
    CallEvent, CallHandler, ServerRequest, answer_within, not_offered,
};
use crate::error::{Error, ErrorKind};
use crate::message::{Id, Message, Notification, Raw, Request, Response, RpcError};
use crate::protocol::{Era, code};
use crate::transport::{MessageKind, OutboundMessage};

/// Questions that belong to no request and are being answered at the same time.
const MAX_ASIDES: usize = 64;

/// Questions of one server that may be open at the same time: each is about a call, and a call seldom
/// has two.
const MAX_OPEN: usize = 1024;

/// Bytes of them. Most are a form; one that asks for a completion may bring a whole conversation.
const MAX_OPEN_BYTES: usize = 32 * 1024 * 1024;

/// What can be done about a question that cannot be led to a caller.
const ADVICE: &str = "`share: \"per-client\"` gives each client its own process";

/// A question that the server waits for an answer to.
pub(super) struct OpenServerRequest {
    id: Id,
    /// The requests for the sake of which it may have been asked.
    about: Vec<u64>,
    /// Whoever answers it, if it is not the one who made the only such request.
    aside: Option<AbortHandle>,
    /// Bytes of what it says.
    bytes: usize,
}

/// Questions that belong to no request, and whoever answers them, if anybody does.
pub(super) struct UnboundRequests {
    handler: Option<Arc<dyn CallHandler>>,
    /// How long each may take.
    bound: Duration,
    /// Apart from the conversation, which goes on meanwhile. They end with it.
    answering: JoinSet<Response>,
}

impl UnboundRequests {
    pub(super) fn new(handler: Option<Arc<dyn CallHandler>>, bound: Duration) -> Self {
        Self { handler, bound, answering: JoinSet::new() }
    }

    /// The next answer; waits for ever if nothing was asked.
    pub(super) async fn next(&mut self) -> Response {
        loop {
            match self.answering.join_next().await {
                Some(Ok(answered)) => return answered,
                // Whoever need not answer any more does not.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// Lets the attendant answer a question, or says why nobody does.
    fn forward(&mut self, request: &Request, refusal: RpcError) -> Result<AbortHandle, RpcError> {
        let Some(handler) = &self.handler else { return Err(refusal) };
        if self.answering.len() >= MAX_ASIDES {
            return Err(busy());
        }
        let (handler, Request { id, method, params }) = (Arc::clone(handler), request.clone());
        let bound = self.bound;
        Ok(self.answering.spawn(async move {
            let answer = answer_within(bound, &*handler, ServerRequest { method, params });
            let outcome = match AssertUnwindSafe(answer).catch_unwind().await {
                Ok(outcome) => outcome.unwrap_or_else(|late| Err(late.into())),
                Err(_) => Err(RpcError::new(code::INTERNAL_ERROR, "answering this panicked")),
            };
            Response { id, outcome }
        }))
    }
}

impl Session {
    /// Passes a question of the server on to whoever it is for, or refuses it.
    pub(super) fn on_server_request(
        &mut self,
        request: Request,
        about: Option<u64>,
    ) -> Option<SessionEvent> {
        // A program such as `cat` sends back what it is sent.
        let ours = request.id.as_number().filter(|id| self.pending.contains(*id));
        if let Some(id) = ours.filter(|_| is_ours(&request.method)) {
            let message = "it repeats what it is sent, which no MCP server does";
            self.answer(id, Err(Error::new(ErrorKind::ProtocolViolation, message)));
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

    /// Ends the request on whose stream a server of the newer era sent a request. Over HTTP that era has no
    /// way to answer it, and the server would wait until the deadline. Over stdio it is answered as in the
    /// older era, which every server that sends one reads.
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
                // Deferred, so that a caller that tries again finds a connection that can answer.
                self.unsaid = Some((Some(id), error));
                Some(SessionEvent::UnanswerableRequest)
            }
            None => {
                self.noise += 1;
                None
            }
        }
    }

    /// Whether another question may be open, after those are forgotten that nobody answers any more:
    /// whoever was asked for the sake of a request does not once that is over; nor does whoever panics.
    fn has_room_for(&mut self, request: &Request) -> bool {
        self.open.retain(|it| match it.aside {
            Some(_) => !self.asides.answering.is_empty(),
            None => it.about.iter().any(|id| self.pending.contains(*id)),
        });
        let bytes: usize = self.open.iter().map(|it| it.bytes).sum();
        self.open.len() < MAX_OPEN && bytes + bytes_of(request) <= MAX_OPEN_BYTES
    }

    /// Remembers a question that somebody thinks about, which takes none of the server's time.
    fn record_open(&mut self, question: OpenServerRequest) {
        question.about.iter().for_each(|id| self.pending.pause_deadline(*id));
        self.open.push(question);
    }

    /// Answers a question that the server asked in this conversation and has not taken back.
    pub(in crate::connection) fn respond(&mut self, session: u64, response: Response) {
        if session == self.number && self.closed(&response.id).is_some() {
            self.send_response(response);
        }
    }

    fn send_response(&mut self, response: Response) {
        let line = Message::Response(response).write();
        self.transport.send(OutboundMessage::new(line, MessageKind::Response));
    }

    /// The question of an id, which is over.
    fn closed(&mut self, id: &Id) -> Option<OpenServerRequest> {
        let place = self.open.iter().position(|it| it.id == *id)?;
        let closed = self.open.swap_remove(place);
        closed.about.iter().for_each(|id| self.pending.resume_deadline(*id));
        Some(closed)
    }

    /// Ends a question that the server takes back, and says whether it does.
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

    /// Passes a question on to somebody who thinks about it.
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
            Recipient::Nobody => (Vec::new(), not_in_a_call(method)),
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

/// Bytes of what a question says.
fn bytes_of(request: &Request) -> usize {
    request.params.as_ref().map_or(0, |params| params.bytes().len())
}

/// Whether we send requests of this method.
fn is_ours(method: &str) -> bool {
    matches!(method, "server/discover" | "initialize")
        || method.starts_with("tools/")
        || method.starts_with("prompts/")
        || method.starts_with("resources/")
}

fn busy() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "nobody can answer now")
}

/// The refusal of a question that may be about any of several requests.
///
/// Also if all but one of them wait for an answer already: a server may ask a second time before the
/// first question is answered, and nobody is shown what may be for somebody else.
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

/// The refusal of a request of the server that may be about a request of another client.
fn crossing(method: &str) -> RpcError {
    let message = format!(
        "`{method}` is refused: it does not say which request it belongs to, and a request of \
         another client ended a moment ago, is in flight, or was given up without an answer (without \
         a session, each request is of another client); {ADVICE}"
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}

/// The refusal of a request of the server about a task whose client cannot be asked.
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
