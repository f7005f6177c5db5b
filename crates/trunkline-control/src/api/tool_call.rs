//! Calls of tools by the owner. Arguments and results are passed on byte for byte.

use std::time::{Duration, Instant, SystemTime};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use trunkline::call::CallError;
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::name::{ConversationName, ServerName};
use trunkline_gateway::{RequestOutcome, RequestRecord};

use super::extract::{PathOf, RawJsonOf};
use super::problem::ApiError;
use super::tools::{caller_of, conversation, definition_id};
use crate::audit::milliseconds;
use crate::control::Control;
use crate::types::{CallRequest, CallResult};

/// The client of calls that are made here, in lists of calls.
const CLIENT: &str = "control API";

/// A call that has ended.
pub(crate) struct EndedCall {
    /// The arguments as they were sent.
    sent: Raw,
    result: Option<Raw>,
    error: Option<String>,
    duration: Duration,
}

impl EndedCall {
    /// The call as a value, for the page.
    pub(crate) fn to_result(&self) -> CallResult {
        CallResult {
            sent: self.sent.to_value(),
            result: self.result.as_ref().map(Raw::to_value),
            error: self.error.clone(),
            duration_ms: milliseconds(self.duration),
        }
    }

    /// The same as JSON, in which numbers and the order of keys are those of client and server.
    fn to_json(&self) -> Raw {
        let null = Raw::from_value(&Value::Null);
        let rest = json!({ "error": self.error, "durationMs": milliseconds(self.duration) });
        let rest = Raw::from_value(&rest).with("sent", &self.sent);
        rest.with("result", self.result.as_ref().unwrap_or(&null))
    }
}

pub(super) async fn call(
    State(control): State<Control>,
    PathOf((project, name)): PathOf<(String, String)>,
    RawJsonOf(request, body): RawJsonOf<CallRequest>,
) -> Result<Response, ApiError> {
    let arguments = body.get("arguments").unwrap_or_else(Raw::empty_object);
    let call = run(&control, (&project, &name), request, arguments).await?;
    Ok(([(CONTENT_TYPE, "application/json")], call.to_json().text().to_owned()).into_response())
}

/// Calls a tool as the owner, and records the call like that of a client.
pub(crate) async fn run(
    control: &Control,
    (project, name): (&str, &str),
    request: CallRequest,
    arguments: Raw,
) -> Result<EndedCall, ApiError> {
    let open = control.project(project).ok_or_else(|| ApiError::not_found("project", project))?;
    let conversation = conversation(request.conversation.as_deref())?;
    let caller = caller_of(&open, conversation.as_ref());
    let catalog = open.host.catalog();
    let entry = catalog.get(ItemKind::Tool, name);
    let entry = entry.ok_or_else(|| ApiError::not_found("tool", name))?;
    if request.definition.is_some_and(|shown| shown != definition_id(entry)) {
        let detail = format!("the tool `{name}` has changed since it was shown; look at it again");
        return Err(ApiError::new(StatusCode::CONFLICT, detail));
    }
    let server = entry.server().name.clone();
    let record = record_of(conversation, name, server, &arguments);
    let mut record = RecordGuard { control, project, clock: Instant::now(), record };
    let outcome = caller.call_tool(name, arguments.clone()).await;
    let duration = record.clock.elapsed();
    let outcome = outcome.map(|outcome| outcome.result);
    record.end(&outcome);
    let error = outcome.as_ref().err().map(|error| error.message_with_login().into_owned());
    Ok(EndedCall { sent: arguments, result: outcome.ok(), error, duration })
}

/// Records a call when dropped, also if its client is gone.
struct RecordGuard<'c> {
    control: &'c Control,
    project: &'c str,
    clock: Instant,
    record: RequestRecord,
}

impl RecordGuard<'_> {
    fn end(&mut self, outcome: &Result<Raw, CallError>) {
        self.record.outcome = match outcome {
            Ok(result) => match result.get("isError").is_some_and(|it| it.text() == "true") {
                true => RequestOutcome::ToolError,
                false => RequestOutcome::Ok,
            },
            Err(error) => RequestOutcome::of_error(error),
        };
        self.record.result = outcome.as_ref().ok().cloned();
    }
}

impl Drop for RecordGuard<'_> {
    fn drop(&mut self) {
        let duration = self.clock.elapsed();
        (self.record.duration, self.record.upstream) = (duration, duration);
        self.control.activity().add(&self.project.into(), self.record.clone());
    }
}

fn record_of(
    conversation: Option<ConversationName>,
    name: &str,
    server: ServerName,
    arguments: &Raw,
) -> RequestRecord {
    let params = Raw::from_value(&json!({ "name": name })).with("arguments", arguments);
    RequestRecord {
        started: SystemTime::now(),
        duration: Duration::ZERO,
        upstream: Duration::ZERO,
        method: "tools/call".into(),
        subject: Some(name.into()),
        server: Some(server),
        client: Some(CLIENT.into()),
        token: None,
        conversation,
        outcome: RequestOutcome::Cancelled,
        code: None,
        params,
        result: None,
        trace: None,
    }
}
