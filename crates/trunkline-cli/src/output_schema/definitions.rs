//! Definitions that several documents share.

use serde_json::{Value, json};

use super::keywords::{
    Member, any_object, boolean, count, document, list, nullable, object, reference, text, word,
};

/// The definition of a name; null if there is none.
pub(super) fn named(name: &str) -> Value {
    match name {
        "error" => error(),
        "failure" => object(&failure()),
        "location" => object(&location()),
        "hidden" => hidden(),
        "renamed" => renamed(),
        "setAside" => set_aside(),
        "diagnostic" => diagnostic(),
        "server" => object(&server()),
        "service" => service(),
        _ => Value::Null,
    }
}

const FAILURE_KINDS: &[&str] = &[
    "usage",
    "unknown",
    "unavailable",
    "bad-arguments",
    "refused",
    "no-answer",
    "store",
    "nested",
    "failed",
];

/// The document of a command that failed.
fn error() -> Value {
    let mut members = failure();
    members.push(("exitCode", count(), "The exit code of the command."));
    document(&[("error", object(&members), "Why the command failed.")])
}

fn failure() -> Vec<Member> {
    vec![
        ("kind", word(FAILURE_KINDS), ""),
        ("message", text(), ""),
        ("server", nullable(text()), "The server that it concerns."),
        ("hint", nullable(text()), "What to do."),
        ("suggestions", list(text()), "Similar names."),
    ]
}

fn location() -> Vec<Member> {
    vec![
        ("file", text(), ""),
        ("line", count(), "From 1."),
        ("column", count(), "From 1."),
        ("endLine", count(), ""),
        ("endColumn", count(), ""),
    ]
}

/// A rule that decides on an item.
pub(super) fn reason() -> Vec<Member> {
    vec![
        ("rule", text(), "The rule that decides."),
        ("reason", text(), ""),
        ("hint", nullable(text()), "What to change."),
        ("location", nullable(reference("location")), "Where the rule is written."),
    ]
}

fn hidden() -> Value {
    let mut members = reason();
    members.push(("kind", text(), "`tool`, `prompt`, `resource` or `resource template`."));
    members.push(("name", text(), "The name that models would see."));
    members.push(("server", text(), ""));
    object(&members)
}

fn renamed() -> Value {
    object(&[
        ("name", text(), "The name that models see."),
        ("kind", text(), ""),
        ("server", text(), ""),
        ("own", text(), "The name that the server has for it."),
        ("plain", nullable(text()), "The name that it cannot have."),
        ("reason", nullable(text()), "Why it cannot have that name."),
    ])
}

fn set_aside() -> Value {
    object(&[
        ("server?", text(), ""),
        ("kind", text(), ""),
        ("name", nullable(text()), ""),
        ("reason", text(), "Why it is not used."),
    ])
}

fn diagnostic() -> Value {
    let mut related = location();
    related.push(("label", text(), ""));
    let mut members = vec![
        ("severity", word(&["error", "warning", "hint", "note"]), ""),
        ("code", text(), "A code of docs/diagnostics.md."),
        ("message", text(), ""),
        ("label", nullable(text()), "What is wrong at the location."),
        ("help", nullable(text()), "What to do."),
        ("server", nullable(text()), ""),
        ("related", list(object(&related)), "Other locations."),
    ];
    let place = ["file?", "line?", "column?", "endLine?", "endColumn?"];
    let schemas = [text(), count(), count(), count(), count()];
    members.extend(place.into_iter().zip(schemas).map(|(key, schema)| (key, schema, "")));
    object(&members)
}

/// The status of a server. One that is not started has only the first members.
pub(super) fn server() -> Vec<Member> {
    vec![
        ("name", text(), ""),
        ("state", text(), "Such as `ready`, `failed`, `needs-login`, `disabled` or `not-trusted`."),
        ("transport?", nullable(text()), ""),
        ("error?", nullable(text()), "Why it is not ready."),
        ("hint?", nullable(text()), "What to do."),
        ("protocol?", nullable(text()), "The negotiated version of MCP."),
        ("serverInfo?", nullable(any_object()), "`Implementation` of MCP."),
        ("capabilities?", nullable(any_object()), "`ServerCapabilities` of MCP."),
        ("tools?", count(), "The number of its tools."),
        ("setAside?", list(reference("setAside")), "What it sent and is not used."),
        ("nextAttemptMs?", nullable(count()), "The time until it is started again."),
        ("restarts?", count(), ""),
        ("notRemembered?", nullable(text()), "Why its lists are not cached."),
        ("stderr?", list(text()), "The last lines of its standard error."),
        ("pid?", nullable(count()), ""),
        ("uptimeMs?", nullable(count()), ""),
        ("calls?", count(), ""),
        ("failures?", count(), ""),
        ("noise?", count(), "Lines on standard output that are no messages."),
        ("hidden?", list(reference("hidden")), "Tools that are hidden from every caller."),
        ("share?", nullable(text()), "In `ps`: how clients share it."),
    ]
}

fn service() -> Value {
    object(&[
        ("protocol", count(), "The version of its protocol."),
        ("build", text(), "The version of the program."),
        ("pid", count(), ""),
    ])
}

/// A definition of an item as a model gets it.
pub(super) fn item(kind: &str) -> Value {
    let mut schema = any_object();
    schema["description"] = json!(format!("`{kind}` of the MCP specification"));
    schema
}

/// The schema of a member that says whether something happened.
pub(super) fn flag(key: &'static str, meaning: &'static str) -> Member {
    (key, boolean(), meaning)
}
