//! The prompts, and completion of their arguments.

use rmcp::model::{CompleteRequestParams, ErrorData, GetPromptResponse, Reference};
use serde_json::{Value, from_value, json};

use crate::call::{Call, Exit};
use crate::content::{PICTURE, form};

/// Completions for `arg1` of `test_prompt_with_arguments`.
const PLACES: &[&str] = &["paris", "park", "party"];

/// Serves `prompts/get`.
pub(crate) async fn get(name: &str, call: &Call) -> Result<GetPromptResponse, ErrorData> {
    match messages(name, call).await {
        Ok(messages) => {
            let prompt = json!({ "resultType": "complete", "messages": messages });
            Ok(GetPromptResponse::Complete(from_value(prompt).expect("invariant: it is a prompt")))
        }
        Err(Exit::Ask(questions)) => Ok(GetPromptResponse::InputRequired(questions)),
        Err(Exit::Fail(error)) => Err(error),
    }
}

async fn messages(name: &str, call: &Call) -> Result<Vec<Value>, Exit> {
    Ok(match name {
        "test_simple_prompt" => vec![said("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (call.text("arg1"), call.text("arg2"));
            vec![said(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": call.text("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            vec![
                message(&json!({ "type": "resource", "resource": resource })),
                said("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            message(&json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" })),
            said("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let context = json!({ "context": { "type": "string" } });
            let question = form("What context should the prompt use?", &context, &["context"]);
            let answers = call.ask(json!({ "user_context": question }), None).await?;
            let context = answers["user_context"]["content"]["context"].as_str();
            vec![said(&format!("Use this context: {}", context.unwrap_or_default()))]
        }
        "test_added_prompt" if call.world.has_added_prompt() => vec![said("I am here for now.")],
        _ => {
            let message = format!("Unknown prompt: {name}");
            return Err(Exit::Fail(ErrorData::invalid_params(message, None)));
        }
    })
}

fn message(content: &Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn said(text: &str) -> Value {
    message(&json!({ "type": "text", "text": text }))
}

/// The values of an argument that start with the given text.
pub(crate) fn complete(request: &CompleteRequestParams) -> Vec<String> {
    let is_known = matches!(
        &request.r#ref,
        Reference::Prompt(prompt) if prompt.name == "test_prompt_with_arguments"
    );
    if !is_known || request.argument.name != "arg1" {
        return Vec::new();
    }
    let begins = |place: &&&str| place.starts_with(&request.argument.value);
    PLACES.iter().filter(begins).map(ToString::to_string).collect()
}
