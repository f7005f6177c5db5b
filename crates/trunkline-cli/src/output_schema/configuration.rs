//! The configuration and its servers: `check`, `config` and `status`.

use serde_json::{Value, json};

use super::definitions::{flag, server};
use super::keywords::{
    any_object, boolean, count, document, list, map, nullable, object, reference, text,
};

pub(super) fn check() -> Vec<Value> {
    let server = object(&[
        ("name", text(), ""),
        ("usable", boolean(), "Whether its entry has no errors."),
        ("enabled?", boolean(), ""),
    ]);
    let counts = object(&[
        ("errors", count(), ""),
        ("warnings", count(), ""),
        ("hints", count(), ""),
        ("notes", count(), ""),
    ]);
    vec![document(&[
        flag("ok", "Whether the exit code is 0."),
        ("hold", nullable(text()), "Why the file starts no server, if it is not trusted."),
        ("sources", list(text()), "The files and variables that were read."),
        ("servers", list(server), ""),
        ("counts", counts, ""),
        ("diagnostics", list(reference("diagnostic")), ""),
    ])]
}

pub(super) fn config() -> Vec<Value> {
    let mut config = document(&[
        ("mcpServers", map(any_object()), "The servers, with `provenance` of each."),
        ("sources", list(text()), "The files and variables that were read."),
        ("hold", nullable(text()), "Why the file starts no server, if it is not trusted."),
        ("broken", list(text()), "Servers whose entries have errors."),
    ]);
    config["description"] =
        "The effective configuration, with the keys of trunkline.json (`trunkline schema`)".into();
    config["additionalProperties"] = true.into();
    vec![config]
}

pub(super) fn status() -> Vec<Value> {
    let mut change = document(&server());
    change["description"] = json!("With `--watch`: a change, one per line");
    vec![document(&[("servers", list(reference("server")), "")]), change]
}
