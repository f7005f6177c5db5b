//! Tools that send messages while they run: logs, progress, server requests and change
//! notifications.

use std::time::Duration;

use axum::http::request::Parts;
use rmcp::model::{InputResponses, LoggingLevel, ProgressNotificationParam};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Outcome, unknown};
use crate::call::{Call, Exit, missing};
use crate::content::{form, sample, text};
use crate::world::Change;

/// Long enough that two messages arrive separately.
const PAUSE: Duration = Duration::from_millis(50);

/// Reconnection delay for clients; short, because tests wait for it.
const RETRY: Duration = Duration::from_millis(200);

/// A session numbers its streams from 0; no test opens as many.
const MOST_STREAMS: u64 = 256;

pub(super) async fn call(name: &str, call: &Call) -> Outcome {
    match name {
        "test_tool_with_logging" => log_three_times(call).await,
        "test_logging_tool" => {
            call.log(LoggingLevel::Info, "A message about the call").await;
            Ok(text("Logged, if a client set a level for it"))
        }
        "test_tool_with_progress" => report_progress(call).await,
        "test_reconnection" => answer_later(call).await,
        "test_sampling" => ask_the_model(call).await,
        "test_elicitation" => ask_the_user(call).await,
        "test_elicitation_sep1034_defaults" => {
            completed(&call.ask_in_either_era(json!({ "user": defaults() })).await?)
        }
        "test_elicitation_sep1330_enums" => {
            completed(&call.ask_in_either_era(json!({ "user": enumerations() })).await?)
        }
        "test_streaming_elicitation" => {
            progress(call, 1.0).await;
            let confirmed = json!({ "confirmed": { "type": "boolean" } });
            elicit(call, form("Go on?", &confirmed, &["confirmed"])).await
        }
        "test_missing_capability" => match call.capabilities().sampling {
            Some(_) => Ok(text("The client can sample")),
            None => Err(Exit::Fail(missing(json!({ "sampling": {} })))),
        },
        "test_trigger_tool_change" => Ok(trigger(call, Change::Tools)),
        "test_trigger_prompt_change" => Ok(trigger(call, Change::Prompts)),
        "test_trigger_resource_update" => Ok(trigger(call, Change::WatchedResource)),
        _ => Err(unknown(name)),
    }
}

fn trigger(call: &Call, change: Change) -> rmcp::model::CallToolResponse {
    call.world.change(change);
    text("Changed")
}

async fn log_three_times(call: &Call) -> Outcome {
    call.log(LoggingLevel::Info, "Tool execution started").await;
    sleep(PAUSE).await;
    call.log(LoggingLevel::Info, "Tool processing data").await;
    sleep(PAUSE).await;
    call.log(LoggingLevel::Info, "Tool execution completed").await;
    Ok(text("Logged three times"))
}

async fn report_progress(call: &Call) -> Outcome {
    progress(call, 0.0).await;
    sleep(PAUSE).await;
    progress(call, 50.0).await;
    sleep(PAUSE).await;
    progress(call, 100.0).await;
    Ok(text("Reported three times"))
}

/// Sends a progress notification, if the request has a progress token.
pub(super) async fn progress(call: &Call, done: f64) {
    if let Some(token) = call.context.meta.get_progress_token() {
        let report = ProgressNotificationParam::new(token, done).with_total(100.0);
        // The client may have disconnected.
        let _ = call.context.peer.notify_progress(report).await;
    }
}

/// Closes the response stream, so that the client has to reconnect. Only HTTP sessions have such
/// streams; other clients get a normal response.
async fn answer_later(call: &Call) -> Outcome {
    let parts = call.context.extensions.get::<Parts>();
    let id = parts.and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok());
    if let Some(id) = id {
        sleep(PAUSE).await;
        let sessions = call.world.sessions.sessions.read().await;
        if let Some(session) = sessions.get(id) {
            for stream in 0..MOST_STREAMS {
                // `rmcp` does not expose the ID of this stream; the others are closed already.
                let _ = session.close_sse_stream(stream, Some(RETRY)).await;
            }
        }
        drop(sessions);
        // `rmcp` drops a response whose stream is not open when it is sent.
        sleep(RETRY * 4).await;
    }
    Ok(text("Reconnection test completed successfully"))
}

async fn ask_the_model(call: &Call) -> Outcome {
    let answers =
        call.ask_in_either_era(json!({ "model": sample(call.text("prompt"), 100) })).await?;
    Ok(text(format!("LLM response: {}", said(&answers, "model"))))
}

/// The text of a sampling result.
pub(super) fn said<'a>(answers: &'a InputResponses, key: &str) -> &'a str {
    answers[key]["content"]["text"].as_str().unwrap_or_default()
}

async fn ask_the_user(call: &Call) -> Outcome {
    let properties = json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    });
    let question = form(call.text("message"), &properties, &["username", "email"]);
    let answers = call.ask_in_either_era(json!({ "user": question })).await?;
    let answer = &answers["user"];
    let (action, content) = (&answer["action"], &answer["content"]);
    Ok(text(format!("User response: action: {action}, content: {content}")))
}

async fn elicit(call: &Call, question: Value) -> Outcome {
    completed(&call.ask(json!({ "user": question }), None).await?)
}

fn completed(answers: &InputResponses) -> Outcome {
    let answer = &answers["user"];
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(text(format!("Elicitation completed: action={action}, content={}", answer["content"])))
}

fn defaults() -> Value {
    let properties = json!({
        "name": { "type": "string", "description": "Name", "default": "John Doe" },
        "age": { "type": "integer", "description": "Age", "default": 30 },
        "score": { "type": "number", "description": "Score", "default": 95.5 },
        "status": { "type": "string", "description": "Status", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "description": "Verified", "default": true },
    });
    form("Please look through the defaults", &properties, &[])
}

fn enumerations() -> Value {
    let titled = |one: &str| {
        let titles = ["First", "Second", "Third"];
        let option = |number: usize| json!({ "const": format!("value{}", number + 1), "title": format!("{} {one}", titles[number]) });
        json!([option(0), option(1), option(2)])
    };
    let options = json!(["option1", "option2", "option3"]);
    let properties = json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    });
    form("Please choose", &properties, &[])
}
