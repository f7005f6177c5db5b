//! Gateways and the background service: `serve`, `up`, `down`, `ps`, `restart`, `logs` and `page`.

use serde_json::{Value, json};

use super::definitions::flag;
use super::keywords::{count, document, list, map, nullable, object, reference, text};

pub(super) fn serve() -> Vec<Value> {
    let scopes = object(&[("agents", map(text()), ""), ("bundles", map(text()), "")]);
    vec![document(&[("url", text(), "The endpoint."), ("scopes", scopes, "Other endpoints.")])]
}

pub(super) fn up() -> Vec<Value> {
    vec![document(&[("service", reference("service"), ""), flag("started", "")])]
}

pub(super) fn down() -> Vec<Value> {
    vec![document(&[("ended", nullable(reference("service")), "Null if none was running.")])]
}

pub(super) fn restart() -> Vec<Value> {
    vec![
        document(&[
            ("restarted", text(), "The server."),
            (
                "directories",
                list(text()),
                "The projects that have it, or else the directories of processes for commands.",
            ),
        ]),
        document(&[
            ("ended", nullable(reference("service")), ""),
            ("service", reference("service"), ""),
        ]),
    ]
}

pub(super) fn ps() -> Vec<Value> {
    let project = object(&[
        ("directory", text(), ""),
        ("clients", count(), ""),
        ("problem", nullable(text()), "Why a changed configuration is not in use."),
        ("servers", list(reference("server")), ""),
    ]);
    let process = object(&[
        ("name", text(), "The server."),
        ("directory", nullable(text()), "With references in place of their values."),
        ("pid", nullable(count()), ""),
        flag("inUse", "Whether a command uses it. Otherwise it waits for the next one."),
        ("seconds", count(), "How long it has been used, or has waited."),
    ]);
    let gateway = object(&[
        ("pid", count(), ""),
        ("url", nullable(text()), "Null if it does not respond."),
        ("directory", nullable(text()), ""),
        ("servers", list(reference("server")), "Those of its clients."),
        ("commands", list(process.clone()), "Processes that it keeps for commands."),
        ("ended", list(text()), "Servers of its ended processes for commands."),
        ("error?", text(), "Why it does not respond."),
    ]);
    vec![document(&[
        ("service", nullable(reference("service")), "Null if none is running."),
        ("projects", list(project), ""),
        ("gateways", list(gateway), "Running `trunkline serve` over HTTP."),
        ("commands?", list(process), "Processes that are kept for commands."),
        (
            "ended?",
            list(text()),
            "Servers of ended processes for commands; `logs` has their last lines.",
        ),
        ("clients?", count(), ""),
        ("connections?", count(), "Server processes and connections."),
        ("page?", nullable(text()), "The address of the page."),
        ("uptimeSeconds?", count(), ""),
    ])]
}

pub(super) fn logs() -> Vec<Value> {
    let mut line = document(&[("line", text(), "")]);
    line["description"] = json!("With `--follow`: one line of the log, one object per line");
    let source = object(&[("directories", list(text()), ""), ("lines", list(text()), "")]);
    let sources = "Of a server: its lines by project.";
    vec![document(&[("lines", list(text()), ""), ("sources?", list(source), sources)]), line]
}

pub(super) fn page() -> Vec<Value> {
    vec![
        document(&[("url", text(), "A link that works once.")]),
        document(&[("token", text(), "With `--token`.")]),
    ]
}
