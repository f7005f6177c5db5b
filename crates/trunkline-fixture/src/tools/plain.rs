//! Tools with a fixed result.

use rmcp::model::CallToolResponse;
use serde_json::json;

use crate::call::Call;
use crate::content::{PICTURE, SOUND, failure, result, text};

/// The result of a tool, if it is one of these.
pub(super) fn call(name: &str, call: &Call) -> Option<CallToolResponse> {
    Some(match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => result(json!({ "content": [picture()] })),
        "test_audio_content" => {
            let sound = json!({ "type": "audio", "data": SOUND, "mimeType": "audio/wav" });
            result(json!({ "content": [sound] }))
        }
        "test_embedded_resource" => result(json!({ "content": [{ "type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        } }] })),
        "test_multiple_content_types" => several(),
        "test_structured_content" => structured(call),
        "test_error_handling" => failure("This tool intentionally returns an error for testing"),
        "test_added_tool" if call.world.has_added_tool() => text("I am here for now."),
        "test_custom_header" => text(format!("The region is {}.", call.text("region"))),
        "json_schema_2020_12_tool" => text(format!("Got {}", json!(call.arguments))),
        "test_cancelled_count" => text(call.world.cancelled(call.text("label")).to_string()),
        "greet" => text(format!("Hello, {}!", call.text("name"))),
        _ => return None,
    })
}

fn picture() -> serde_json::Value {
    json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" })
}

fn several() -> CallToolResponse {
    let resource = json!({
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": json!({ "test": "data", "value": 123 }).to_string(),
    });
    result(json!({ "content": [
        { "type": "text", "text": "Multiple content types test:" },
        picture(),
        { "type": "resource", "resource": resource },
    ] }))
}

fn structured(call: &Call) -> CallToolResponse {
    let weather = json!({ "city": call.text("city"), "degrees": 21.5 });
    result(json!({
        "content": [{ "type": "text", "text": weather.to_string() }],
        "structuredContent": weather,
    }))
}
