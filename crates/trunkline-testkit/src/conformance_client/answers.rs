//! Accepting responses of a client: arguments for tools, results for server requests.

use serde_json::{Map, Value, json};
use trunkline::connection::{CallHandler, HandlerFuture, ServerRequest};
use trunkline::item::Item;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::code;

/// A handler that accepts every server request, with default values.
pub(crate) struct AcceptingHandler;

impl CallHandler for AcceptingHandler {
    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        let params = question.params.map(|params| params.to_value()).unwrap_or_default();
        let answer = match &*question.method {
            "elicitation/create" => {
                Ok(json!({ "action": "accept", "content": filled_in(&params["requestedSchema"]) }))
            }
            "sampling/createMessage" => Ok(json!({
                "role": "assistant",
                "model": "none",
                "content": { "type": "text", "text": "a sample" },
            })),
            "roots/list" => Ok(json!({ "roots": [] })),
            method => Err(RpcError::new(code::METHOD_NOT_FOUND, method)),
        };
        Box::pin(async move { answer.map(|answer| Raw::from_value(&answer)) })
    }
}

/// Arguments that fit the schema of a tool.
pub(crate) fn arguments_for(tool: &Item) -> Raw {
    let schema = tool.definition().get("inputSchema").map(|schema| schema.to_value());
    Raw::from_value(&filled_in(&schema.unwrap_or_default()))
}

/// An object with every property of a schema: its default, or a value of its type.
fn filled_in(schema: &Value) -> Value {
    let properties = schema["properties"].as_object();
    let value = |(name, property): (&String, &Value)| (name.clone(), example(property));
    Value::Object(properties.map_or_else(Map::new, |all| all.iter().map(value).collect()))
}

fn example(property: &Value) -> Value {
    let first = |key: &str| property[key].as_array().and_then(|values| values.first()).cloned();
    let chosen = property.get("default").cloned().or_else(|| first("enum"));
    chosen.unwrap_or_else(|| match property["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    })
}
