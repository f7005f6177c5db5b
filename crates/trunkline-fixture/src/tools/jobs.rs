//! Tools that run as tasks, if the client supports tasks.

use std::time::Duration;

use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, ErrorData, InputRequest, TASKS_EXTENSION_ID,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskOptions};
use serde_json::{Value, from_value, json};
use tokio::time::sleep;

use super::{Outcome, unknown};
use crate::call::{Call, Exit, missing};
use crate::content::{failure, form, text};

pub(super) const NAMES: &[&str] = &[
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

/// Long enough to be observed while running, short enough to wait for.
const SHORT_WORK: Duration = Duration::from_millis(200);

/// Poll interval for clients; short, because they are tests.
const POLL_MILLISECONDS: u64 = 100;

pub(super) async fn call(name: &str, call: &Call) -> Outcome {
    match name {
        "slow_compute" => slow_compute(call).await,
        "failing_job" => {
            require_tasks(call)?;
            work_or_start(call, SHORT_WORK, failure("The job failed, as it always does")).await
        }
        "protocol_error_job" => protocol_error(call),
        "confirm_delete" => confirm_delete(call).await,
        "multi_input" => ask_two_things(call).await,
        "test_tool_with_task" => ask_then_work(call).await,
        _ => Err(unknown(name)),
    }
}

fn knows_tasks(call: &Call) -> bool {
    call.capabilities().supports_tasks()
}

/// Legacy clients do not support tasks, and get a delayed result instead.
fn require_tasks(call: &Call) -> Result<(), Exit> {
    if call.is_modern() && !knows_tasks(call) {
        return Err(Exit::Fail(missing(json!({ "extensions": { TASKS_EXTENSION_ID: {} } }))));
    }
    Ok(())
}

fn start(call: &Call, work: impl FnOnce(TaskContext) -> TaskFuture) -> CallToolResponse {
    let options = TaskOptions::new().with_poll_interval_ms(POLL_MILLISECONDS);
    CallToolResponse::Task(CreateTaskResult::new(call.world.tasks.spawn(options, work)))
}

/// Works for a while, as a task if the client supports them.
async fn work_or_start(call: &Call, time: Duration, answer: CallToolResponse) -> Outcome {
    if !knows_tasks(call) {
        sleep(time).await;
        return Ok(answer);
    }
    let answer = complete(answer);
    Ok(start(call, move |task| {
        Box::pin(async move {
            tokio::select! {
                () = sleep(time) => Ok(answer),
                () = task.cancelled() => Err(TaskExit::Cancelled),
            }
        })
    }))
}

fn complete(answer: CallToolResponse) -> CallToolResult {
    match answer {
        CallToolResponse::Complete(result) => result,
        _ => unreachable!("the work of a task ends with a result"),
    }
}

async fn slow_compute(call: &Call) -> Outcome {
    let seconds = call.arguments.get("seconds").and_then(Value::as_f64).unwrap_or(1.0);
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| ErrorData::invalid_params("seconds is not a length of time", None))?;
    let answer = text(format!("Computed {} for {seconds} s", call.text("label")));
    work_or_start(call, time, answer).await
}

fn protocol_error(call: &Call) -> Outcome {
    let error = || ErrorData::internal_error("The job broke down, as it always does", None);
    if !knows_tasks(call) {
        return Err(Exit::Fail(error()));
    }
    Ok(start(call, move |_| Box::pin(async move { Err(TaskExit::Error(error())) })))
}

/// Sends an input request from a task and waits for the response.
async fn ask_inside(task: &TaskContext, key: &str, question: Value) -> Result<Value, TaskExit> {
    let question: InputRequest = from_value(question).expect("invariant: it is a question");
    task.request_input(key, question).await
}

async fn confirm_delete(call: &Call) -> Outcome {
    let name = call.text("filename").to_owned();
    let confirm = json!({ "confirm": { "type": "boolean" } });
    let question = form(&format!("Really delete {name}?"), &confirm, &["confirm"]);
    let answer = move |given: &Value| match given["content"]["confirm"].as_bool() {
        Some(true) => text(format!("Deleted {name}")),
        _ => text(format!("Kept {name}")),
    };
    if !knows_tasks(call) {
        let answers = call.ask(json!({ "confirm": question }), None).await?;
        return Ok(answer(&answers["confirm"]));
    }
    Ok(start(call, move |task| {
        Box::pin(async move {
            let given = ask_inside(&task, "confirm", question).await?;
            Ok(complete(answer(&given)))
        })
    }))
}

async fn ask_two_things(call: &Call) -> Outcome {
    let question = |message| form(message, &json!({ "name": { "type": "string" } }), &["name"]);
    let (first, second) = (question("First name?"), question("Second name?"));
    let answer = |first: &Value, second: &Value| {
        let (first, second) = (&first["content"]["name"], &second["content"]["name"]);
        text(format!("The names are {first} and {second}"))
    };
    if !knows_tasks(call) {
        let answers = call.ask(json!({ "first": first, "second": second }), None).await?;
        return Ok(answer(&answers["first"], &answers["second"]));
    }
    Ok(start(call, move |task| {
        Box::pin(async move {
            let (first, second) = tokio::try_join!(
                ask_inside(&task, "first", first),
                ask_inside(&task, "second", second),
            )?;
            Ok(complete(answer(&first, &second)))
        })
    }))
}

/// Rounds first, then a task whose result contains the input of the round.
async fn ask_then_work(call: &Call) -> Outcome {
    require_tasks(call)?;
    let name = json!({ "name": { "type": "string" } });
    let question = form("What is your name?", &name, &["name"]);
    let answers = call.ask(json!({ "user_name": question }), None).await?;
    let name = answers["user_name"]["content"]["name"].as_str().unwrap_or_default();
    work_or_start(call, SHORT_WORK, text(format!("Worked for {name}"))).await
}
