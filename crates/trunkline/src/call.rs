//! Makes a call: resolves a route, acquires a slot, sends the request and builds the outcome
//! (CALL-1 … CALL-7).

mod completion;
mod no_result;
mod error;
mod artifacts;
mod outcome;
mod handler;
mod task_updates;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tracing::debug;

pub use artifacts::ArtifactDir;
pub use completion::{Completion, CompletionRef};
pub use error::{CallError, CallErrorKind};
pub use no_result::NoResult;
pub use outcome::Outcome;
pub use task_updates::TaskUpdates;

use crate::catalog::{Entry, LookupWork};
use crate::config::{Server, Trust};
use crate::connection::{
    CallHandler, Connection, InputRequired, LogLevel, NoopHandler, OutgoingRequest, RequestError,
    RoundOutcome, RoundTrips,
};
use crate::content::{AppPages, ResultKind, rewrite_uris, validate_arguments};
use crate::error::{Error, ErrorKind};
use crate::item::{Item, ItemKind};
use crate::message::{Raw, RpcError};
use crate::name::uri_without_credentials;
use crate::principal::{ClientId, FairSlots, Principal, Requester, Slot};
use crate::sanitize::sanitize_json;
use crate::view::View;
use handler::RouteHandler;

/// Attempts to send a request when the tool list changes between authorization and send.
const MAX_LOOKS: usize = 3;

/// Interval at which a call that waits for a slot reports that it is blocked.
const REMINDER: Duration = Duration::from_secs(5);

/// Links in one result that are looked up in the caller's view. Results of real servers have fewer;
/// further ones are qualified where they may belong to another server.
const MAX_LINKS_LOOKED_UP: usize = 256;

/// Options of a call.
#[derive(Clone, Copy)]
pub struct CallOptions<'c> {
    /// Handles the notifications and server requests of the call. Those of an untrusted server are
    /// sanitized, but must still not be trusted.
    pub handler: &'c dyn CallHandler,
    /// Timeout of the call, including the start of the server. The default, and the maximum, is
    /// `timeouts.call` plus the timeouts of a start. The time in which a server request waits for
    /// the handler is not counted; see [`CallHandler::on_server_request`].
    pub timeout: Option<Duration>,
    /// The time from which `timeout` counts, for callers that have waited already. The default is
    /// the time of the call.
    pub since: Option<Instant>,
    /// Whether arguments are validated against the tool's input schema before the call (CALL-6).
    pub checks_arguments: bool,
    /// Directory for binary blocks of the result; without it, they stay in the result.
    pub artifacts: Option<&'c ArtifactDir>,
    /// Whether input requests are fulfilled here or returned to the caller.
    pub rounds: InputRequired,
    /// The client of the call, for hosts with several clients.
    pub client: Option<&'c ClientContext>,
    /// Set for callers that can respond to server requests of the legacy era. A dual-era HTTP
    /// server is used in that era where the modern one has no response to its requests.
    pub older_era: Option<OlderEra<'c>>,
    /// The client and principal of the call, also for shared servers. `None` is the host itself.
    pub requester: Option<&'c Requester>,
    /// Metadata of that client for modern servers, as [`client_meta`](crate::connection::client_meta()) returns it. It
    /// replaces members of `_meta` in the request.
    pub client_meta: Option<&'c Raw>,
}

/// When a caller uses the legacy era of a dual-era HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct OlderEra<'c> {
    /// The capabilities of the caller.
    pub capabilities: &'c Raw,
    /// Whether the caller itself is a legacy client, which then uses that era if it supports any
    /// server request. Any other caller does once the server has sent a request in the modern era.
    pub is_own: bool,
}

/// A client on whose behalf a host is used, if there are several.
#[derive(Clone)]
pub struct ClientContext {
    /// The ID of the client: the same for all its requests.
    pub id: ClientId,
    /// Its principal. At the limit of dedicated servers, one of the principal that holds most is
    /// evicted.
    pub owner: Principal,
    /// Its capabilities, as MCP defines them.
    pub capabilities: Raw,
    /// Handles requests of its dedicated servers outside of calls.
    pub handler: Option<Arc<dyn CallHandler>>,
    /// The lowest log level that it requests from its dedicated servers.
    pub log_level: Option<LogLevel>,
    /// Idle timeout of its dedicated servers. `None` keeps them until the client is closed.
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
            client_meta: None,
        }
    }
}

impl CallOptions<'_> {
    /// Starts the timeout now, unless it has started already.
    pub(crate) fn begun(self) -> Self {
        Self { since: self.since.or_else(|| Some(Instant::now())), ..self }
    }

    /// The rest of the caller's timeout.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let spent = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.timeout.map(|timeout| timeout.saturating_sub(spent))
    }
}

/// Decides whether an item may be called under the current rules, which may change while a call
/// waits.
pub(crate) trait Authorizer: Sync {
    fn authorize(&self, view: &View, entry: &Entry) -> Result<(), CallError>;
}

/// An item that the caller may use, bound to the connection that serves it. It is resolved once, so
/// that the call reaches the item that was listed.
pub(crate) struct Route<'v> {
    pub(crate) entry: &'v Entry,
    pub(crate) connection: Arc<Connection>,
    /// Whether the connection is dedicated to this client.
    pub(crate) is_own: bool,
    /// The shared connection, if `connection` is a further one to its server in the legacy era.
    pub(crate) first: Option<Arc<Connection>>,
    pub(crate) server: Arc<Server>,
    /// The view that the item was resolved in; it also maps URIs.
    pub(crate) view: &'v View,
    pub(crate) guard: &'v dyn Authorizer,
    /// The URI of a read request.
    pub(crate) read: Option<ReadUri>,
}

/// A URI to read, whose exposed form differs from the upstream one.
pub(crate) struct ReadUri {
    /// As the caller sent it.
    pub(crate) address: String,
    /// As the server knows it.
    pub(crate) own: String,
}

impl Route<'_> {
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

    /// Sends a request to the server, within its limits, and builds the outcome of the response.
    pub(crate) async fn send(
        &self,
        method: &str,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let (server, name) = (self.server.name.as_str(), self.entry.exposed());
        match self.entry.kind().is_uri() {
            true => debug!(server, method, uri = uri_without_credentials(name), "call routed"),
            false => debug!(server, method, name, "call routed"),
        }
        let (_slot, mut has_waited) = self.slot(options).await?;
        let kind = (ResultKind::of_method(method), AppPages::of_params(&params));
        let ask = OutgoingRequest {
            timeout: options.timeout,
            since: options.since,
            rounds: options.rounds,
            requester: options.requester.cloned().unwrap_or_default(),
            client_meta: options.client_meta.cloned(),
            ..OutgoingRequest::new(method, Some(params))
        };
        let handler = RouteHandler { inner: options.handler, route: self };
        let mut round_trips = RoundTrips::begin(&self.connection, ask, &handler);
        let mut failed_lookups = 0;
        while failed_lookups < MAX_LOOKS {
            // The request fails as stale if the revision changes before it is sent.
            let edition = self.connection.tools_revision();
            if has_waited {
                self.guard.authorize(self.view, self.entry)?;
            }
            self.require_definition(edition)?;
            round_trips.expect_revision(edition);
            has_waited = true;
            match round_trips.round().await {
                Ok(RoundOutcome::Last(result)) => {
                    return self.outcome(kind, Ok(result), options).await;
                }
                Ok(RoundOutcome::Another) => {}
                Err(RequestError::Failed(error)) if error.kind() == ErrorKind::Stale => {
                    failed_lookups += 1;
                }
                Err(error) => return self.outcome(kind, Err(error), options).await,
            }
        }
        let message = "it begins anew, or has other tools, again and again, and was not asked";
        let error = Error::new(ErrorKind::Stale, message).of(&self.server.name);
        Err(self.failed(error))
    }

    /// Sends a request that refers to no listed item.
    pub(crate) async fn send_unlisted(
        &self,
        method: &str,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let (_slot, has_waited) = self.slot(options).await?;
        if has_waited {
            // The rules may have changed during the wait.
            self.guard.authorize(self.view, self.entry)?;
        }
        let kind = (ResultKind::of_method(method), AppPages::of_params(&params));
        let ask = OutgoingRequest {
            timeout: options.timeout,
            since: options.since,
            rounds: options.rounds,
            requester: options.requester.cloned().unwrap_or_default(),
            client_meta: options.client_meta.cloned(),
            ..OutgoingRequest::new(method, Some(params))
        };
        let handler = RouteHandler { inner: options.handler, route: self };
        let answer = self.connection.request_with(ask, &handler).await;
        self.outcome(kind, answer, options).await
    }

    /// Fails if this revision of the tool list has another definition of the tool than the listed
    /// one. Before the server is ready (revision 0), its definitions are unknown.
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

    /// Whether a tool of the server is the listed one, by the digests of their definitions. If the
    /// list came from another process than the one that is called, only input schema and
    /// annotations are compared.
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

    /// Builds the outcome of a response.
    async fn outcome(
        &self,
        (kind, apps): (ResultKind, AppPages),
        answer: Result<Raw, RequestError>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let result = answer.map_err(|error| match error {
            RequestError::Refused(error) => self.refused(&error),
            RequestError::Failed(error) if self.is_made_in_older_era_next(&error, options) => {
                self.failed(error).retryable(true)
            }
            RequestError::Failed(error) => self.failed(error),
        })?;
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

    /// The result with exposed URIs, truncated to its limit.
    fn exposed(&self, kind: ResultKind, result: &Raw) -> Outcome {
        let lookups = LinkLookups::default();
        let exposed = |uri: &str| self.expose_uri(uri, &lookups);
        let tells_apart = self.tells_uris_apart();
        let exposed: Option<ExposeUri<'_>> = if tells_apart { Some(&exposed) } else { None };
        outcome((kind, result), &self.server, exposed)
    }

    /// A notification or server request of the call, with exposed URIs.
    fn with_known_uris(&self, said: &Raw) -> Raw {
        let lookups = LinkLookups::default();
        match self.tells_uris_apart() {
            true => rewrite_uris(said, &|uri| self.expose_uri(uri, &lookups)),
            false => said.clone(),
        }
    }

    /// Whether the exposed form of a URI may differ from the upstream one.
    fn tells_uris_apart(&self) -> bool {
        self.read.is_some() || self.view.catalog().qualifies_uris()
    }

    /// The error for an error response of the server.
    fn refused(&self, error: &RpcError) -> CallError {
        // The message of a `CallError` is ours and is masked; the error it contains is the server's
        // (SEC-2).
        CallError::refused(&self.server, error, &self.connection.masked(&error.message()))
    }

    /// Whether a retry of a call with this error would use the legacy era.
    fn is_made_in_older_era_next(&self, error: &Error, options: CallOptions<'_>) -> bool {
        error.kind() == ErrorKind::ProtocolViolation
            && options.older_era.is_some()
            && !self.is_own
            && self.first.is_none()
            && self.connection.speaks_both_eras()
            && self.connection.sends_unanswerable()
    }

    /// The error for a request without a response.
    fn failed(&self, error: Error) -> CallError {
        // A failed dedicated connection is replaced by a new one.
        let is_replaced =
            (self.is_own || self.first.is_some()) && self.connection.needs_intervention();
        let may_pass = is_replaced || self.connection.is_retryable(error.kind());
        CallError::from(error).retryable(may_pass)
    }

    /// The exposed form of a URI of the server, if it differs.
    fn expose_uri(&self, uri: &str, lookups: &LinkLookups) -> Option<String> {
        if let Some(read) = self.read.as_ref().filter(|read| read.own == uri) {
            return Some(read.address.clone());
        }
        lookups.count.set(lookups.count.get() + 1);
        let (server, work) = (&self.server.name, &lookups.work);
        match lookups.count.get() <= MAX_LINKS_LOOKED_UP {
            true => self.view.exposed_uri(server, uri, work),
            false => self.view.catalog().exposed_uri_within(server, uri, work),
        }
    }

    /// Acquires a slot of the server for the duration of the call. Returns whether it had to wait
    /// (CALL-7).
    async fn slot(&self, options: CallOptions<'_>) -> Result<(Option<Slot>, bool), Error> {
        let Some(limit) = self.server.behaviour.concurrency else {
            return Ok((None, false));
        };
        // All connections of a server share its slots.
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

    /// Waits for a slot and reports it repeatedly: a call that holds one may start to wait for its
    /// client only later.
    async fn acquire_slot(&self, slots: &Arc<FairSlots>, options: CallOptions<'_>) -> Slot {
        let principal = options.requester.map_or(&Principal::Anonymous, |it| &it.principal);
        let mut turn = std::pin::pin!(slots.acquire(principal));
        loop {
            // A dedicated connection blocks no other client.
            if !self.is_own {
                options.handler.on_blocked();
            }
            if let Ok(slot) = timeout(REMINDER, &mut turn).await {
                return slot;
            }
        }
    }
}

/// Counts the lookups of links in one result.
#[derive(Default)]
struct LinkLookups {
    count: Cell<usize>,
    work: LookupWork,
}

/// Maps a URI of a server to its exposed form, if that differs.
type ExposeUri<'c> = &'c dyn Fn(&str) -> Option<String>;

/// The outcome of a result as callers see it: with exposed URIs, truncated to its limit.
fn outcome(
    (kind, said): (ResultKind, &Raw),
    server: &Server,
    exposed: Option<ExposeUri<'_>>,
) -> Outcome {
    let missing = said.missing();
    let said = said.clone().deduplicated();
    let said = match server.trust {
        // Before URIs are mapped: removed characters may be the only difference between two URIs.
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
