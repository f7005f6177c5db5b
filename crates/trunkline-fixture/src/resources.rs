//! The resources.

use rmcp::model::{ErrorData, ReadResourceResponse};
use serde_json::{Value, from_value, json};

use crate::content::PICTURE;
use crate::world::WATCHED;

/// Serves `resources/read`.
pub(crate) fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let Some(content) = content(uri) else {
        let message = format!("There is no resource {uri}");
        return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))));
    };
    let result = json!({ "resultType": "complete", "contents": [content] });
    Ok(ReadResourceResponse::Complete(from_value(result).expect("invariant: it is a resource")))
}

fn content(uri: &str) -> Option<Value> {
    let text = |text: &str| json!({ "uri": uri, "mimeType": "text/plain", "text": text });
    Some(match uri {
        "test://static-text" => text("This is the content of the static text resource."),
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PICTURE }),
        WATCHED => text("This is the content of the watched resource."),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = format!("Data for ID: {id}");
            let text = json!({ "id": id, "templateTest": true, "data": data }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
    })
}
