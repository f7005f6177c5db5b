//! Building blocks for results and input requests.

use rmcp::model::CallToolResponse;
use serde_json::{Value, from_value, json};

/// A PNG of one red pixel.
pub(crate) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A WAV file without samples.
pub(crate) const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Creates a tool result from JSON.
pub(crate) fn result(mut value: Value) -> CallToolResponse {
    // Removed again for legacy clients.
    value["resultType"] = json!("complete");
    CallToolResponse::Complete(from_value(value).expect("invariant: it is the result of a tool"))
}

/// A tool result with one text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResponse {
    let text: String = text.into();
    result(json!({ "content": [{ "type": "text", "text": text }] }))
}

/// The result of a failed tool.
pub(crate) fn failure(text: &str) -> CallToolResponse {
    result(json!({ "isError": true, "content": [{ "type": "text", "text": text }] }))
}

/// An elicitation in form mode.
pub(crate) fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": message, "requestedSchema": schema },
    })
}

/// A sampling request.
pub(crate) fn sample(prompt: &str, most_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    json!({
        "method": "sampling/createMessage",
        "params": { "messages": [message], "maxTokens": most_tokens },
    })
}

/// A request for the roots.
pub(crate) fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}
