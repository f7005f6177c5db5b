//! Credentials in entries: which ones are written in plain text, and entries with all of them masked.

use serde_json::{Map, Value};
use trunkline::config::{MASK, Server, is_credential};

/// A credential that is written in a file, instead of a reference to it.
#[derive(Clone, Debug)]
pub(crate) struct LiteralCredential {
    /// The object that has it: `env` or `headers`.
    pub(crate) group: &'static str,
    /// The variable or header.
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Keys whose values are shown as [`Server::to_json`] masks them.
const MASKED_KEYS: &[&str] =
    &["command", "args", "cwd", "env", "envFile", "url", "headers", "headersCommand", "oauth"];

/// The literal credentials of a server that can be moved to the store for secrets.
pub(super) fn of_server(entry: &Value) -> Vec<LiteralCredential> {
    let mut found = Vec::new();
    for group in ["env", "headers"] {
        let Some(members) = entry.get(group).and_then(Value::as_object) else { continue };
        for (name, value) in members {
            let Some(value) = value.as_str() else { continue };
            if is_credential(name, value) && !value.contains("${") {
                found.push(LiteralCredential {
                    group,
                    name: name.clone(),
                    value: value.to_owned(),
                });
            }
        }
    }
    found
}

/// The keys of an entry that have a credential in plain text which cannot be moved, such as one in arguments.
pub(super) fn elsewhere(server: &Server) -> Vec<&'static str> {
    let masked = server.to_json();
    let is_masked = |key: &&&str| masked.get(**key).is_some_and(|it| it.to_string().contains(MASK));
    ["args", "url"].iter().filter(is_masked).copied().collect()
}

/// The entry of a server with every secret masked.
pub(super) fn masked_entry(server: &Server) -> Value {
    let (entry, masked) = (server.to_entry(), server.to_json());
    let Value::Object(entry) = entry else { return Value::Null };
    let shown = |(key, value): (String, Value)| match MASKED_KEYS.contains(&key.as_str()) {
        true => (key.clone(), masked.get(&key).cloned().unwrap_or_else(|| MASK.into())),
        false => (key, value),
    };
    Value::Object(entry.into_iter().map(shown).collect::<Map<_, _>>())
}
