//! Prefixes, separators and lists of names, with their limits.

use serde_json::json;

use crate::config::decode::{Decoder, Definitions, FromNode, WithSpan, word};
use crate::config::diagnostic::Code;
use crate::config::jsonc::Node;
use crate::config::model::Naming;
use crate::config::units::Count;
use crate::name::NamePattern;

/// Longest separator, in characters. Every name is shorter by it.
const MAX_SEPARATOR: usize = 8;

/// Longest prefix; it must fit into an exposed name together with the upstream name.
const MAX_PREFIX: usize = 32;

/// Shortest limit on names: a digest, and a readable part before it.
const MIN_NAME_LENGTH: u32 = 16;

/// The string between server and tool.
#[derive(Clone)]
pub(crate) struct Separator(pub(crate) Box<str>);

/// The prefix of a server's tools; may be empty.
#[derive(Clone)]
pub(crate) struct Prefix(pub(crate) Box<str>);

/// Maximum length of an exposed name.
#[derive(Clone)]
pub(crate) struct NameLength(pub(crate) u32);

/// The only items that may be seen, at least one.
#[derive(Clone)]
pub(crate) struct AllowList(pub(crate) Vec<WithSpan<Box<str>>>);

/// Items that may not be seen.
#[derive(Clone)]
pub(crate) struct DenyList(pub(crate) Vec<WithSpan<Box<str>>>);

/// The entries of a tool list; reports those that are neither names nor patterns. A list with such
/// an entry cannot be used, because its intended meaning is unknown.
fn list_entries(node: &Node, decoder: &mut Decoder<'_>) -> Option<Vec<WithSpan<Box<str>>>> {
    let entries: Vec<WithSpan<Box<str>>> = FromNode::from_node(node, decoder)?;
    let mut are_usable = true;
    for WithSpan { value, span, .. } in &entries {
        if let Err(reason) = NamePattern::of_list(value) {
            let message = "this is neither a name nor a pattern of names";
            let found = decoder.error(Code::BadPattern, *span, message);
            decoder.push(found.help(reason.to_string()));
            are_usable = false;
        }
    }
    are_usable.then_some(entries)
}

/// The JSON Schema of a list entry: no white space around it, and no `!` before it.
fn list_entry_schema() -> serde_json::Value {
    json!({ "type": "string", "pattern": r"^[^!\s](.*\S)?$" })
}

/// A string that is valid in a name that models accept; reports any other.
fn part_of_name(
    node: &Node,
    decoder: &mut Decoder<'_>,
    lengths: std::ops::RangeInclusive<usize>,
) -> Option<Box<str>> {
    let text = word(node, decoder)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if lengths.contains(&text.len()) && text.bytes().all(fits) {
        return Some(text.into());
    }
    let message = format!("{} cannot stand in a tool name", decoder.subject());
    let found = decoder.error(Code::OutOfRange, node.span, message);
    let (least, most) = lengths.into_inner();
    decoder.push(found.label(format!("expected {least} to {most} letters, digits, `_` or `-`")));
    None
}

impl FromNode for Separator {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        part_of_name(node, decoder, 1..=MAX_SEPARATOR).map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "string", "pattern": format!("^[A-Za-z0-9_-]{{1,{MAX_SEPARATOR}}}$") })
    }
}

impl FromNode for Prefix {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        part_of_name(node, decoder, 0..=MAX_PREFIX).map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "string", "pattern": format!("^[A-Za-z0-9_-]{{0,{MAX_PREFIX}}}$") })
    }
}

impl FromNode for NameLength {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Count(length) = Count::from_node(node, decoder)?;
        if (MIN_NAME_LENGTH..=Naming::MAX_LENGTH).contains(&length) {
            return Some(Self(length));
        }
        let message = "this length of names cannot be used";
        let found = decoder.error(Code::OutOfRange, node.span, message);
        decoder.push(found.label(format!("expected {MIN_NAME_LENGTH} to {}", Naming::MAX_LENGTH)));
        None
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "integer", "minimum": MIN_NAME_LENGTH, "maximum": Naming::MAX_LENGTH })
    }
}

impl FromNode for AllowList {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let names = list_entries(node, decoder)?;
        if names.is_empty() {
            let message = "an empty allow-list allows nothing";
            let found = decoder.error(Code::EmptyAllowList, node.span, message);
            let help = "leave it out to allow all tools, or name the tools to allow";
            decoder.push(found.label("no tool in it").help(help));
            return None;
        }
        Some(Self(names))
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "array", "items": list_entry_schema(), "minItems": 1 })
    }
}

impl FromNode for DenyList {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        list_entries(node, decoder).map(Self)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "array", "items": list_entry_schema() })
    }
}
