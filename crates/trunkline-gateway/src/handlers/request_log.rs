//! The span of a client request, and the event with its outcome.
//!
//! Names come from clients and are logged escaped and cut. Arguments, results, session and task IDs
//! are never logged, nor the part of a URI that may be a credential.

use std::time::Instant;

use futures_util::FutureExt as _;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span, info, info_span};
use trunkline::name::{ServerName, uri_without_credentials};
use trunkline::principal::Principal;
use trunkline::protocol::subject_key;

use super::observe;
use crate::client::caller::Caller;
use crate::request::incoming::{ClientProfile, IncomingRequest};
use crate::request::record::cut;
use crate::request::response::{ResultBody, RpcResult};

/// Handles a request in its span, and logs how it ended.
///
/// Not `async`, to keep the future small; see [`panics`](crate::request::panics).
pub(crate) fn traced(
    span: Span,
    handling: impl Future<Output = RpcResult>,
) -> impl Future<Output = RpcResult> {
    let end = RequestEnd::new(span.clone());
    handling.instrument(span).map(move |result| {
        end.finish(Outcome::of(&result));
        result
    })
}

/// The span of a request.
pub(crate) fn request_span(caller: &Caller, incoming: &IncomingRequest) -> Span {
    let span = info_span!(
        "request",
        method = &*cut(&incoming.method),
        client = Empty,
        token = Empty,
        item = Empty,
        uri = Empty,
        target = Empty,
        server = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(client) = caller.client.name() {
        span.record("client", &**client);
    }
    if let Principal::Token(name) = &caller.identity.principal {
        span.record("token", &**name);
    }
    match (subject_key(&incoming.method), incoming.subject()) {
        (Some("name"), Some(name)) => drop(span.record("item", &*cut(&name))),
        (Some("uri"), Some(uri)) => drop(span.record("uri", &*cut(&uri_without_credentials(&uri)))),
        _ => {}
    }
    span
}

/// Adds the item that a tool of the gateway itself calls, reads or gets to the span of the request.
pub(crate) fn record_target(name: &str) {
    Span::current().record("target", &*cut(name));
    observe::add_subject(name);
}

/// Adds the server of a request to its span.
pub(crate) fn record_server(server: Option<&ServerName>) {
    if let Some(server) = server {
        Span::current().record("server", server.as_str());
        observe::add_server(server);
    }
}

/// Logs that a legacy client has opened a session.
pub(crate) fn session_opened(client: &ClientProfile) {
    if tracing::enabled!(tracing::Level::INFO) {
        info!(
            client = client.name().map(|name| &**name),
            version = &*client.version,
            "session opened"
        );
    }
}

/// How a request ended.
#[derive(Clone, Copy)]
enum Outcome {
    Result,
    /// A result of a tool with `isError`.
    ToolError,
    Error(i64),
    /// The request was cancelled, or its client is gone.
    Cancelled,
}

impl Outcome {
    fn of(result: &RpcResult) -> Self {
        match result {
            Ok(body) if is_tool_error(body) => Self::ToolError,
            Ok(_) => Self::Result,
            Err(error) => Self::Error(error.code()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::ToolError => "tool error",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whether a result declares `isError`. Read only if the log needs it.
fn is_tool_error(body: &ResultBody) -> bool {
    tracing::enabled!(tracing::Level::INFO)
        && body.result().get("isError").is_some_and(|it| it.text() == "true")
}

/// Logs the end of a request when dropped, also if it was cancelled.
struct RequestEnd {
    span: Span,
    started: Option<Instant>,
    outcome: Outcome,
}

impl RequestEnd {
    fn new(span: Span) -> Self {
        let started = (!span.is_disabled()).then(Instant::now);
        Self { span, started, outcome: Outcome::Cancelled }
    }

    /// Logs the end of a request that was not cancelled.
    fn finish(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for RequestEnd {
    fn drop(&mut self) {
        let Some(started) = self.started else { return };
        let milliseconds = format_args!("{:.1}", started.elapsed().as_secs_f64() * 1e3).to_string();
        let code = match self.outcome {
            Outcome::Error(code) => Some(code),
            _ => None,
        };
        let outcome = self.outcome.name();
        let duration_ms = display(milliseconds);
        self.span.in_scope(|| info!(duration_ms, outcome, code, "request finished"));
    }
}
