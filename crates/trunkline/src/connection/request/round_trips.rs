//! A request in as many rounds as its server needs. Between two rounds things may have changed, so that
//! whoever has looked at what is asked for can look again.

use tokio::time::Instant;

use super::{Ask, Budget, Rounds};
use crate::connection::Connection;
use crate::connection::handler::{CallHandler, Question, answer_within};
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, RpcError};
use crate::protocol::ProtocolVersion;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 16;

/// A request that is being made.
pub(crate) struct Conversing<'c> {
    connection: &'c Connection,
    attendant: &'c dyn CallHandler,
    /// What is asked in this round.
    ask: Ask,
    /// What was asked first: what the server needs beside that is said anew in each round.
    first: Option<Raw>,
    budget: Budget,
    rounds: usize,
    /// Whether this round is made again because the server did not look at it.
    is_again: bool,
}

/// What came of a round.
pub(crate) enum Round {
    /// The answer.
    Last(Result<Raw, RpcError>),
    /// Another one is to be made.
    Another,
}

impl Connection {
    /// Asks the server something and stays in conversation with it until it has answered: what it
    /// tells and asks meanwhile goes to the attendant, in either generation of the protocol. With
    /// [`Rounds::Passed`], an answer that asks for more is an answer too.
    pub async fn converse(
        &self,
        ask: Ask,
        attendant: &dyn CallHandler,
    ) -> Result<Result<Raw, RpcError>, Error> {
        let mut conversing = Conversing::begin(self, ask, attendant);
        loop {
            if let Round::Last(answer) = conversing.round().await? {
                return Ok(answer);
            }
        }
    }
}

impl<'c> Conversing<'c> {
    pub(crate) fn begin(
        connection: &'c Connection,
        ask: Ask,
        attendant: &'c dyn CallHandler,
    ) -> Self {
        let (first, budget) = (ask.params.clone(), Budget::of(connection, &ask));
        Self { connection, attendant, ask, first, budget, rounds: 0, is_again: false }
    }

    /// Makes the next rounds only with this edition of the server's tools.
    pub(crate) fn within(&mut self, edition: u64) {
        self.ask.within = Some(edition);
    }

    /// Makes a round.
    pub(crate) async fn round(&mut self) -> Result<Round, Error> {
        let (connection, attendant) = (self.connection, self.attendant);
        let answer = connection.once(&self.ask, &mut self.budget, Some(attendant)).await;
        if !self.is_again && connection.is_worth_another(&self.ask, &answer).await {
            self.is_again = true;
            return Ok(Round::Another);
        }
        match answer? {
            Ok(result) if self.needs_more(&result)? => self.answer_questions(&result).await,
            answer => Ok(Round::Last(answer)),
        }
    }

    /// Whether a result asks for more, and it is on us to say it.
    fn needs_more(&self, result: &Raw) -> Result<bool, Error> {
        if !self.connection.shadow.speaks(ProtocolVersion::MODERN) {
            return Ok(false);
        }
        let kind = result.get("resultType");
        match kind.as_ref().and_then(Raw::as_str).as_deref() {
            None | Some("complete" | "task") => Ok(false),
            Some("input_required") => Ok(self.ask.rounds == Rounds::Driven),
            Some(_) => Err(self.not_mcp("its answer is of a kind that is not known")),
        }
    }

    /// Gets what the server asked for, to ask once more with it; or the attendant's refusal to say it.
    async fn answer_questions(&mut self, result: &Raw) -> Result<Round, Error> {
        self.rounds += 1;
        if self.rounds >= MAX_ROUNDS {
            let message = format!("it asked for more {MAX_ROUNDS} times and did not answer");
            return Err(self.not_mcp(&message));
        }
        let [questions, state] = result.get_all(["inputRequests", "requestState"]);
        let mut answers = Raw::empty_object();
        for (key, question) in questions.map(|questions| questions.members()).unwrap_or_default() {
            match self.answer(&question).await? {
                Ok(answer) => answers = answers.with(&key, &answer),
                Err(refusal) => {
                    self.attendant.ended_by(&refusal);
                    return Ok(Round::Last(Err(refusal)));
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
        Ok(Round::Another)
    }

    /// What the attendant says to a question.
    async fn answer(&mut self, question: &Raw) -> Result<Result<Raw, RpcError>, Error> {
        let [method, params] = question.get_all(["method", "params"]);
        let method = method.as_ref().and_then(Raw::as_str).unwrap_or_default();
        let question = Question { method: method.into(), params };
        let server = &self.connection.server;
        let question_timeout = self.connection.behaviour().timeouts.question;
        let bound = question_timeout.min(self.budget.questions);
        let begin = Instant::now();
        let answer = answer_within(bound, self.attendant, question).await;
        self.budget.questions = self.budget.questions.saturating_sub(begin.elapsed());
        answer.map_err(|late| Error::from(late).of(&server.name))
    }

    fn not_mcp(&self, message: &str) -> Error {
        Error::new(ErrorKind::NotMcp, message).of(&self.connection.server.name)
    }
}
