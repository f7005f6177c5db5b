//! Multi-round-trip requests: resolves `InputRequiredResult`s until the final result. The caller
//! can check its authorization again between two rounds.

use tokio::time::Instant;

use super::{InputRequired, OutgoingRequest, TimeBudget};
use crate::connection::Connection;
use crate::connection::handler::{CallHandler, ServerRequest, answer_within};
use crate::connection::request_error::RequestError;
use crate::error::{Error, ErrorKind};
use crate::message::Raw;
use crate::protocol::ProtocolVersion;

/// Limit on rounds of one request.
const MAX_ROUNDS: usize = 16;

/// A request in progress.
pub(crate) struct RoundTrips<'c> {
    connection: &'c Connection,
    handler: &'c dyn CallHandler,
    /// The request of this round.
    ask: OutgoingRequest,
    /// The original parameters, to which each round adds its input responses.
    first: Option<Raw>,
    budget: TimeBudget,
    rounds: usize,
    /// Whether this round is a retry because the server did not process it.
    is_again: bool,
}

/// The outcome of a round without an error.
pub(crate) enum RoundOutcome {
    /// The final result.
    Last(Raw),
    /// Another round is needed.
    Another,
}

impl Connection {
    /// Sends a request and waits for the final response: notifications and server requests go to
    /// the handler, in either era. With [`InputRequired::Return`], an `InputRequiredResult` is
    /// final too.
    pub async fn request_with(
        &self,
        ask: OutgoingRequest,
        handler: &dyn CallHandler,
    ) -> Result<Raw, RequestError> {
        let mut round_trips = RoundTrips::begin(self, ask, handler);
        loop {
            if let RoundOutcome::Last(result) = round_trips.round().await? {
                return Ok(result);
            }
        }
    }
}

impl<'c> RoundTrips<'c> {
    pub(crate) fn begin(
        connection: &'c Connection,
        ask: OutgoingRequest,
        handler: &'c dyn CallHandler,
    ) -> Self {
        let (first, budget) = (ask.params.clone(), TimeBudget::of(connection, &ask));
        Self { connection, handler, ask, first, budget, rounds: 0, is_again: false }
    }

    /// Requires this revision of the server's tools for the next rounds.
    pub(crate) fn expect_revision(&mut self, edition: u64) {
        self.ask.within = Some(edition);
    }

    /// Performs a round.
    pub(crate) async fn round(&mut self) -> Result<RoundOutcome, RequestError> {
        let (connection, handler) = (self.connection, self.handler);
        let answer = connection.request_once(&self.ask, &mut self.budget, Some(handler)).await;
        if !self.is_again && connection.is_worth_retry(&self.ask, &answer).await {
            self.is_again = true;
            return Ok(RoundOutcome::Another);
        }
        let result = answer?;
        match self.is_input_required(&result)? {
            true => self.resolve_inputs(&result).await,
            false => Ok(RoundOutcome::Last(result)),
        }
    }

    /// Whether a result is an `InputRequiredResult` that the connection has to resolve.
    fn is_input_required(&self, result: &Raw) -> Result<bool, Error> {
        if !self.connection.published.speaks(ProtocolVersion::MODERN) {
            return Ok(false);
        }
        let kind = result.get("resultType");
        match kind.as_ref().and_then(Raw::as_str).as_deref() {
            None | Some("complete" | "task") => Ok(false),
            Some("input_required") => Ok(self.ask.rounds == InputRequired::Resolve),
            Some(_) => Err(self.protocol_violation("its answer is of a kind that is not known")),
        }
    }

    /// Collects the input responses for the next round, or returns the refusal of the handler.
    async fn resolve_inputs(&mut self, result: &Raw) -> Result<RoundOutcome, RequestError> {
        self.rounds += 1;
        if self.rounds >= MAX_ROUNDS {
            let message = format!("it asked for more {MAX_ROUNDS} times and did not answer");
            return Err(self.protocol_violation(&message).into());
        }
        let [questions, state] = result.get_all(["inputRequests", "requestState"]);
        let mut answers = Raw::empty_object();
        for (key, question) in questions.map(|questions| questions.members()).unwrap_or_default() {
            let answer = self.answer(&question).await.inspect_err(|error| {
                if let RequestError::Refused(refusal) = error {
                    self.handler.on_request_declined(refusal);
                }
            });
            answers = answers.with(&key, &answer?);
        }
        let params = self.first.clone().unwrap_or_else(Raw::empty_object);
        let mut params = params.with("inputResponses", &answers);
        if let Some(state) = state {
            params = params.with("requestState", &state);
        }
        self.ask.params = Some(params);
        self.is_again = false;
        Ok(RoundOutcome::Another)
    }

    /// Runs the handler for an input request.
    async fn answer(&mut self, question: &Raw) -> Result<Raw, RequestError> {
        let [method, params] = question.get_all(["method", "params"]);
        let method = method.as_ref().and_then(Raw::as_str).unwrap_or_default();
        let server = &self.connection.server;
        let question = ServerRequest { server: server.name.clone(), method: method.into(), params };
        let question_timeout = self.connection.behaviour().timeouts.question;
        let bound = question_timeout.min(self.budget.questions);
        let begin = Instant::now();
        let answer = answer_within(bound, self.handler, question).await;
        self.budget.questions = self.budget.questions.saturating_sub(begin.elapsed());
        let of_server = |error: Error| error.of(&server.name);
        answer.map_err(|error| RequestError::from(error).map_failure(of_server))
    }

    fn protocol_violation(&self, message: &str) -> Error {
        Error::new(ErrorKind::ProtocolViolation, message).of(&self.connection.server.name)
    }
}
