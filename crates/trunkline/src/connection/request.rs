//! Requests to a server, from the caller's side: how long they may take, who answers what the server
//! asks in return, and what is tried a second time.

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
use super::session::{QUESTIONS, RequestOutcome, SessionRequest, closed_error, wait_until};
use super::state::error_context::with_stderr_lines;
use super::state::status::State;
use crate::channel::{Receiver, bounded_bytes};
use crate::config::Restart;
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::{Raw, RpcError};
use crate::principal::Requester;
use crate::protocol::code;
use input_requests::InputResponses;

/// What a server may have said of a request before its caller heard any of it.
const MAX_UPDATES: usize = 1024;

/// The same in bytes. A caller may not hear anything for minutes, while it is asked something.
const MAX_UPDATE_BYTES: usize = 8 * 1024 * 1024;

/// A request to a server.
#[derive(Clone, Debug)]
pub struct OutgoingRequest {
    /// What is asked.
    pub method: Arc<str>,
    /// With what: an object.
    pub params: Option<Raw>,
    /// How long the answer may take, if not as long as the server's `timeouts.call`, which is the
    /// most in any case. The time in which a question of the server waits for its answer is not
    /// counted: that has a bound of its own, `timeouts.question`, for each question and six times
    /// that for all of them.
    pub timeout: Option<Duration>,
    /// The time from which `timeout` counts, if somebody has waited before. The default is the time at
    /// which the request is made.
    pub since: Option<std::time::Instant>,
    /// Who goes on when the server needs more before it can answer.
    pub rounds: InputRequired,
    /// The edition of the server's tools with which alone it is made, as [`Connection::tools_revision`] says,
    /// for those who have looked at them: in another they may be others.
    pub within: Option<u64>,
    /// The client it is made for. The default is the host itself.
    pub requester: Requester,
}

/// Who goes on when a modern server answers that it needs more before it can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputRequired {
    /// The connection: the attendant is asked, and the server asked again with what they say.
    #[default]
    Resolve,
    /// The caller: such an answer is returned as it is.
    Return,
}

impl OutgoingRequest {
    /// A request that may take as long as any.
    pub fn new(method: &str, params: Option<Raw>) -> Self {
        Self {
            method: method.into(),
            params,
            timeout: None,
            since: None,
            rounds: InputRequired::Resolve,
            within: None,
            requester: Requester::default(),
        }
    }

    fn is_tool_call(&self) -> bool {
        &*self.method == "tools/call"
    }
}

impl Connection {
    /// Asks the server something, starting it if it does not run. Dropping the future forgets the
    /// request and tells the server.
    ///
    /// What comes back is what the server said: a result of the modern generation may say that it
    /// needs more before it can answer. [`request_with`](Self::request_with) sees to that.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Result<Raw, RpcError>, Error> {
        let ask = OutgoingRequest::new(method, params);
        let mut budget = TimeBudget::of(self, &ask);
        let answer = self.request_once(&ask, &mut budget, None).await;
        match self.is_worth_retry(&ask, &answer).await {
            true => self.request_once(&ask, &mut budget, None).await,
            false => answer,
        }
    }

    /// Whether the server did not look at a request, and will if it is made once more.
    pub(super) async fn is_worth_retry(
        &self,
        ask: &OutgoingRequest,
        answer: &RequestOutcome,
    ) -> bool {
        match answer {
            // A new session can.
            Err(error) => error.kind() == ErrorKind::SessionExpired,
            Ok(Err(error)) if error.code() == code::HEADER_MISMATCH && ask.is_tool_call() => {
                // The arguments it wants repeated are other ones by now.
                self.published.is_stale(ItemKind::Tool);
                Box::pin(self.list_fresh(ItemKind::Tool)).await.is_ok()
            }
            Ok(Err(error)) => requires_modern(error),
            Ok(Ok(_)) => false,
        }
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
        self.send_command(Command::Request(SessionRequest {
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
        }))
        .await?;
        let answer = match (handler, inbox) {
            (Some(handler), Some(inbox)) => wait.handle_until_response(handler, inbox).await,
            _ => wait.answer().await,
        };
        // Time that the attendant takes to answer is not the server's.
        budget.consume(begin.elapsed().saturating_sub(wait.thinking.so_far()));
        answer.map_err(|error| {
            // What was not sent has not failed.
            if error.kind() != ErrorKind::Stale {
                self.published.call_failed();
            }
            self.explained(error, ask)
        })
    }

    /// How long a request may take once the server has it.
    fn timeout(&self, ask: &OutgoingRequest) -> Duration {
        let bound = self.behaviour().timeouts.call;
        let spent = ask.since.map_or(Duration::ZERO, |since| since.elapsed());
        ask.timeout.map_or(bound, |timeout| timeout.saturating_sub(spent).min(bound))
    }

    /// How long the server may take to start, if it does not run: once at once, and once more if
    /// it is between two attempts.
    pub(super) fn timeout_with_start(&self) -> Duration {
        let behaviour = self.behaviour();
        let start = behaviour.timeouts.connect + behaviour.timeouts.handshake;
        match (self.published.state(), behaviour.restart) {
            (State::Ready, _) => Duration::ZERO,
            (State::Failed, Restart::OnFailure(backoff)) => start + backoff.max_delay,
            _ => start,
        }
    }

    /// An error with whose it is and, for a call that took too long, how long that is.
    fn explained(&self, error: Error, ask: &OutgoingRequest) -> Error {
        // An error that names its server already is about its start, and one with advice about a
        // question, not about the call.
        let is_late = error.kind() == ErrorKind::TimedOut
            && error.server().is_none()
            && error.hint().is_none();
        let error = if is_late { self.timeout_error(ask) } else { error };
        error.of(&self.server.name)
    }

    /// That the time of a request is over, and which part of it took that long.
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

/// How long a request may still take, over all its rounds.
pub(super) struct TimeBudget {
    /// The start of the server, if it does not run.
    start: Duration,
    call: Duration,
    /// What the server asks between rounds, all of it together.
    pub(super) questions: Duration,
}

impl TimeBudget {
    pub(super) fn of(connection: &Connection, ask: &OutgoingRequest) -> Self {
        // Whoever says how long it may take means all of it.
        let start = match ask.timeout {
            Some(_) => Duration::ZERO,
            None => connection.timeout_with_start(),
        };
        let questions = connection.behaviour().timeouts.question * QUESTIONS;
        Self { start, call: connection.timeout(ask), questions }
    }

    /// Takes off what was used: of the time for the start first.
    fn consume(&mut self, used: Duration) {
        let of_call = used.saturating_sub(self.start);
        self.start = self.start.saturating_sub(used);
        self.call = self.call.saturating_sub(of_call);
    }
}

/// Somebody's wait for an answer. Dropping it forgets the request and tells the server.
struct PendingCall<'c> {
    id: u64,
    answer: oneshot::Receiver<RequestOutcome>,
    connection: &'c Connection,
    handler: Option<&'c dyn CallHandler>,
    /// When the answer is too late, while the task may not have seen the request yet.
    deadline: Option<Instant>,
    thinking: PausedTime,
    is_answered: bool,
}

/// The time in which questions of the server are thought about.
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
    /// Waits for the answer, and not a moment longer than it may take.
    async fn answer(&mut self) -> RequestOutcome {
        // The task watches the deadline; this catches the time before it has seen the request.
        let answer = tokio::select! {
            answer = &mut self.answer => Some(answer),
            () = wait_until(self.deadline) => None,
        };
        self.finish(answer)
    }

    /// Waits for the answer while somebody attends to what the server says.
    async fn handle_until_response(
        &mut self,
        handler: &dyn CallHandler,
        mut inbox: Receiver<CallEvent>,
    ) -> RequestOutcome {
        let bound = self.connection.behaviour().timeouts.question;
        let mut answers = InputResponses::new(handler, bound);
        loop {
            tokio::select! {
                biased;
                update = inbox.recv() => match update {
                    CallEvent::Notification(notification) => handler.on_notification(&notification),
                    // Whoever says so has the request, and has stopped its time.
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
                answer.unwrap_or_else(|_| Err(closed_error()))
            }
            None => Err(Error::new(ErrorKind::TimedOut, "it did not answer in time")),
        }
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let last_words = self.handler.and_then(CallHandler::cancel_params);
            let _ = self.connection.abandoned.send(CancelledRequest { id: self.id, last_words });
        }
    }
}
