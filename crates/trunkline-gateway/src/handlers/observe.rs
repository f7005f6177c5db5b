//! Reports every finished request to an observer: metrics, lists of recent calls, audit logs.
//!
//! Without an observer a request costs nothing more. With one, its facts are collected in a task-local while
//! it is handled, because server and failure are known far below the place where the request ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt as _;
use tokio::task_local;
use trunkline::call::CallError;
use trunkline::message::Raw;
use trunkline::name::{ServerName, uri_without_credentials};
use trunkline::principal::Principal;
use trunkline::protocol::subject_key;

use crate::client::caller::Caller;
use crate::request::incoming::IncomingRequest;
use crate::request::record::{RequestObserver, RequestOutcome, RequestRecord, RequestTrace, cut};
use crate::request::response::RpcResult;
use crate::request::trace_context::{TRACEPARENT, TraceContext};

/// Facts about a request that its handlers find.
#[derive(Default)]
struct RequestFacts {
    subject: Option<Box<str>>,
    server: Option<ServerName>,
    upstream: Duration,
    failure: Option<RequestOutcome>,
    trace: Option<RequestTrace>,
}

type SharedFacts = Arc<Mutex<RequestFacts>>;

task_local! {
    static FACTS: SharedFacts;
}

/// Adds a fact to the request that is being handled, if it is observed.
fn add(fact: impl FnOnce(&mut RequestFacts)) {
    let _ = FACTS.try_with(|facts| fact(&mut lock(facts)));
}

fn lock(facts: &SharedFacts) -> MutexGuard<'_, RequestFacts> {
    facts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server of the request.
pub(super) fn add_server(server: &ServerName) {
    add(|facts| facts.server = Some(server.clone()));
}

/// The item that a tool of the gateway itself uses.
pub(super) fn add_subject(name: &str) {
    add(|facts| facts.subject = Some(cut(name).into()));
}

/// The failure of the request, which its response may not show.
pub(super) fn add_failure(error: &CallError) {
    add(|facts| facts.failure = Some(RequestOutcome::of_error(error)));
}

/// The time before a server is asked, if the request is observed. Not a wrapper around the future: moving that one costs
/// more than everything else here.
pub(super) fn upstream_start() -> Option<Instant> {
    FACTS.try_with(|_| Instant::now()).ok()
}

/// Adds how long a server took.
pub(super) fn add_upstream(started: Option<Instant>) {
    if let Some(started) = started {
        add(|facts| facts.upstream += started.elapsed());
    }
}

/// Parameters with the trace context of the request to the server, if the observer traces. Otherwise not a byte changes.
pub(super) fn with_trace_context(params: Raw) -> Raw {
    let mut context = None;
    add(|facts| {
        if let Some(trace) = &mut facts.trace {
            let client = trace.server.child();
            trace.client = Some((client, SystemTime::now()));
            context = Some(client);
        }
    });
    let Some(context) = context else { return params };
    let meta = params.get("_meta").filter(Raw::is_object).unwrap_or_else(Raw::empty_object);
    params.with("_meta", &meta.with(TRACEPARENT, &Raw::from_string(&context.to_string())))
}

/// The spans of a request when it is received.
fn trace_of(incoming: &IncomingRequest) -> RequestTrace {
    let meta = incoming.params.get("_meta").and_then(|meta| meta.get(TRACEPARENT));
    let in_meta = meta.and_then(|value| TraceContext::parse(&value.as_str()?));
    let parent = in_meta.or(incoming.http_trace);
    let link = incoming.http_trace.filter(|_| in_meta.is_some());
    let server = parent.as_ref().map_or_else(TraceContext::root, TraceContext::child);
    RequestTrace { server, parent, link, client: None }
}

/// What is known of a request when it is received.
fn record_of(caller: &Caller, incoming: &IncomingRequest) -> RequestRecord {
    let subject = match (subject_key(&incoming.method), incoming.subject()) {
        (Some("uri"), Some(uri)) => Some(cut(&uri_without_credentials(&uri)).into()),
        (Some(_), Some(name)) => Some(cut(&name).into()),
        _ => None,
    };
    let token = match &caller.identity.principal {
        Principal::Token(name) => Some((**name).into()),
        Principal::Anonymous | Principal::Client(_) => None,
    };
    RequestRecord {
        started: SystemTime::now(),
        duration: Duration::ZERO,
        upstream: Duration::ZERO,
        method: cut(&incoming.method).into(),
        subject,
        server: None,
        client: caller.client.name().cloned(),
        token,
        conversation: caller.identity.scope.conversation().cloned(),
        outcome: RequestOutcome::Cancelled,
        code: None,
        params: incoming.params.clone(),
        result: None,
        trace: None,
    }
}

/// A request that is being handled. Reports its end when dropped, also if it was cancelled.
pub(super) struct ObservedRequest {
    observer: Arc<dyn RequestObserver>,
    facts: SharedFacts,
    started: Instant,
    record: Option<Box<RequestRecord>>,
}

impl ObservedRequest {
    pub(super) fn new(
        observer: Arc<dyn RequestObserver>,
        caller: &Caller,
        incoming: &IncomingRequest,
    ) -> Self {
        observer.on_start();
        let record = Some(Box::new(record_of(caller, incoming)));
        let trace = observer.is_tracing().then(|| trace_of(incoming));
        let facts = RequestFacts { trace, ..RequestFacts::default() };
        let facts = Arc::new(Mutex::new(facts));
        Self { observer, facts, started: Instant::now(), record }
    }

    /// Handles the request.
    ///
    /// Not `async`, to keep the future small; see [`panics`](crate::request::panics).
    pub(super) fn run(
        mut self,
        handling: impl Future<Output = RpcResult>,
    ) -> impl Future<Output = RpcResult> {
        FACTS.scope(Arc::clone(&self.facts), handling).map(move |result| {
            self.on_result(&result);
            result
        })
    }

    fn on_result(&mut self, result: &RpcResult) {
        let Some(record) = &mut self.record else { return };
        match result {
            Ok(body) => {
                let result = body.result();
                let is_error = result.get("isError").is_some_and(|it| it.text() == "true");
                record.outcome =
                    if is_error { RequestOutcome::ToolError } else { RequestOutcome::Ok };
                record.result = Some(result.clone());
            }
            Err(error) => {
                record.outcome = RequestOutcome::RpcError;
                record.code = Some(error.code());
            }
        }
        // The response to a client may be a result although the server is down.
        if let Some(failure) = lock(&self.facts).failure {
            record.outcome = failure;
        }
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        record.duration = self.started.elapsed();
        let mut facts = lock(&self.facts);
        record.upstream = facts.upstream.min(record.duration);
        record.server = facts.server.take();
        record.trace = facts.trace;
        if let Some(subject) = facts.subject.take() {
            record.subject = Some(subject);
        }
        drop(facts);
        self.observer.on_request(*record);
    }
}
