//! Credentials in entries: which ones are written in plain text, and entries with all of them masked.

use serde_json::{Map, Value};
use trunkline::config::{MASK, Server, escape_control, is_credential};

/// A credential that is written in a file, instead of a reference to it.
#[derive(Clone, Debug)]
pub(crate) struct LiteralCredential {
    /// The keys of the objects that lead to it: `env`, `headers`, or those below `oauth`.
    group: &'static [&'static str],
    /// The variable, header or key.
    key: String,
    pub(crate) value: String,
}

impl LiteralCredential {
    /// The name for messages: that of the variable or header, or the path of keys below `oauth`.
    pub(crate) fn name(&self) -> String {
        match self.group {
            ["oauth", ..] => format!("{}.{}", self.group.join("."), self.key),
            _ => self.key.clone(),
        }
    }

    /// Its place in an entry.
    pub(crate) fn place<'e>(&self, entry: &'e mut Value) -> Option<&'e mut Value> {
        let group = self.group.iter().try_fold(entry, |it, key| it.get_mut(*key))?;
        group.get_mut(&self.key)
    }
}

/// The advice on a credential that is not moved.
const ADVICE: &str = "store it with `trunkline secret set NAME`, and write `${secret:NAME}` or `${VARIABLE}` instead";

/// Keys whose values are shown as [`Server::to_json`] masks them.
const MASKED_KEYS: &[&str] =
    &["command", "args", "cwd", "env", "envFile", "url", "headers", "headersCommand", "oauth"];

/// Objects of an entry whose values may be credentials, whatever their keys are.
const NAMED_VALUES: [&[&str]; 2] = [&["env"], &["headers"]];

/// Objects of an entry with settings of a login.
const LOGIN_SETTINGS: [&[&str]; 2] = [&["oauth"], &["oauth", "identityProvider"]];

/// Settings of a login that are credentials.
const LOGIN_CREDENTIALS: &[&str] = &["clientSecret", "privateKey", "assertion", "idToken"];

/// The literal credentials of a server that can be moved to the store for secrets.
pub(super) fn of_server(entry: &Value) -> Vec<LiteralCredential> {
    let mut found = literals_in(entry, &NAMED_VALUES, is_credential);
    found.extend(literals_in(entry, &LOGIN_SETTINGS, |key, _| LOGIN_CREDENTIALS.contains(&key)));
    found
}

fn literals_in(
    entry: &Value,
    groups: &[&'static [&'static str]],
    is_secret: impl Fn(&str, &str) -> bool,
) -> Vec<LiteralCredential> {
    let mut found = Vec::new();
    for &group in groups {
        let members = group.iter().try_fold(entry, |it, key| it.get(*key));
        for (key, value) in members.and_then(Value::as_object).into_iter().flatten() {
            let Some(value) = value.as_str() else { continue };
            if is_secret(key, value) && !value.contains("${") {
                found.push(LiteralCredential { group, key: key.clone(), value: value.to_owned() });
            }
        }
    }
    found
}

/// Notes on all credentials of a server that are written in plain text.
pub(crate) fn credential_notes(server: &Server) -> Vec<String> {
    let named = of_server(&server.to_entry()).into_iter().map(|it| {
        let name = escape_control(&it.name());
        format!("{name} is a credential in plain text; {ADVICE}")
    });
    named.chain(notes_elsewhere(server)).collect()
}

/// Notes on credentials in plain text that cannot be moved, such as one in arguments.
pub(super) fn notes_elsewhere(server: &Server) -> Vec<String> {
    let note = |key| format!("`{key}` has a credential in plain text; {ADVICE}");
    elsewhere(server).into_iter().map(note).collect()
}

/// The keys of an entry that have a credential in plain text which cannot be moved.
fn elsewhere(server: &Server) -> Vec<&'static str> {
    let (masked, entry) = (server.to_json(), server.to_entry());
    let text = |from: &Value, key: &str| from.get(key).map(ToString::to_string).unwrap_or_default();
    // The default of a reference is masked always.
    let masked_default = format!(":-{MASK}}}");
    let is_masked = |key: &str| text(&masked, key).replace(&masked_default, "}").contains(MASK);
    let has_credential = |key: &&&str| is_masked(key) || has_secret_default(&text(&entry, key));
    ["args", "url"].iter().filter(has_credential).copied().collect()
}

/// Whether the default of a reference in a text, `${NAME:-DEFAULT}`, is like a credential.
fn has_secret_default(text: &str) -> bool {
    let mut defaults = text.split(":-").skip(1).filter_map(|after| after.split('}').next());
    defaults.any(|default| is_credential("", default))
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
