//! The JSON Schema of a configuration file, generated from the types that decode it (CFG-11).

use serde_json::{Value, json};

use super::decode::{Definitions, FromNode};
use super::raw::FileEntry;

/// A server entry needs at least one of these keys: they define its transport, or toggle it.
const ESSENTIAL_KEYS: &[&str] =
    &["command", "url", "serverUrl", "baseUrl", "httpUrl", "transport", "enabled", "disabled"];

/// The JSON Schema of a configuration file.
///
/// Editors use it to complete keys and to mark mistakes; `trunkline schema` prints it. It accepts
/// every dialect and every unknown key, as the decoder does.
pub fn schema() -> Value {
    let mut definitions = Definitions::new();
    let root = FileEntry::schema(&mut definitions);
    if let Some(Value::Object(server)) = definitions.get_mut("ServerEntry") {
        let one_of_them = ESSENTIAL_KEYS.iter().map(|key| json!({ "required": [key] }));
        server.insert("anyOf".to_owned(), one_of_them.collect());
    }
    if let Some(Value::Object(bundle)) = definitions.get_mut("BundleEntry") {
        bundle.insert("required".to_owned(), json!(["serverId"]));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trunkline configuration",
        "allOf": [root],
        "$defs": definitions,
    })
}
