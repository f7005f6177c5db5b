//! A definition as a caller sees it: another name, a word about its server, and every other byte as
//! the server wrote it (TOOL-3).

use super::Describe;
use crate::catalog::{Entry, Kind};
use crate::message::Raw;

/// The definition of an entry under its exposed name.
pub(super) fn definition(entry: &Entry, describe: Describe) -> Raw {
    let mut definition = entry.definition().clone();
    if entry.exposed() != entry.name() {
        definition = definition.with(entry.kind().name_key(), &Raw::from_string(entry.exposed()));
    }
    let is_named = matches!(entry.kind(), Kind::Tool | Kind::Prompt);
    if describe == Describe::WithServer && is_named {
        definition = definition.with("description", &description(entry));
    }
    definition
}

fn description(entry: &Entry) -> Raw {
    let server = &entry.server().name;
    let written = entry.definition().get("description");
    Raw::from_string(&match written.as_ref().and_then(Raw::as_str) {
        Some(text) if !text.is_empty() => format!("[{server}] {text}"),
        _ => format!("[{server}]"),
    })
}
