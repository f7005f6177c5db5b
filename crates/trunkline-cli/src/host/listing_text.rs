//! A list of items as text: grouped by server, each with its signature and the first line of its description.

use std::fmt::Write as _;

use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::{Trust, escape_control};
use trunkline::message::Raw;
use trunkline::meta::parameter_list;
use trunkline::name::ServerName;

use super::listing::{ListCommand, fate};
use crate::output::report;
use crate::output::text_layout::{Emphasis, TextLayout};

/// Indentation of items below their server, and of their further lines.
const ITEM_INDENT: usize = 2;
const FURTHER_INDENT: usize = 6;

/// Characters of a description in a list.
const MAX_SUMMARY: usize = 140;

/// The list as text. Items of one server are together, in the order of their first one.
pub(crate) fn render(list: &ListCommand<'_>, layout: TextLayout) -> String {
    let seen: Vec<&Entry> = list.visible().collect();
    let hidden = if list.shows_hidden { list.hidden() } else { Vec::new() };
    let mut servers: Vec<&ServerName> = Vec::new();
    let all = seen.iter().copied().chain(hidden.iter().map(|(entry, _)| *entry));
    for entry in all {
        if !servers.contains(&&entry.server().name) {
            servers.push(&entry.server().name);
        }
    }
    let mut text = String::new();
    for server in servers {
        let of_server: Vec<_> =
            seen.iter().filter(|entry| entry.server().name == *server).copied().collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text += &heading(list, server, &of_server, layout);
        for entry in of_server {
            text += &item(entry, layout);
        }
        for (entry, reason) in hidden.iter().filter(|(entry, _)| entry.server().name == *server) {
            let name = escape_control(entry.exposed());
            let reason = format!("  ({}: {})", fate(reason), escape_control(&reason.to_string()));
            text += &layout.wrap_named(&name, &reason, ITEM_INDENT, FURTHER_INDENT);
        }
    }
    text
}

/// The line of a server: `words  2 tools`.
fn heading(
    list: &ListCommand<'_>,
    server: &ServerName,
    entries: &[&Entry],
    layout: TextLayout,
) -> String {
    let mut counts = String::new();
    for kind in list.kinds {
        let count = entries.iter().filter(|entry| entry.kind() == *kind).count();
        if count > 0 {
            let _ = write!(counts, ", {}", report::plural(count, kind.as_str()));
        }
    }
    let mark = match list.view.trust(server) {
        Trust::Trusted => "",
        Trust::Untrusted => ", untrusted",
    };
    let details = format!("{counts}{mark}");
    let details = details.strip_prefix(", ").unwrap_or(&details);
    let name = layout.paint(Emphasis::Heading, &escape_control(server.as_str()));
    match details.is_empty() {
        true => format!("{name}\n"),
        false => format!("{name}  {}\n", layout.paint(Emphasis::Detail, details)),
    }
}

/// The lines of an item.
fn item(entry: &Entry, layout: TextLayout) -> String {
    let name = escape_control(entry.exposed());
    let signature = match entry.kind() {
        ItemKind::Tool => parameter_list(entry.definition()),
        ItemKind::Prompt => prompt_parameters(entry),
        ItemKind::Resource | ItemKind::ResourceTemplate => String::new(),
    };
    let summary = summary(entry);
    match layout.width {
        _ if summary.is_empty() => {
            layout.wrap_named(&name, &signature, ITEM_INDENT, FURTHER_INDENT)
        }
        // One line per item, for other programs.
        None => layout.wrap_named(&name, &format!("{signature}  {summary}"), ITEM_INDENT, 0),
        Some(_) => {
            let signature = layout.wrap_named(&name, &signature, ITEM_INDENT, FURTHER_INDENT);
            signature + &layout.wrap(&summary, FURTHER_INDENT, FURTHER_INDENT)
        }
    }
}

/// The arguments of a prompt: `(page, style?)`.
fn prompt_parameters(entry: &Entry) -> String {
    let arguments = entry.definition().get("arguments").map(|it| it.items()).unwrap_or_default();
    let names = arguments.iter().filter_map(|argument| {
        let [name, required] = argument.get_all(["name", "required"]);
        let is_required = required.is_some_and(|it| it.as_bool() == Some(true));
        let name = escape_control(&name?.as_str()?);
        Some(if is_required { name } else { format!("{name}?") })
    });
    format!("({})", names.collect::<Vec<_>>().join(", "))
}

/// The beginning of an item's description. `trunkline tool` prints all of it.
fn summary(entry: &Entry) -> String {
    let [title, name, description] = entry.definition().get_all(["title", "name", "description"]);
    let line = |raw: Option<Raw>| {
        let text = raw.as_ref().and_then(Raw::as_str)?.into_owned();
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(escape_control(&beginning(line.trim())))
    };
    let called = match entry.kind() {
        ItemKind::Tool | ItemKind::Prompt => None,
        ItemKind::Resource | ItemKind::ResourceTemplate => line(title).or_else(|| line(name)),
    };
    [called, line(description)].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// A text cut after a word.
fn beginning(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_SUMMARY) else { return text.to_owned() };
    let (short, _) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{}…", short.rsplit_once(' ').map_or(short, |(words, _)| words))
}
