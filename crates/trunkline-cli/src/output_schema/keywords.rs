//! Short forms for the keywords of JSON Schema.

use serde_json::{Map, Value, json};

use super::{SCHEMA_VERSION, SCHEMA_VERSION_KEY};

/// The place of definitions in a schema.
pub(super) const DEFINITIONS: &str = "#/$defs/";

/// A member of an object: its key, with `?` at the end if it may be missing, its schema, and its meaning.
pub(super) type Member = (&'static str, Value, &'static str);

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

/// A number of things.
pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn number() -> Value {
    json!({ "type": "number" })
}

/// One of these words.
pub(super) fn word(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn keyword(name: &str, value: Value) -> Value {
    Map::from_iter([(name.to_owned(), value)]).into()
}

/// A value that may be null.
pub(super) fn nullable(schema: Value) -> Value {
    keyword("anyOf", Value::Array(vec![schema, json!({ "type": "null" })]))
}

pub(super) fn list(items: Value) -> Value {
    let mut list = keyword("items", items);
    list["type"] = "array".into();
    list
}

/// An object with any keys, and values of one kind.
pub(super) fn map(values: Value) -> Value {
    let mut map = keyword("additionalProperties", values);
    map["type"] = "object".into();
    map
}

/// An object that is described elsewhere.
pub(super) fn any_object() -> Value {
    json!({ "type": "object", "additionalProperties": true })
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{DEFINITIONS}{name}") })
}

pub(super) fn object(members: &[Member]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (key, schema, meaning) in members {
        let name = key.trim_end_matches('?');
        if name == *key {
            required.push(name);
        }
        let mut schema = schema.clone();
        if !meaning.is_empty() {
            schema["description"] = (*meaning).into();
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A whole document: an object with its version.
pub(super) fn document(members: &[Member]) -> Value {
    versioned(object(members))
}

/// Adds the version to the schema of an object.
pub(super) fn versioned(mut schema: Value) -> Value {
    schema["properties"][SCHEMA_VERSION_KEY] = json!({ "const": SCHEMA_VERSION });
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(SCHEMA_VERSION_KEY.into());
    }
    schema
}

/// A result of MCP, which has no version of ours. Every member that the server sent is kept.
pub(super) fn mcp_result(kind: &str, members: &[Member]) -> Value {
    let mut schema = object(members);
    schema["description"] =
        format!("`{kind}` of the MCP specification, as the server sent it").into();
    schema["additionalProperties"] = true.into();
    schema
}
