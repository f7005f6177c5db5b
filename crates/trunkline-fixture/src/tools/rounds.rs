//! Tools that need input responses to complete: `test_input_required_result_…`.

use rmcp::model::{ErrorData, InputResponses};
use serde_json::{Map, Value, json};

use super::live::said;
use super::{Outcome, unknown};
use crate::call::{Call, Exit};
use crate::content::{form, roots, sample, text};

/// Calls a tool by the part of its name after the common prefix.
pub(super) async fn call(name: &str, call: &Call) -> Outcome {
    match name {
        "elicitation" => {
            let answers =
                call.ask(json!({ "user_name": name_form("What is your name?") }), None).await?;
            Ok(text(format!("Hello, {}!", filled(&answers, "user_name", "name"))))
        }
        "sampling" => {
            let question = sample("What is the capital of France?", 100);
            let answers = call.ask(json!({ "capital_question": question }), None).await?;
            Ok(text(format!("The model says: {}", said(&answers, "capital_question"))))
        }
        "list_roots" => {
            let answers = call.ask(json!({ "client_roots": roots() }), None).await?;
            Ok(text(format!("The roots are: {}", answers["client_roots"]["roots"])))
        }
        "request_state" => with_state(call, "confirmed", "state-ok").await,
        "tampered_state" => with_state(call, "untouched", "The state is untouched").await,
        "multiple_inputs" => three_at_once(call).await,
        "multi_round" => one_after_the_other(call).await,
        "capabilities" => what_the_client_can(call).await,
        _ => Err(unknown(&format!("test_input_required_result_{name}"))),
    }
}

fn name_form(message: &str) -> Value {
    form(message, &json!({ "name": { "type": "string" } }), &["name"])
}

/// The value of a form field in an elicitation result.
fn filled<'a>(answers: &'a InputResponses, key: &str, field: &str) -> &'a str {
    answers[key]["content"][field].as_str().unwrap_or_default()
}

/// Requests a confirmation with a `requestState`, and completes when both are returned.
async fn with_state(call: &Call, state: &str, done: &str) -> Outcome {
    let opened = call.opened_state()?;
    let question = form("Please confirm", &json!({ "ok": { "type": "boolean" } }), &["ok"]);
    call.ask(json!({ "confirm": question }), Some(state)).await?;
    require_state(call, opened.as_deref(), state)?;
    Ok(text(done))
}

/// Rejects input responses without the `requestState` of their round.
fn require_state(call: &Call, opened: Option<&str>, state: &str) -> Result<(), Exit> {
    if call.is_modern() && opened != Some(state) {
        let message = "requestState is missing or belongs to another round";
        return Err(Exit::Fail(ErrorData::invalid_params(message, None)));
    }
    Ok(())
}

async fn three_at_once(call: &Call) -> Outcome {
    let opened = call.opened_state()?;
    let questions = json!({
        "user_name": name_form("What is your name?"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": roots(),
    });
    let answers = call.ask(questions, Some("three")).await?;
    require_state(call, opened.as_deref(), "three")?;
    let greeting = said(&answers, "greeting");
    let name = filled(&answers, "user_name", "name");
    Ok(text(format!("{greeting} {name}, your roots are {}", answers["client_roots"]["roots"])))
}

/// The input of the first round is carried to the third in the state of the second.
async fn one_after_the_other(call: &Call) -> Outcome {
    let first = json!({ "step1": name_form("Step 1: What is your name?") });
    let color = json!({ "color": { "type": "string" } });
    let second =
        json!({ "step2": form("Step 2: What is your favorite color?", &color, &["color"]) });
    if !call.is_modern() {
        let name = call.ask(first, None).await?;
        let color = call.ask(second, None).await?;
        return Ok(likes(filled(&name, "step1", "name"), filled(&color, "step2", "color")));
    }
    match call.opened_state()?.as_deref() {
        Some("first") => {
            let answers = call.ask(first, Some("first")).await?;
            let name = filled(&answers, "step1", "name");
            Err(call.question(second, Some(&format!("second {name}"))))
        }
        Some(state) if let Some(name) = state.strip_prefix("second ") => {
            let answers = call.ask(second, Some(state)).await?;
            Ok(likes(name, filled(&answers, "step2", "color")))
        }
        _ => Err(call.question(first, Some("first"))),
    }
}

fn likes(name: &str, color: &str) -> rmcp::model::CallToolResponse {
    text(format!("{name} likes {color}"))
}

async fn what_the_client_can(call: &Call) -> Outcome {
    let mut questions = Map::new();
    for (key, question) in [
        ("user", name_form("What is your name?")),
        ("model", sample("Say hello", 50)),
        ("roots", roots()),
    ] {
        if call.can_answer(question["method"].as_str().unwrap_or_default()) {
            questions.insert(key.to_owned(), question);
        }
    }
    if questions.is_empty() {
        return Ok(text("The client can answer nothing"));
    }
    let answers = call.ask(Value::Object(questions), None).await?;
    Ok(text(format!("The client has answered: {}", json!(answers))))
}
