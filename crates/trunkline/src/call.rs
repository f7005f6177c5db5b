//! The call, in one straight line: a route, a slot, the server's answer, an outcome (CALL-1 … CALL-7).

mod completion;
mod failure;
mod keeping;
mod outcome;
mod untrusted;
mod updates;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub use completion::{Completion, CompletionOf};
pub use failure::{CallError, CallErrorKind};
pub use keeping::ArtifactFolder;
pub use outcome::Outcome;
pub use updates::TaskUpdates;

use untrusted::Cleaning;

use crate::catalog::{Catalog, Entry};
use crate::config::{Server, Trust};
use crate::connection::{Ask, Attendant, Connection, LogLevel, Rounds, Unattended};
use crate::content::{check_arguments, with_addresses};
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, RpcError};

/// How often a call that waits for its turn says so.
const REMINDER: Duration = Duration::from_secs(5);

/// How a call is made.
#[derive(Clone, Copy)]
pub struct CallOptions<'c> {
    /// Who attends to what the server says and asks before it answers. What an untrusted server
    /// says and asks is without what deceives; it is not to be believed for that.
    pub attendant: &'c dyn Attendant,
    /// How long the call may take, if not as long as the configuration says. The time in which a
    /// question of the server waits for the attendant is not counted; see
    /// [`Attendant::asked`].
    pub timeout: Option<Duration>,
    /// Whether arguments are checked against the schema of the tool before it is called (CALL-6).
    pub checks_arguments: bool,
    /// Where binary blocks of the result are kept as files; else they stay in it.
    pub artifacts: Option<&'c ArtifactFolder>,
    /// Who asks again when the server needs more before it can answer.
    pub rounds: Rounds,
    /// On whose behalf it is made, if there are several.
    pub client: Option<&'c Client>,
}

/// Somebody on whose behalf a host is used, if there are several.
#[derive(Clone)]
pub struct Client {
    /// Who it is: the same for everything the same client asks for.
    pub id: Arc<str>,
    /// Whom it belongs to. Where there is no room for more servers, one of whoever has most makes room.
    pub owner: Arc<str>,
    /// What it offers to servers, as the protocol writes it.
    pub capabilities: Raw,
    /// Who answers what its own servers ask outside of any call.
    pub attendant: Option<Arc<dyn Attendant>>,
    /// How much of the log of its own servers it wants.
    pub log_level: Option<LogLevel>,
    /// After how long without a call its own servers are ended; never, if nothing is said, before
    /// it is released.
    pub idle: Option<Duration>,
}

impl Default for CallOptions<'_> {
    fn default() -> Self {
        Self {
            attendant: &Unattended,
            timeout: None,
            checks_arguments: false,
            artifacts: None,
            rounds: Rounds::Driven,
            client: None,
        }
    }
}

/// Something this caller may have, bound to the connection that serves it: resolved once, then
/// called as it is, so that what was shown is what runs.
pub(crate) struct Route<'v> {
    pub(crate) entry: &'v Entry,
    pub(crate) connection: Arc<Connection>,
    /// Whether no other client has that connection.
    pub(crate) is_own: bool,
    pub(crate) server: Arc<Server>,
    /// What says how callers know addresses.
    pub(crate) catalog: &'v Catalog,
    /// What is being read, if something is.
    pub(crate) read: Option<Read>,
}

/// An address that is read, which its server calls otherwise.
pub(crate) struct Read {
    /// As the caller gave it.
    pub(crate) address: String,
    /// In the words of its server.
    pub(crate) own: String,
}

impl Route<'_> {
    /// Calls a tool.
    pub(crate) async fn call(
        &self,
        arguments: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        if !arguments.is_object() {
            return Err(CallError::not_an_object());
        }
        if options.checks_arguments
            && let Some(schema) = self.entry.definition().get("inputSchema")
        {
            check_arguments(&schema, &arguments).map_err(|bad| CallError::arguments(&bad))?;
        }
        let name = Raw::from_string(self.entry.name());
        let params = empty().with("name", &name).with("arguments", &arguments);
        self.ask("tools/call", params, options).await
    }

    /// Asks the server for something, within its bounds, and makes an outcome of the answer.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let (_slot, waited) = self.slot(options).await?;
        // Whoever says how long it may take means all of it.
        let timeout = options.timeout.map(|own| own.saturating_sub(waited));
        let rounds = options.rounds;
        let ask = Ask { timeout, rounds, ..Ask::new(method, Some(params)) };
        let cleaning = Cleaning(options.attendant);
        let attendant: &dyn Attendant = match self.server.trust {
            Trust::Trusted => options.attendant,
            Trust::Untrusted => &cleaning,
        };
        let answer = self.connection.converse(ask, attendant).await;
        let answer = answer.map_err(|error| self.failed(error))?;
        let result = answer.map_err(|error| self.refused(&error))?;
        if !result.is_object() {
            let message = "its result is not an object, which every result has to be";
            return Err(Error::new(ErrorKind::NotMcp, message).of(&self.server.name).into());
        }
        let exposed = |uri: &str| self.exposed_address(uri);
        let tells_apart = self.read.is_some() || self.catalog.tells_addresses_apart();
        let exposed: Option<Exposed<'_>> = if tells_apart { Some(&exposed) } else { None };
        let outcome = outcome(&result, &self.server, exposed);
        match options.artifacts {
            Some(folder) => Ok(outcome.with_files_in(folder).await),
            None => Ok(outcome),
        }
    }

    /// The server answered with an error.
    fn refused(&self, error: &RpcError) -> CallError {
        // What a server was given may be in what it says of it (SEC-2).
        let words = self.connection.redacted(&error.message());
        CallError::refused(&self.server, error, &words)
    }

    /// The server gave no answer.
    fn failed(&self, error: Error) -> CallError {
        // Another one takes the place of what a client had for itself.
        let is_replaced = self.is_own && self.connection.is_over();
        let may_pass = is_replaced || self.connection.may_pass(error.kind());
        CallError::from(error).that_may_pass(may_pass)
    }

    /// What the caller calls an address of the server, if not as the server does.
    fn exposed_address(&self, uri: &str) -> Option<String> {
        match &self.read {
            Some(read) if read.own == uri => Some(read.address.clone()),
            _ => self.catalog.exposed_address(&self.server.name, uri),
        }
    }

    /// A slot of the server, for as long as the call runs, and how long it was waited for (CALL-7).
    async fn slot(
        &self,
        options: CallOptions<'_>,
    ) -> Result<(Option<OwnedSemaphorePermit>, Duration), Error> {
        let Some(limit) = self.server.behaviour.concurrency else {
            return Ok((None, Duration::ZERO));
        };
        let slots = self.connection.slots(limit);
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            return Ok((Some(slot), Duration::ZERO));
        }
        let begin = Instant::now();
        let bound = self.server.behaviour.timeouts.call;
        let bound = options.timeout.map_or(bound, |own| own.min(bound));
        match timeout(bound, self.turn(slots, options.attendant)).await {
            Ok(slot) => Ok((slot, begin.elapsed())),
            Err(_) => {
                let message = format!("no slot for the call was free within {bound:?}");
                Err(Error::new(ErrorKind::TimedOut, message)
                    .of(&self.server.name)
                    .with_hint("`concurrency` is the number of slots"))
            }
        }
    }

    /// Waits for a slot, and says now and then that somebody does: whoever has it may only begin to
    /// dawdle meanwhile.
    async fn turn(
        &self,
        slots: Arc<Semaphore>,
        attendant: &dyn Attendant,
    ) -> Option<OwnedSemaphorePermit> {
        let mut turn = std::pin::pin!(slots.acquire_owned());
        loop {
            // Nobody else has anything to do with a connection of a client's own.
            if !self.is_own {
                attendant.passed_over();
            }
            if let Ok(slot) = timeout(REMINDER, &mut turn).await {
                return slot.ok();
            }
        }
    }
}

/// How callers know an address of a server, if not as the server does.
type Exposed<'c> = &'c dyn Fn(&str) -> Option<String>;

/// What a server says as callers are to see it: with the addresses they know, and within its bound.
fn outcome(said: &Raw, server: &Server, exposed: Option<Exposed<'_>>) -> Outcome {
    let said = exposed.map_or_else(|| said.clone(), |exposed| with_addresses(said, exposed));
    let bound = usize::try_from(server.behaviour.max_result_bytes).unwrap_or(usize::MAX);
    Outcome::new(&said, &server.name, server.trust, bound)
}

fn empty() -> Raw {
    Raw::empty_object()
}
