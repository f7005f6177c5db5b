//! Definitions as a caller sees them: with the exposed name, a note about the server, and every
//! other byte unchanged (TOOL-3).

use super::{DescriptionStyle, View};
use crate::catalog::{Entry, ItemKind, LookupWork};
use crate::config::Trust;
use crate::item::app_links;
use crate::message::Raw;

/// Limit on link lookups in one definition, in units of about a nanosecond: a list has thousands of
/// definitions.
const MAX_LINK_WORK: u64 = 50_000;

/// The definition of an entry under its exposed name, with exposed URIs in links to MCP Apps views.
pub(super) fn definition(view: &View, entry: &Entry, describe: DescriptionStyle) -> Raw {
    let mut definition = entry.definition().clone();
    if entry.kind() == ItemKind::Tool && view.catalog().qualifies_uris() {
        let work = LookupWork::within(MAX_LINK_WORK);
        let exposed = |link: Raw| {
            let known = view.exposed_uri(&entry.server().name, &link.as_str()?, &work)?;
            Some((link, Raw::from_string(&known)))
        };
        let edits: Vec<_> = app_links(&definition).into_iter().filter_map(exposed).collect();
        if !edits.is_empty() {
            definition = definition.replace_slices(&edits);
        }
    }
    if entry.exposed() != entry.name() {
        definition = definition.with(entry.kind().name_key(), &Raw::from_string(entry.exposed()));
    }
    let is_named = matches!(entry.kind(), ItemKind::Tool | ItemKind::Prompt);
    if describe == DescriptionStyle::WithServer && is_named {
        definition = definition.with("description", &description(view, entry));
    }
    definition
}

fn description(view: &View, entry: &Entry) -> Raw {
    let mark = match view.rules().trust(&entry.server().name) {
        Trust::Trusted => "",
        Trust::Untrusted => ", untrusted",
    };
    let server = format!("{}{mark}", entry.server().name);
    let written = entry.definition().get("description");
    Raw::from_string(&match written.as_ref().and_then(Raw::as_str) {
        Some(text) if !text.is_empty() => format!("[{server}] {text}"),
        _ => format!("[{server}]"),
    })
}
