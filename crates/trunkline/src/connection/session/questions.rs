//! Questions of a server: whom they are for, and who answers those that are for nobody.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::pending::{Waiting, Whose};
use super::{Generation, Session};
use crate::connection::attendant::{Attendant, Question, Update, answer_within, not_offered};
use crate::connection::generation::empty;
use crate::error::{Error, ErrorKind};
use crate::message::{Request, Response, RpcError, code};

/// Questions that belong to no request and are being answered at the same time.
const MAX_ASIDES: usize = 64;

/// What can be done about a question that cannot be led to a caller.
const ADVICE: &str = "`share: \"per-client\"` gives each client its own process";

/// Questions that belong to no request, and whoever answers them, if anybody does.
pub(super) struct Asides {
    attendant: Option<Arc<dyn Attendant>>,
    /// How long each may take.
    bound: Duration,
    /// Apart from the conversation, which goes on meanwhile. They end with it.
    answering: JoinSet<(Vec<u64>, Response)>,
}

impl Asides {
    pub(super) fn new(attendant: Option<Arc<dyn Attendant>>, bound: Duration) -> Self {
        Self { attendant, bound, answering: JoinSet::new() }
    }

    /// The next answer, and the requests that the question may have been about; waits for ever if
    /// nothing was asked.
    pub(super) async fn next(&mut self) -> (Vec<u64>, Response) {
        loop {
            match self.answering.join_next().await {
                Some(Ok(answered)) => return answered,
                // Whoever panics does not answer.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// Lets the attendant answer a question, or says why nobody does.
    fn ask(&mut self, request: &Request, about: &[u64], refusal: RpcError) -> Result<(), RpcError> {
        let Some(attendant) = &self.attendant else { return Err(refusal) };
        if self.answering.len() >= MAX_ASIDES {
            return Err(busy());
        }
        let (attendant, Request { id, method, params }) = (Arc::clone(attendant), request.clone());
        let (about, bound) = (about.to_vec(), self.bound);
        self.answering.spawn(async move {
            let outcome = answer_within(bound, &*attendant, Question { method, params }).await;
            (about, Response { id, outcome: outcome.unwrap_or_else(|late| Err(late.into())) })
        });
        Ok(())
    }
}

impl Session {
    /// Passes a question of the server on to whoever it is for, or refuses it.
    pub(super) fn asked(&mut self, request: Request, about: Option<u64>) {
        // A program such as `cat` sends back what it is sent.
        let ours = request.id.as_number().filter(|id| self.pending.contains(*id));
        if let Some(id) = ours.filter(|_| is_ours(&request.method)) {
            let message = "it repeats what it is sent, which no MCP server does";
            return self.answer(id, Err(Error::new(ErrorKind::NotMcp, message)));
        }
        if self.generation == Generation::Modern {
            // That generation has no requests of servers, and no answers to them.
            self.noise += 1;
            return;
        }
        if &*request.method == "ping" {
            let response = Response { id: request.id, outcome: Ok(empty()) };
            return self.respond(self.number, &[], response);
        }
        match self.passed_on(&request, about) {
            // Whoever thinks about it takes none of the server's time.
            Ok(concerned) => concerned.iter().for_each(|id| self.pending.asked(*id)),
            Err(refusal) => {
                let response = Response { id: request.id, outcome: Err(refusal) };
                self.respond(self.number, &[], response);
            }
        }
    }

    /// Passes a question on, and says for the sake of which requests it may have been asked.
    fn passed_on(&mut self, request: &Request, about: Option<u64>) -> Result<Vec<u64>, RpcError> {
        let method = &request.method;
        let (concerned, refusal) = match self.pending.whose(about) {
            Whose::Of(id, Waiting { updates: Some(updates), .. }) => {
                let asked = Update::Asked { session: self.number, request: request.clone() };
                let weight = asked.weight();
                let is_put = updates.send_weighing(asked, weight);
                return is_put.map(|()| vec![id]).map_err(|_| busy());
            }
            Whose::Of(id, _) => (vec![id], not_offered(method)),
            Whose::Nobody => (Vec::new(), unasked(method)),
            Whose::Unclear => {
                let refusal = unclear(method, self.pending.asked_since());
                (self.pending.attended().map(|(id, _)| id).collect(), refusal)
            }
        };
        let asked = self.asides.ask(request, &concerned, refusal);
        for updates in self.pending.attended().filter_map(|(_, it)| it.updates.as_ref()) {
            let _ = updates.send(match asked {
                Ok(()) => Update::AskedAside,
                Err(_) => Update::PassedOver,
            });
        }
        asked.map(|()| concerned)
    }
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
fn unclear(method: &str, asked_since: Option<Instant>) -> RpcError {
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

fn unasked(method: &str) -> RpcError {
    let message = format!("this client does not offer `{method}` outside of a request; {ADVICE}");
    RpcError::new(code::METHOD_NOT_FOUND, &message)
}
