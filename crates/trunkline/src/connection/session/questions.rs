//! Questions of a server: whom they are for, and who answers those that are for nobody.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::pending::{Waiting, Whose};
use super::{Generation, Session};
use crate::connection::attendant::{Attendant, Question, Update, not_offered};
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
    /// Apart from the conversation, which goes on meanwhile. They end with it.
    answering: JoinSet<Response>,
}

impl Asides {
    pub(super) fn new(attendant: Option<Arc<dyn Attendant>>) -> Self {
        Self { attendant, answering: JoinSet::new() }
    }

    /// The next answer; waits for ever if nothing was asked.
    pub(super) async fn next(&mut self) -> Response {
        loop {
            match self.answering.join_next().await {
                Some(Ok(response)) => return response,
                // Whoever panics does not answer.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// Lets the attendant answer a question, or says why nobody does.
    fn ask(&mut self, request: &Request, refusal: RpcError) -> Result<(), RpcError> {
        let Some(attendant) = &self.attendant else { return Err(refusal) };
        if self.answering.len() >= MAX_ASIDES {
            return Err(busy());
        }
        let (attendant, Request { id, method, params }) = (Arc::clone(attendant), request.clone());
        self.answering.spawn(async move {
            Response { id, outcome: attendant.asked(Question { method, params }).await }
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
        let passed = match (&*request.method, self.pending.whose(about)) {
            ("ping", _) => {
                return self
                    .respond(self.number, Response { id: request.id, outcome: Ok(empty()) });
            }
            (_, Whose::Of(Waiting { updates: Some(updates), .. })) => {
                let (session, request) = (self.number, request.clone());
                updates.try_send(Update::Asked { session, request }).map_err(|_| busy())
            }
            (method, Whose::Unclear) => self.asides.ask(&request, unclear(method)),
            (method, Whose::Nobody) => self.asides.ask(&request, unasked(method)),
            (method, Whose::Of(_)) => self.asides.ask(&request, not_offered(method)),
        };
        if let Err(refusal) = passed {
            self.respond(self.number, Response { id: request.id, outcome: Err(refusal) });
        }
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

fn unclear(method: &str) -> RpcError {
    let message = format!(
        "`{method}` is refused: several requests are in flight, and it does not say which of them \
         it belongs to; {ADVICE}"
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}

fn unasked(method: &str) -> RpcError {
    let message = format!("this client does not offer `{method}` outside of a request; {ADVICE}");
    RpcError::new(code::METHOD_NOT_FOUND, &message)
}
