//! The call, in one straight line: a route, a slot, the server's answer, an outcome (CALL-1 … CALL-7).

mod completion;
mod no_result;
mod error;
mod artifacts;
mod outcome;
mod untrusted;
mod task_updates;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

pub use artifacts::ArtifactDir;
pub use completion::{Completion, CompletionRef};
pub use error::{CallError, CallErrorKind};
pub use no_result::NoResult;
pub use outcome::Outcome;
pub use task_updates::TaskUpdates;

use crate::catalog::Entry;
use crate::config::{Server, Trust};
use crate::connection::{
    CallHandler, Connection, InputRequired, LogLevel, NoopHandler, OutgoingRequest, RoundOutcome,
    RoundTrips,
};
use crate::content::{AppPages, ResultKind, rewrite_uris, validate_arguments};
use crate::error::{Error, ErrorKind};
use crate::item::{Item, ItemKind};
use crate::message::{Raw, RpcError};
use crate::principal::{ClientId, FairSlots, Principal, Requester, Slot};
use crate::sanitize::sanitize_json;
use crate::view::View;
use untrusted::SanitizingHandler;

/// How often a server whose tools are others by then is looked at again before it is asked.
const MAX_LOOKS: usize = 3;

/// How often a call that waits for its turn says so.
const REMINDER: Duration = Duration::from_secs(5);

/// Links in one result for which the rules of the caller are asked where they lead. Results of real servers
/// have fewer; any more are written in the form that says whose they are where another server may be meant.
const MAX_LINKS_LOOKED_UP: usize = 256;

/// How a call is made.
#[derive(Clone, Copy)]
pub struct CallOptions<'c> {
    /// Who attends to what the server says and asks before it answers. What an untrusted server
    /// says and asks is without what deceives; it is not to be believed for that.
    pub handler: &'c dyn CallHandler,
    /// How long the call may take, with the start of the server where it does not run. The default is
    /// `timeouts.call`, and the bounds of a start beside it; it is never longer than that. The time in which
    /// a question of the server waits for the attendant is not counted; see [`CallHandler::on_server_request`].
    pub timeout: Option<Duration>,
    /// The time from which `timeout` counts, for callers who have waited already. The default is the time
    /// at which the call is made.
    pub since: Option<Instant>,
    /// Whether arguments are checked against the schema of the tool before it is called (CALL-6).
    pub checks_arguments: bool,
    /// Where binary blocks of the result are kept as files; else they stay in it.
    pub artifacts: Option<&'c ArtifactDir>,
    /// Who asks again when the server needs more before it can answer.
    pub rounds: InputRequired,
    /// On whose behalf it is made, if there are several.
    pub client: Option<&'c ClientContext>,
    /// The capabilities of a caller of the older era, which a server of both eras over HTTP is then spoken
    /// to in.
    pub older_era: Option<&'c Raw>,
    /// The client it is made for, also of servers that all clients share. `None` is the host itself.
    pub requester: Option<&'c Requester>,
}

/// Somebody on whose behalf a host is used, if there are several.
#[derive(Clone)]
pub struct ClientContext {
    /// Who it is: the same for everything the same client asks for.
    pub id: ClientId,
    /// Its principal. Where there is no room for more servers, one of the principal that has most is
    /// ended.
    pub owner: Principal,
    /// What it offers to servers, as the protocol writes it.
    pub capabilities: Raw,
    /// Who answers what its own servers ask outside of any call.
    pub handler: Option<Arc<dyn CallHandler>>,
    /// How much of the log of its own servers it wants.
    pub log_level: Option<LogLevel>,
    /// After how long without a call its own servers are ended; never, if nothing is said, before
    /// it is released.
    pub idle: Option<Duration>,
}

impl Default for CallOptions<'_> {
    fn default() -> Self {
        Self {
            handler: &NoopHandler,
            timeout: None,
            since: None,
            checks_arguments: false,
            artifacts: None,
            rounds: InputRequired::Resolve,
            client: None,
            older_era: None,
            requester: None,
        }
    }
}

impl CallOptions<'_> {
    /// The same for a call that is made now: its time counts from here, unless it counts already.
    pub(crate) fn begun(self) -> Self {
        Self { since: self.since.or_else(|| Some(Instant::now())), ..self }
    }

    /// What is left of the time that the caller has given the call.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let spent = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.timeout.map(|timeout| timeout.saturating_sub(spent))
    }
}

/// Says whether something may be called by the rules of now: they may change while a call waits.
pub(crate) trait Authorizer: Sync {
    fn authorize(&self, view: &View, entry: &Entry) -> Result<(), CallError>;
}

/// Something this caller may have, bound to the connection that serves it: resolved once, then
/// called as it is, so that what was shown is what runs.
pub(crate) struct Route<'v> {
    pub(crate) entry: &'v Entry,
    pub(crate) connection: Arc<Connection>,
    /// Whether no other client has that connection.
    pub(crate) is_own: bool,
    /// The connection that all callers share, if this is another one of theirs in the older era.
    pub(crate) first: Option<Arc<Connection>>,
    pub(crate) server: Arc<Server>,
    /// What was shown; it says how callers know addresses as well.
    pub(crate) view: &'v View,
    pub(crate) guard: &'v dyn Authorizer,
    /// What is being read, if something is.
    pub(crate) read: Option<ReadUri>,
}

/// An address that is read, which its server calls otherwise.
pub(crate) struct ReadUri {
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
            validate_arguments(&schema, &arguments).map_err(|bad| CallError::arguments(&bad))?;
        }
        let name = Raw::from_string(self.entry.name());
        let params = empty().with("name", &name).with("arguments", &arguments);
        self.send("tools/call", params, options).await
    }

    /// Asks the server for something, within its bounds, and makes an outcome of the answer.
    pub(crate) async fn send(
        &self,
        method: &str,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let (_slot, mut has_waited) = self.slot(options).await?;
        let kind = (ResultKind::of_method(method), AppPages::of_params(&params));
        let ask = OutgoingRequest {
            timeout: options.timeout,
            since: options.since,
            rounds: options.rounds,
            requester: options.requester.cloned().unwrap_or_default(),
            ..OutgoingRequest::new(method, Some(params))
        };
        let cleaning = SanitizingHandler(options.handler);
        let mut round_trips =
            RoundTrips::begin(&self.connection, ask, self.handler(options, &cleaning));
        let mut looks_in_vain = 0;
        while looks_in_vain < MAX_LOOKS {
            // In an edition that comes after this it is not asked.
            let edition = self.connection.tools_revision();
            if has_waited {
                self.guard.authorize(self.view, self.entry)?;
            }
            self.require_definition(edition)?;
            round_trips.expect_revision(edition);
            has_waited = true;
            match round_trips.round().await {
                Ok(RoundOutcome::Last(answer)) => {
                    return self.outcome(kind, Ok(answer), options).await;
                }
                Ok(RoundOutcome::Another) => {}
                Err(error) if error.kind() == ErrorKind::Stale => looks_in_vain += 1,
                Err(error) => return self.outcome(kind, Err(error), options).await,
            }
        }
        let message = "it begins anew, or has other tools, again and again, and was not asked";
        let error = Error::new(ErrorKind::Stale, message).of(&self.server.name);
        Err(self.failed(error))
    }

    /// Asks the server for something that only the server knows, so that nothing of it was shown.
    pub(crate) async fn send_unlisted(
        &self,
        method: &str,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let (_slot, _) = self.slot(options).await?;
        let kind = (ResultKind::of_method(method), AppPages::of_params(&params));
        let ask = OutgoingRequest {
            timeout: options.timeout,
            since: options.since,
            rounds: options.rounds,
            requester: options.requester.cloned().unwrap_or_default(),
            ..OutgoingRequest::new(method, Some(params))
        };
        let cleaning = SanitizingHandler(options.handler);
        let answer = self.connection.request_with(ask, self.handler(options, &cleaning)).await;
        self.outcome(kind, answer, options).await
    }

    /// Who attends to what the server says, which is cleaned if it is not trusted.
    fn handler<'a>(
        &self,
        options: CallOptions<'a>,
        cleaning: &'a SanitizingHandler<'a>,
    ) -> &'a dyn CallHandler {
        match self.server.trust {
            Trust::Trusted => options.handler,
            Trust::Untrusted => cleaning,
        }
    }

    /// Fails if the server has another tool in this edition than the one that was shown. Before it is
    /// ready, nobody knows.
    fn require_definition(&self, edition: u64) -> Result<(), CallError> {
        if edition == 0 || self.entry.kind() != ItemKind::Tool {
            return Ok(());
        }
        let (tools, name) = (self.connection.tools(), self.entry.name());
        let first = tools.partition_point(|tool| tool.name() < name);
        let mut named = tools[first..].iter().take_while(|tool| tool.name() == name).peekable();
        if named.peek().is_none() {
            return Err(CallError::gone(self.entry));
        }
        match named.any(|tool| self.matches_shown_definition(tool)) {
            true => Ok(()),
            false => Err(CallError::changed(self.entry)),
        }
    }

    /// Whether a tool of the server is the one that was shown, by the digests of their definitions, unless
    /// it is that of another process than the one whose list was shown. There, what matters are its
    /// arguments and what it says that it does.
    fn matches_shown_definition(&self, tool: &Arc<Item>) -> bool {
        if Arc::ptr_eq(tool, self.entry.item()) {
            return true;
        }
        let cleaned = (self.server.trust == Trust::Untrusted).then(|| tool.cleaned());
        let tool = cleaned.as_ref().unwrap_or(tool);
        let (now, shown) = (tool.definition(), self.entry.definition());
        let is_same = |key| now.get(key) == shown.get(key);
        let is_other = self.is_own || self.first.is_some();
        tool.digest() == self.entry.digest()
            || (is_other && is_same("inputSchema") && is_same("annotations"))
    }

    /// Makes an outcome of an answer.
    async fn outcome(
        &self,
        (kind, apps): (ResultKind, AppPages),
        answer: Result<Result<Raw, RpcError>, Error>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let answer = answer.map_err(|error| self.failed(error))?;
        let result = answer.map_err(|error| self.refused(&error))?;
        if !result.is_object() {
            let message = "its result is not an object, which every result has to be";
            return Err(Error::new(ErrorKind::ProtocolViolation, message)
                .of(&self.server.name)
                .into());
        }
        let outcome = self.exposed(kind, &result).in_modern_era(self.connection.is_modern());
        let outcome = outcome.with_apps(apps);
        match options.artifacts {
            Some(folder) => Ok(outcome.with_artifacts_in(folder).await),
            None => Ok(outcome),
        }
    }

    /// A result with the addresses that the caller knows, and within its bound.
    fn exposed(&self, kind: ResultKind, result: &Raw) -> Outcome {
        let looks = Cell::new(0);
        let exposed = |uri: &str| self.expose_uri(uri, &looks);
        let tells_apart = self.read.is_some() || self.view.catalog().qualifies_uris();
        let exposed: Option<ExposeUri<'_>> = if tells_apart { Some(&exposed) } else { None };
        outcome((kind, result), &self.server, exposed)
    }

    /// The server answered with an error.
    fn refused(&self, error: &RpcError) -> CallError {
        // The text of a `CallError` is ours, the error in it is the server's (SEC-2).
        CallError::refused(&self.server, error, &self.connection.masked(&error.message()))
    }

    /// The server gave no answer.
    fn failed(&self, error: Error) -> CallError {
        // Another one takes the place of what a client had for itself.
        let is_replaced = (self.is_own || self.first.is_some()) && self.connection.is_shut_down();
        let may_pass = is_replaced || self.connection.is_retryable(error.kind());
        CallError::from(error).retryable(may_pass)
    }

    /// What the caller calls an address of the server, if not as the server does.
    fn expose_uri(&self, uri: &str, looks: &Cell<usize>) -> Option<String> {
        if let Some(read) = self.read.as_ref().filter(|read| read.own == uri) {
            return Some(read.address.clone());
        }
        looks.set(looks.get() + 1);
        match looks.get() <= MAX_LINKS_LOOKED_UP {
            true => self.view.exposed_uri(&self.server.name, uri),
            false => self.view.catalog().exposed_uri(&self.server.name, uri),
        }
    }

    /// A slot of the server, for as long as the call runs, and whether it was waited for (CALL-7).
    async fn slot(&self, options: CallOptions<'_>) -> Result<(Option<Slot>, bool), Error> {
        let Some(limit) = self.server.behaviour.concurrency else {
            return Ok((None, false));
        };
        // However many connections there are, the server has so many slots.
        let slots = self.first.as_ref().unwrap_or(&self.connection).slots(limit);
        if let Some(slot) = slots.try_acquire() {
            return Ok((Some(slot), false));
        }
        let bound = self.server.behaviour.timeouts.call;
        let bound = options.time_left().map_or(bound, |left| left.min(bound));
        match timeout(bound, self.acquire_slot(&slots, options)).await {
            Ok(slot) => Ok((Some(slot), true)),
            Err(_) => {
                let message = format!(
                    "no slot for the call was free within {:?}",
                    options.timeout.unwrap_or(bound)
                );
                Err(Error::new(ErrorKind::TimedOut, message)
                    .of(&self.server.name)
                    .with_hint("`concurrency` is the number of slots"))
            }
        }
    }

    /// Waits for a slot, and says now and then that somebody does: whoever has it may only begin to
    /// dawdle meanwhile.
    async fn acquire_slot(&self, slots: &Arc<FairSlots>, options: CallOptions<'_>) -> Slot {
        let principal = options.requester.map_or(&Principal::Anonymous, |it| &it.principal);
        let mut turn = std::pin::pin!(slots.acquire(principal));
        loop {
            // Nobody else has anything to do with a connection of a client's own.
            if !self.is_own {
                options.handler.on_blocked();
            }
            if let Ok(slot) = timeout(REMINDER, &mut turn).await {
                return slot;
            }
        }
    }
}

/// How callers know an address of a server, if not as the server does.
type ExposeUri<'c> = &'c dyn Fn(&str) -> Option<String>;

/// What a server says as callers are to see it: with the addresses they know, and within its bound.
fn outcome(
    (kind, said): (ResultKind, &Raw),
    server: &Server,
    exposed: Option<ExposeUri<'_>>,
) -> Outcome {
    let missing = said.missing();
    let said = said.clone().deduplicated();
    let said = match server.trust {
        // Before addresses are looked at: what is taken away may be what makes one look like another.
        Trust::Untrusted => sanitize_json(&said),
        Trust::Trusted => said,
    };
    let said = exposed.map_or_else(|| said.clone(), |exposed| rewrite_uris(&said, exposed));
    let bound = usize::try_from(server.behaviour.max_result_bytes).unwrap_or(usize::MAX);
    let said = said.shortened_by(missing);
    Outcome::new((kind, &said), (&server.name, server.trust), bound)
}

fn empty() -> Raw {
    Raw::empty_object()
}
