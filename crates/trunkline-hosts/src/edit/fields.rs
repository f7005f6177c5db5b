//! The order in which the fields of an entry are written.

use serde_json::{Map, Value};

/// Fields that people expect first. `serde_json` sorts keys by name, which puts `args` before `command`.
const FIRST_FIELDS: &[&str] =
    &["enabled", "disabled", "type", "name", "description", "command", "cmd", "args", "url"];

/// The fields of an object: the well-known ones, then the others by name.
pub(crate) fn in_order(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |key: &str| FIRST_FIELDS.iter().position(|it| *it == key);
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_by_key(|(key, _)| rank(key).unwrap_or(FIRST_FIELDS.len()));
    fields
}
