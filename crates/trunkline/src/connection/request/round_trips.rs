//! A request in as many rounds as its server needs. Between two rounds things may have changed, so that
//! whoever has looked at what is asked for can look again.

use tokio::time::Instant;

use super::{InputRequired, OutgoingRequest, TimeBudget};
use crate::connection::Connection;
use crate::connection::handler::{CallHandler, ServerRequest, answer_within};
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, RpcError};
use crate::protocol::ProtocolVersion;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 16;

/// A request that is being made.
pub(crate) struct RoundTrips<'c> {
    connection: &'c Connection,
    handler: &'c dyn CallHandler,
    /// What is asked in this round.
    ask: OutgoingRequest,
    /// What was asked first: what the server needs beside that is said anew in each round.
    first: Option<Raw>,
    budget: TimeBudget,
    rounds: usize,
    /// Whether this round is made again because the server did not look at it.
    is_again: bool,
}

/// What came of a round.
pub(crate) enum RoundOutcome {
    /// The answer.
    Last(Result<Raw, RpcError>),
    /// Another one is to be made.
    Another,
}

impl Connection {
    /// Asks the server something and stays in conversation with it until it has answered: what it
    /// tells and asks meanwhile goes to the attendant, in either generation of the protocol. With
    /// [`InputRequired::Return`], an answer that asks for more is an answer too.
    pub async fn request_with(
        &self,
        ask: OutgoingRequest,
        handler: &dyn CallHandler,
    ) -> Result<Result<Raw, RpcError>, Error> {
        let mut round_trips = RoundTrips::begin(self, ask, handler);
        loop {
            if let RoundOutcome::Last(answer) = round_trips.round().await? {
                return Ok(answer);
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

    /// Makes the next rounds only with this edition of the server's tools.
    pub(crate) fn expect_revision(&mut self, edition: u64) {
        self.ask.within = Some(edition);
    }

    /// Makes a round.
    pub(crate) async fn round(&mut self) -> Result<RoundOutcome, Error> {
        let (connection, handler) = (self.connection, self.handler);
        let answer = connection.request_once(&self.ask, &mut self.budget, Some(handler)).await;
        if !self.is_again && connection.is_worth_retry(&self.ask, &answer).await {
            self.is_again = true;
            return Ok(RoundOutcome::Another);
        }
        match answer? {
            Ok(result) if self.is_input_required(&result)? => self.resolve_inputs(&result).await,
            answer => Ok(RoundOutcome::Last(answer)),
        }
    }

    /// Whether a result asks for more, and it is on us to say it.
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

    /// Gets what the server asked for, to ask once more with it; or the attendant's refusal to say it.
    async fn resolve_inputs(&mut self, result: &Raw) -> Result<RoundOutcome, Error> {
        self.rounds += 1;
        if self.rounds >= MAX_ROUNDS {
            let message = format!("it asked for more {MAX_ROUNDS} times and did not answer");
            return Err(self.protocol_violation(&message));
        }
        let [questions, state] = result.get_all(["inputRequests", "requestState"]);
        let mut answers = Raw::empty_object();
        for (key, question) in questions.map(|questions| questions.members()).unwrap_or_default() {
            match self.answer(&question).await? {
                Ok(answer) => answers = answers.with(&key, &answer),
                Err(refusal) => {
                    self.handler.on_request_declined(&refusal);
                    return Ok(RoundOutcome::Last(Err(refusal)));
                }
            }
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

    /// What the attendant says to a question.
    async fn answer(&mut self, question: &Raw) -> Result<Result<Raw, RpcError>, Error> {
        let [method, params] = question.get_all(["method", "params"]);
        let method = method.as_ref().and_then(Raw::as_str).unwrap_or_default();
        let question = ServerRequest { method: method.into(), params };
        let server = &self.connection.server;
        let question_timeout = self.connection.behaviour().timeouts.question;
        let bound = question_timeout.min(self.budget.questions);
        let begin = Instant::now();
        let answer = answer_within(bound, self.handler, question).await;
        self.budget.questions = self.budget.questions.saturating_sub(begin.elapsed());
        answer.map_err(|late| Error::from(late).of(&server.name))
    }

    fn protocol_violation(&self, message: &str) -> Error {
        Error::new(ErrorKind::ProtocolViolation, message).of(&self.connection.server.name)
    }
}
