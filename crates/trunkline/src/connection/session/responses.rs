//! Matches responses of a server to pending requests.

use tokio::time::Instant;
use tracing::debug;

use super::partial_messages::whole_or_cuttable;
use super::past_calls::CallEnd;
use super::{RequestOutcome, Session, SessionEvent};
use crate::connection::request_error::RequestError;
use crate::error::Error;
use crate::message::{Response, RpcError};

impl Session {
    /// Fails a request that received an empty reply. After several in a row, the session is dead.
    pub(super) fn on_empty_reply(&mut self, id: u64, error: Error) -> Option<SessionEvent> {
        let is_alone = self.pending.len() <= 1 && self.pending.contains(id);
        if !self.empty_replies.is_last(is_alone) {
            self.answer(id, Err(error.into()));
            return None;
        }
        self.unsaid = Some((Some(id), error));
        Some(SessionEvent::SessionExpired)
    }

    pub(super) fn on_response(
        &mut self,
        Response { id, outcome }: Response,
    ) -> Option<SessionEvent> {
        // A response without a pending request is noise; so is a second one.
        let number = id.as_number();
        let Some(id) = number.filter(|id| self.pending.contains(*id)) else {
            number.iter().for_each(|id| self.pending.answered_late(*id));
            return self.on_noise();
        };
        self.empty_replies.reset();
        let outcome = outcome.map_err(RpcError::bounded);
        self.answer(id, whole_or_cuttable(outcome, self.pending.is_cuttable(id)));
        None
    }

    pub(super) fn on_noise(&mut self) -> Option<SessionEvent> {
        self.noise += 1;
        Some(SessionEvent::InvalidMessage)
    }

    pub(super) fn answer(&mut self, id: u64, answer: RequestOutcome) {
        self.last_answer = Instant::now();
        debug!(id, outcome = outcome_name(&answer), "response received");
        let end = CallEnd::with(&answer, self.version.era());
        self.pending.answer(id, answer, end);
        // The response may have arrived on another stream than the request's own.
        self.transport.cancel(id);
    }
}

/// How a request ended, for the log.
fn outcome_name(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        Ok(_) => "result",
        Err(RequestError::Refused(_)) => "error response",
        Err(RequestError::Failed(_)) => "no response",
    }
}
