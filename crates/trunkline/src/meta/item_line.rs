//! One line for a resource, a resource template or a prompt.

use std::fmt::Write as _;

use super::signature::beginning;
use crate::catalog::{Entry, ItemKind};
use crate::config::escape_control;
use crate::message::Raw;

/// Characters of a name or a media type.
const MAX_NAME_CHARS: usize = 80;

/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 140;

/// Arguments of a prompt that are written; the others are counted.
const MAX_ARGUMENTS: usize = 16;

/// The line of a resource, a template or a prompt, with its exposed name.
pub(crate) fn item_line(entry: &Entry) -> String {
    escape_control(&match entry.kind() {
        ItemKind::Prompt | ItemKind::Tool => prompt_line(entry),
        ItemKind::Resource => resource_line(entry),
        ItemKind::ResourceTemplate => format!("[template] {}", resource_line(entry)),
    })
}

/// Whether an item contains a text in lowercase: in its name, URI, title or description.
pub(crate) fn item_contains(entry: &Entry, query: &str) -> bool {
    let texts = entry.definition().get_all(["name", "title", "description"]);
    let has = |text: &str| text.to_lowercase().contains(query);
    has(entry.exposed()) || texts.iter().flatten().filter_map(Raw::as_str).any(|text| has(&text))
}

fn resource_line(entry: &Entry) -> String {
    let keys = ["title", "name", "mimeType", "description"];
    let [title, name, media_type, description] = entry.definition().get_all(keys);
    let mut line = entry.exposed().to_owned();
    let name = title.or(name);
    for (part, characters) in
        [(name, MAX_NAME_CHARS), (media_type, MAX_NAME_CHARS), (description, MAX_DESCRIPTION_CHARS)]
    {
        let text = part.as_ref().and_then(Raw::as_str).unwrap_or_default();
        let text = beginning(&text, characters);
        if !text.is_empty() && text != entry.exposed() {
            let _ = write!(line, " | {text}");
        }
    }
    line
}

fn prompt_line(entry: &Entry) -> String {
    let keys = ["title", "description", "arguments"];
    let [title, description, arguments] = entry.definition().get_all(keys);
    let arguments = arguments.map(|it| it.items()).unwrap_or_default();
    let mut written: Vec<_> = arguments.iter().take(MAX_ARGUMENTS).map(argument).collect();
    if arguments.len() > MAX_ARGUMENTS {
        written.push(format!("… {} more", arguments.len() - MAX_ARGUMENTS));
    }
    let mut line = format!("{}({})", entry.exposed(), written.join(", "));
    let description = description.or(title);
    let description = description.as_ref().and_then(Raw::as_str).unwrap_or_default();
    let description = beginning(&description, MAX_DESCRIPTION_CHARS);
    if !description.is_empty() {
        let _ = write!(line, ": {description}");
    }
    line
}

/// An argument of a prompt: its name, and what it is for.
fn argument(argument: &Raw) -> String {
    let [name, description, required] = argument.get_all(["name", "description", "required"]);
    let text = |raw: &Option<Raw>, characters| {
        let text = raw.as_ref().and_then(Raw::as_str).unwrap_or_default();
        beginning(&text, characters).into_owned()
    };
    let (name, description) = (text(&name, MAX_NAME_CHARS), text(&description, MAX_NAME_CHARS));
    let mark = if required.and_then(|it| it.as_bool()) == Some(true) { "" } else { "?" };
    match description.is_empty() {
        true => format!("{name}{mark}"),
        false => format!("{name}{mark}: {description}"),
    }
}
