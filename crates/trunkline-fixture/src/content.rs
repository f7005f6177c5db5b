//! Pieces that tools, prompts and resources answer with.

use rmcp::model::CallToolResponse;
use serde_json::{Value, from_value, json};

/// A picture of one red pixel.
pub(crate) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A sound without a sample.
pub(crate) const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The result of a tool, from its JSON.
pub(crate) fn result(mut value: Value) -> CallToolResponse {
    // Taken out again for legacy clients.
    value["resultType"] = json!("complete");
    CallToolResponse::Complete(from_value(value).expect("invariant: it is the result of a tool"))
}

/// The result of a tool that has only something to say.
pub(crate) fn text(text: impl Into<String>) -> CallToolResponse {
    let text: String = text.into();
    result(json!({ "content": [{ "type": "text", "text": text }] }))
}

/// The result of a tool that failed and says so itself.
pub(crate) fn failure(text: &str) -> CallToolResponse {
    result(json!({ "isError": true, "content": [{ "type": "text", "text": text }] }))
}

/// A question to the user with a form.
pub(crate) fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": message, "requestedSchema": schema },
    })
}

/// A question to the model.
pub(crate) fn sample(prompt: &str, most_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    json!({
        "method": "sampling/createMessage",
        "params": { "messages": [message], "maxTokens": most_tokens },
    })
}

/// A question for the roots.
pub(crate) fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}
