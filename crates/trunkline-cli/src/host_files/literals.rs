//! Literal credentials in the entry of a server: found by comparing it with its masked form.

use serde_json::Value;
use trunkline::config::Server;

/// What stands for a secret in output.
const MASK: &str = "***";

/// A credential that is written in a file, instead of a reference to it.
#[derive(Clone, Debug)]
pub(crate) struct LiteralCredential {
    /// The object that has it: `env` or `headers`.
    pub(crate) group: &'static str,
    /// The variable or header.
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The literal credentials of a server.
pub(super) fn of_server(server: &Server, entry: &Value) -> Vec<LiteralCredential> {
    let masked = server.to_json();
    let mut found = Vec::new();
    for group in ["env", "headers"] {
        let Some(members) = entry.get(group).and_then(Value::as_object) else { continue };
        for (name, value) in members {
            let Some(value) = value.as_str() else { continue };
            let is_masked = |shown: &Value| shown.as_str().is_some_and(|it| it.contains(MASK));
            let shown = masked.get(group).and_then(|it| it.get(name));
            if shown.is_some_and(is_masked) && !value.contains("${") {
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

/// Masks values in a text that may contain them as JSON, TOML or YAML strings.
pub(crate) fn mask<'v>(text: &str, values: impl IntoIterator<Item = &'v str>) -> String {
    let mut masked = text.to_owned();
    for value in values.into_iter().filter(|value| !value.is_empty()) {
        let written = Value::from(value).to_string();
        let inner = written.trim_matches('"');
        masked = masked.replace(inner, MASK).replace(value, MASK);
    }
    masked
}
