//! Dispatches tool calls by name.

mod plain;
mod live;
mod slow;
mod rounds;
mod jobs;

use rmcp::model::{CallToolResponse, ErrorData};

use crate::call::{Call, Exit};

/// Result of a tool call.
type Outcome = Result<CallToolResponse, Exit>;

/// Serves `tools/call`.
pub(crate) async fn call(name: &str, call: &Call) -> Result<CallToolResponse, ErrorData> {
    let outcome = if let Some(answer) = plain::call(name, call) {
        Ok(answer)
    } else if let Some(name) = name.strip_prefix("test_input_required_result_") {
        rounds::call(name, call).await
    } else if jobs::NAMES.contains(&name) {
        jobs::call(name, call).await
    } else if name == "test_slow" {
        slow::call(call).await
    } else {
        live::call(name, call).await
    };
    match outcome {
        Ok(answer) => Ok(answer),
        Err(Exit::Ask(questions)) => Ok(CallToolResponse::InputRequired(questions)),
        Err(Exit::Fail(error)) => Err(error),
    }
}

fn unknown(name: &str) -> Exit {
    Exit::Fail(ErrorData::invalid_params(format!("Unknown tool: {name}"), None))
}
