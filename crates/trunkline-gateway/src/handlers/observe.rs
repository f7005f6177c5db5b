//! Reports every finished request to an observer: metrics, lists of recent calls, audit logs.
//!
//! Without an observer a request costs nothing more. With one, its facts are collected in a task-local while
//! it is handled, because server and failure are known far below the place where the request ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::task_local;
use trunkline::call::{CallError, CallErrorKind};
use trunkline::error::ErrorKind;
use trunkline::name::{ServerName, uri_without_credentials};
use trunkline::principal::Principal;
use trunkline::protocol::subject_key;

use crate::client::caller::Caller;
use crate::request::incoming::IncomingRequest;
use crate::request::record::{RequestObserver, RequestOutcome, RequestRecord, client_name, cut};
use crate::request::response::RpcResult;

/// The outcome of a request that failed.
fn outcome_of(error: &CallError) -> RequestOutcome {
    match error.kind() {
        CallErrorKind::Unknown => RequestOutcome::Denied,
        CallErrorKind::Unavailable => RequestOutcome::Unavailable,
        CallErrorKind::BadArguments | CallErrorKind::Refused(_) => RequestOutcome::RpcError,
        CallErrorKind::Failed(ErrorKind::TimedOut) => RequestOutcome::Timeout,
        CallErrorKind::Failed(_) => RequestOutcome::Unavailable,
    }
}

/// What is learned of a request while it is handled.
#[derive(Default)]
struct RequestFacts {
    subject: Option<Box<str>>,
    server: Option<ServerName>,
    upstream: Duration,
    failure: Option<RequestOutcome>,
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
    add(|facts| facts.failure = Some(outcome_of(error)));
}

/// Measures how long a server takes.
pub(super) async fn upstream<T>(waiting: impl Future<Output = T>) -> T {
    let started = FACTS.try_with(|_| Instant::now()).ok();
    let result = waiting.await;
    if let Some(started) = started {
        add(|facts| facts.upstream += started.elapsed());
    }
    result
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
        client: client_name(&caller.client).map(Into::into),
        token,
        conversation: caller.identity.scope.conversation().cloned(),
        outcome: RequestOutcome::Cancelled,
        code: None,
        params: incoming.params.clone(),
        result: None,
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
        let record = Some(Box::new(record_of(caller, incoming)));
        Self { observer, facts: SharedFacts::default(), started: Instant::now(), record }
    }

    /// Handles the request.
    pub(super) async fn run(mut self, handling: impl Future<Output = RpcResult>) -> RpcResult {
        let result = FACTS.scope(Arc::clone(&self.facts), handling).await;
        self.on_result(&result);
        result
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
        if let Some(subject) = facts.subject.take() {
            record.subject = Some(subject);
        }
        drop(facts);
        self.observer.on_request(*record);
    }
}
