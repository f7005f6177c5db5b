//! Requests to a server, from the caller's side: timeouts, handling of server requests, and
//! retries.

mod subscribe;
mod input_requests;
pub(super) mod round_trips;
pub(super) mod list_requests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Connection;
use super::actor::Command;
use super::handler::{CallEvent, CallHandler, CancelledRequest};
use super::handshake::requires_modern;
use super::request_error::{RequestError, late_error};
use super::session::{QUESTIONS, RequestOutcome, SessionRequest, closed_error};
use super::state::error_context::with_stderr_lines;
use super::state::status::State;
use crate::channel::{Receiver, bounded_bytes};
use crate::config::Restart;
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::Raw;
use crate::principal::Requester;
use crate::protocol::code;
use crate::timer::wait_until;
use input_requests::InputResponses;

/// Limit on queued messages of a server about one request.
const MAX_UPDATES: usize = 1024;

/// The same limit in bytes. A caller may receive nothing for minutes, while a server request is
/// handled.
const MAX_UPDATE_BYTES: usize = 8 * 1024 * 1024;

/// A request to a server.
#[derive(Clone, Debug)]
pub struct OutgoingRequest {
    /// The method.
    pub method: Arc<str>,
    /// The parameters: an object.
    pub params: Option<Raw>,
    /// Timeout for the response, if shorter than the server's `timeouts.call`, which always
    /// applies. The time in which a server request is handled is not counted: it has its own limit,
    /// `timeouts.question` for each server request and six times that for all of them.
    pub timeout: Option<Duration>,
    /// The time from which `timeout` counts, if the caller has waited before. The default is the
    /// time of the request.
    pub since: Option<std::time::Instant>,
    /// Handling of an `InputRequiredResult`.
    pub rounds: InputRequired,
    /// The revision of the server's tools that is required, as returned by
    /// [`Connection::tools_revision`], for callers that have checked the tools: in another revision
    /// they may differ.
    pub within: Option<u64>,
    /// The client it is made for. The default is the host itself.
    pub requester: Requester,
    /// Metadata of that client for a modern server, as [`client_meta`](super::client_meta()) returns it. It replaces
    /// members of `_meta` in `params`. The default is what those declare, and then the metadata of the host.
    pub client_meta: Option<Raw>,
}

/// Handling of an `InputRequiredResult` of a modern server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputRequired {
    /// The connection resolves it: the handler is called for each input request, and the request is
    /// retried with the input responses.
    #[default]
    Resolve,
    /// The caller resolves it: the result is returned unchanged.
    Return,
}

impl OutgoingRequest {
    /// A request with the default timeout.
    pub fn new(method: &str, params: Option<Raw>) -> Self {
        Self {
            method: method.into(),
            params,
            timeout: None,
            since: None,
            rounds: InputRequired::Resolve,
            within: None,
            requester: Requester::default(),
            client_meta: None,
        }
    }

    fn is_tool_call(&self) -> bool {
        &*self.method == "tools/call"
    }
}

impl Connection {
    /// Sends a request, starting the server if needed. Dropping the future cancels the request and
    /// notifies the server.
    ///
    /// The result is returned as the server sent it: in the modern era it may be an
    /// `InputRequiredResult`. [`request_with`](Self::request_with) resolves those.
    pub async fn request(&self, method: &str, params: Option<Raw>) -> Result<Raw, RequestError> {
        let ask = OutgoingRequest::new(method, params);
        let mut budget = TimeBudget::of(self, &ask);
        let answer = self.request_once(&ask, &mut budget, None).await;
        match self.is_worth_retry(&ask, &answer).await {
            true => self.request_once(&ask, &mut budget, None).await,
            false => answer,
        }
    }

    /// Whether the server rejected a request without processing it, and a retry may succeed.
    pub(super) async fn is_worth_retry(
        &self,
        ask: &OutgoingRequest,
        answer: &RequestOutcome,
    ) -> bool {
        let refusal = match answer {
            Ok(_) => return false,
            // A retry uses a new session.
            Err(RequestError::Failed(error)) => return error.kind() == ErrorKind::SessionExpired,
            Err(RequestError::Refused(refusal)) => refusal,
        };
        if refusal.code() == code::HEADER_MISMATCH && ask.is_tool_call() {
            // The arguments that have to be repeated in headers have changed.
            self.published.mark_stale(ItemKind::Tool);
            return Box::pin(self.list_fresh(ItemKind::Tool)).await.is_ok();
        }
        requires_modern(refusal)
    }

    pub(super) async fn request_once(
        &self,
        ask: &OutgoingRequest,
        budget: &mut TimeBudget,
        handler: Option<&dyn CallHandler>,
    ) -> RequestOutcome {
        let (reply, answer) = oneshot::channel();
        let (updates, inbox) = match handler {
            Some(_) => {
                let (updates, inbox) = bounded_bytes(MAX_UPDATES, MAX_UPDATE_BYTES);
                (Some(updates), Some(inbox))
            }
            None => (None, None),
        };
        let id = self.ids.next();
        let (begin, patience) = (Instant::now(), budget.call);
        let deadline = begin + patience + budget.start;
        let mut wait = PendingCall {
            id,
            answer,
            connection: self,
            handler,
            deadline: Some(deadline),
            thinking: PausedTime::default(),
            is_answered: false,
        };
        self.send_command(Command::Request(Box::new(SessionRequest {
            id,
            method: ask.method.clone(),
            params: ask.params.clone(),
            within: ask.within,
            deadline,
            patience,
            reply,
            updates,
            wants_progress: handler.is_some_and(CallHandler::wants_progress),
            is_standing: false,
            requester: Some(ask.requester.clone()),
            client_meta: ask.client_meta.clone(),
        })))
        .await?;
        let answer = match (handler, inbox) {
            (Some(handler), Some(inbox)) => wait.handle_until_response(handler, inbox).await,
            _ => wait.answer().await,
        };
        // The time that the handler takes does not count as time of the server.
        budget.consume(begin.elapsed().saturating_sub(wait.thinking.so_far()));
        let failed = |error: Error| {
            // A request that was not sent has not failed.
            if error.kind() != ErrorKind::Stale {
                self.published.call_failed();
            }
            self.explained(error, ask)
        };
        answer.map_err(|error| error.map_failure(failed))
    }

    /// Timeout of a request once the server has received it.
    fn timeout(&self, ask: &OutgoingRequest) -> Duration {
        let bound = self.behaviour().timeouts.call;
        let spent = ask.since.map_or(Duration::ZERO, |since| since.elapsed());
        ask.timeout.map_or(bound, |timeout| timeout.saturating_sub(spent).min(bound))
    }

    /// Timeout for the start of the server, if it does not run, including the delay of a pending
    /// restart.
    pub(super) fn timeout_with_start(&self) -> Duration {
        let behaviour = self.behaviour();
        let start = behaviour.timeouts.connect + behaviour.timeouts.handshake;
        match (self.published.state(), behaviour.restart) {
            (State::Ready, _) => Duration::ZERO,
            (State::Failed, Restart::OnFailure(backoff)) => start + backoff.max_delay,
            _ => start,
        }
    }

    /// Adds the server and, for a call that timed out, the timeout to an error.
    fn explained(&self, error: Error, ask: &OutgoingRequest) -> Error {
        // An error with a server is about its start, and one with a hint about a server request,
        // not about the call.
        let is_late = error.kind() == ErrorKind::TimedOut
            && error.server().is_none()
            && error.hint().is_none();
        let error = if is_late { self.timeout_error(ask) } else { error };
        error.of(&self.server.name)
    }

    /// The error of a request that timed out, with the phase that took too long.
    fn timeout_error(&self, ask: &OutgoingRequest) -> Error {
        let status = self.status();
        let bound = self.behaviour().timeouts.call;
        let own = ask.timeout.filter(|own| *own < bound);
        if matches!(status.state, State::Idle | State::Starting) {
            let within =
                own.map_or(String::new(), |own| format!(" within {own:?}, the time of the call"));
            let error = Error::new(ErrorKind::TimedOut, format!("it was not ready{within}"));
            return with_stderr_lines(error, &status.stderr);
        }
        let message = format!("it did not answer the call within {:?}", own.unwrap_or(bound));
        let error = Error::new(ErrorKind::TimedOut, message);
        if own.is_some() {
            return error;
        }
        let mut hint = "`timeouts.call` is the bound".to_owned();
        if status.noise > 0 {
            hint += "; some of what it wrote was no message, and may have been the answer";
        }
        error.with_hint(hint)
    }
}

/// Remaining time of a request, over all its round trips.
pub(super) struct TimeBudget {
    /// For the start of the server, if it does not run.
    start: Duration,
    call: Duration,
    /// For all input requests together.
    pub(super) questions: Duration,
}

impl TimeBudget {
    pub(super) fn of(connection: &Connection, ask: &OutgoingRequest) -> Self {
        // A timeout of the caller includes the start.
        let start = match ask.timeout {
            Some(_) => Duration::ZERO,
            None => connection.timeout_with_start(),
        };
        let questions = connection.behaviour().timeouts.question * QUESTIONS;
        Self { start, call: connection.timeout(ask), questions }
    }

    /// Subtracts the time used: from the time for the start first.
    fn consume(&mut self, used: Duration) {
        let of_call = used.saturating_sub(self.start);
        self.start = self.start.saturating_sub(used);
        self.call = self.call.saturating_sub(of_call);
    }
}

/// A pending response. Dropping it cancels the request and notifies the server.
struct PendingCall<'c> {
    id: u64,
    answer: oneshot::Receiver<RequestOutcome>,
    connection: &'c Connection,
    handler: Option<&'c dyn CallHandler>,
    /// The deadline, while the actor may not have received the request yet.
    deadline: Option<Instant>,
    thinking: PausedTime,
    is_answered: bool,
}

/// Time spent on handling server requests.
#[derive(Default)]
struct PausedTime {
    before: Duration,
    since: Option<Instant>,
}

impl PausedTime {
    fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    fn end(&mut self) {
        self.before = self.so_far();
        self.since = None;
    }

    fn so_far(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl PendingCall<'_> {
    /// Waits for the response, until the deadline.
    async fn answer(&mut self) -> RequestOutcome {
        // The actor enforces the deadline; this covers the time before it has received the request.
        let answer = tokio::select! {
            answer = &mut self.answer => Some(answer),
            () = wait_until(self.deadline) => None,
        };
        self.finish(answer)
    }

    /// Waits for the response while the handler receives notifications and server requests.
    async fn handle_until_response(
        &mut self,
        handler: &dyn CallHandler,
        mut inbox: Receiver<CallEvent>,
    ) -> RequestOutcome {
        let (server, bound) =
            (&self.connection.server, self.connection.behaviour().timeouts.question);
        let mut answers = InputResponses::new(handler, &server.name, bound);
        loop {
            tokio::select! {
                biased;
                update = inbox.recv() => match update {
                    CallEvent::Notification(notification) => handler.on_notification(&notification),
                    // The session has received the request, and has suspended its deadline.
                    CallEvent::RequestDeferred => self.deadline = None,
                    CallEvent::RequestRefused => handler.on_blocked(),
                    CallEvent::Request { session, request } => {
                        self.deadline = None;
                        self.thinking.begin();
                        answers.begin(session, request);
                    }
                    CallEvent::RequestCancelled(id) => answers.end(&id),
                },
                answer = answers.next() => {
                    if answers.are_finished() {
                        self.thinking.end();
                    }
                    if let Some((session, response)) = answer {
                        let response = Box::new(response);
                        self.connection.send_command(Command::RespondToServer { session, response }).await?;
                    }
                }
                answer = &mut self.answer => return self.finish(Some(answer)),
                () = wait_until(self.deadline) => return self.finish(None),
            }
        }
    }

    fn finish(
        &mut self,
        answer: Option<Result<RequestOutcome, oneshot::error::RecvError>>,
    ) -> RequestOutcome {
        match answer {
            Some(answer) => {
                self.is_answered = true;
                answer.unwrap_or_else(|_| Err(closed_error().into()))
            }
            None => Err(late_error().into()),
        }
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let last_words = self.handler.and_then(CallHandler::cancel_params);
            let cancelled = CancelledRequest { id: self.id, last_words };
            let _ = self.connection.abandoned.send(Box::new(cancelled));
        }
    }
}
