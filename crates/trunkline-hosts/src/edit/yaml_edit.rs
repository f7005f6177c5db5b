//! Adds and removes members of block mappings and items of block sequences as replacements of text.

use std::ops::Range;

use serde_json::{Map, Value};

use super::error::EditError;
use super::expected::NAME_KEY;
use super::text::{self, Splice};
use super::yaml_tree::{YamlContent, YamlMember, YamlNode, parse};
use super::yaml_write;
use super::{EntryLayout, KeyPath};

/// The indentation where a file has none to follow.
const DEFAULT_STEP: usize = 2;

/// Adds or replaces an entry.
pub(crate) fn insert(
    text: &str,
    path: &KeyPath,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let keys: Vec<&str> = path.keys().collect();
    let root = parse(text)?;
    let step = root.as_ref().and_then(|root| indent_step(text, root)).unwrap_or(DEFAULT_STEP);
    let addition = Addition { text, layout: path.layout(), name, entry, step };
    let Some(root) = root.filter(|root| !root.is_null()) else {
        return Ok(addition.new_document(&keys));
    };
    let mut node = &root;
    let mut parent: Option<&YamlMember> = None;
    for (depth, key) in keys.iter().enumerate() {
        let rest = keys.get(depth..).unwrap_or_default();
        if let Some(parent) = parent.filter(|it| is_empty(&it.value)) {
            return addition.fill(parent, rest);
        }
        let members = block_mapping(text, node, parent)?;
        let Some(member) = members.iter().find(|member| member.key == *key) else {
            let column = column(text, node.span.start)?;
            return Ok(addition.append(node, &addition.nested(rest, column)));
        };
        (node, parent) = (&member.value, Some(member));
    }
    if let Some(parent) = parent.filter(|it| is_empty(&it.value)) {
        return addition.fill(parent, &[]);
    }
    match path.layout() {
        EntryLayout::Map => addition.put_member(node, block_mapping(text, node, parent)?),
        EntryLayout::List => addition.put_item(node, block_sequence(text, node, parent)?),
    }
}

/// Removes an entry. `None` if there is none.
pub(crate) fn remove(text: &str, path: &KeyPath, name: &str) -> Result<Option<String>, EditError> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut node = &root;
    let mut parent = None;
    for key in path.keys() {
        let members = block_mapping(text, node, parent)?;
        let Some(member) = members.iter().find(|member| member.key == key) else { return Ok(None) };
        (node, parent) = (&member.value, Some(member));
    }
    let (range, count, empty) = match path.layout() {
        EntryLayout::Map => {
            let members = block_mapping(text, node, parent)?;
            let Some(member) = members.iter().find(|it| it.key == name) else { return Ok(None) };
            (lines(text, member.key_span.start, &member.value)?, members.len(), " {}")
        }
        EntryLayout::List => {
            let items = block_sequence(text, node, parent)?;
            let Some(item) = items.iter().find(|it| is_named(it, name)) else { return Ok(None) };
            (lines(text, dash(text, item)?, item)?, items.len(), " []")
        }
    };
    let mut splices = vec![Splice::delete(range)];
    if let Some(parent) = parent.filter(|_| count == 1) {
        splices.push(Splice::insert(after_colon(text, parent), empty));
    }
    Ok(Some(text::apply(text, splices)))
}

/// An entry to add, and the file.
struct Addition<'a> {
    text: &'a str,
    layout: EntryLayout,
    name: &'a str,
    entry: &'a Value,
    step: usize,
}

impl Addition<'_> {
    /// The lines of the entry alone.
    fn lines(&self, indent: usize) -> Vec<String> {
        match self.layout {
            EntryLayout::Map => yaml_write::member(self.name, self.entry, indent, self.step),
            EntryLayout::List => yaml_write::item(self.entry, indent, self.step),
        }
    }

    /// The lines of the entry inside of one mapping per key.
    fn nested(&self, keys: &[&str], mut indent: usize) -> Vec<String> {
        let empty = Value::Object(Map::new());
        let mut lines = Vec::new();
        for key in keys {
            let line = yaml_write::member(key, &empty, indent, self.step).concat();
            lines.push(line.trim_end_matches(" {}").to_owned());
            indent += self.step;
        }
        lines.extend(self.lines(indent));
        lines
    }

    fn join(&self, lines: &[String]) -> String {
        lines.join(text::line_break(self.text))
    }

    fn new_document(&self, keys: &[&str]) -> String {
        let (text, line_break) = (self.text, text::line_break(self.text));
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { line_break };
        format!("{text}{separator}{}{line_break}", self.join(&self.nested(keys, 0)))
    }

    /// Adds lines after the last line of a block collection.
    fn append(&self, collection: &YamlNode, lines: &[String]) -> String {
        let at = last_line_end(self.text, collection);
        let with = format!("{}{}", text::line_break(self.text), self.join(lines));
        text::apply(self.text, vec![Splice::insert(at, with)])
    }

    /// Gives a key without a value, or with an empty one, the entry as its value.
    fn fill(&self, parent: &YamlMember, keys: &[&str]) -> Result<String, EditError> {
        let value = &parent.value;
        let start = after_colon(self.text, parent);
        let end = value.span.end.max(start);
        let is_on_line = text::line_end(self.text, start) >= end;
        if !is_on_line || !value.is_plain() {
            let message = "this empty value is written in a way that is not supported; remove it";
            return Err(EditError::unsupported(self.text, value.span.start, message));
        }
        let indent = column(self.text, parent.key_span.start)? + self.step;
        let lines = self.join(&self.nested(keys, indent));
        let line_end = text::line_end(self.text, end);
        let with = format!("{}{lines}", text::line_break(self.text));
        if line_end == end {
            return Ok(text::apply(self.text, vec![Splice::replace(start..end, with)]));
        }
        let splices = vec![Splice::delete(start..end), Splice::insert(line_end, with)];
        Ok(text::apply(self.text, splices))
    }

    fn put_member(&self, node: &YamlNode, members: &[YamlMember]) -> Result<String, EditError> {
        let column = column(self.text, node.span.start)?;
        let Some(member) = members.iter().find(|member| member.key == self.name) else {
            return Ok(self.append(node, &self.lines(column)));
        };
        let end = content_end(self.text, &member.value).max(after_colon(self.text, member));
        let with = self.join(&self.lines(column)).trim_start().to_owned();
        let splice = Splice::replace(member.key_span.start..end, with);
        Ok(text::apply(self.text, vec![splice]))
    }

    fn put_item(&self, node: &YamlNode, items: &[YamlNode]) -> Result<String, EditError> {
        let Some(first) = items.first() else { return Ok(self.text.to_owned()) };
        let column = column(self.text, dash(self.text, first)?)?;
        let Some(item) = items.iter().find(|item| is_named(item, self.name)) else {
            return Ok(self.append(node, &self.lines(column)));
        };
        let range = dash(self.text, item)?..content_end(self.text, item);
        let with = self.join(&self.lines(column)).trim_start().to_owned();
        Ok(text::apply(self.text, vec![Splice::replace(range, with)]))
    }
}

fn is_empty(node: &YamlNode) -> bool {
    match &node.content {
        YamlContent::Mapping(members) => members.is_empty(),
        YamlContent::Sequence(items) => items.is_empty(),
        YamlContent::Scalar(value) => value.is_null(),
        YamlContent::Alias(_) => false,
    }
}

fn is_named(item: &YamlNode, name: &str) -> bool {
    let YamlContent::Mapping(members) = &item.content else { return false };
    let name_of = members.iter().find(|member| member.key == NAME_KEY);
    name_of.is_some_and(|member| member.value.to_value() == name)
}

fn block_mapping<'n>(
    text: &str,
    node: &'n YamlNode,
    parent: Option<&YamlMember>,
) -> Result<&'n [YamlMember], EditError> {
    let YamlContent::Mapping(members) = &node.content else {
        return Err(wrong_type(text, node, parent, "a mapping"));
    };
    check_block(text, node, "mapping `{…}`").map(|()| members.as_slice())
}

fn block_sequence<'n>(
    text: &str,
    node: &'n YamlNode,
    parent: Option<&YamlMember>,
) -> Result<&'n [YamlNode], EditError> {
    let YamlContent::Sequence(items) = &node.content else {
        return Err(wrong_type(text, node, parent, "a list"));
    };
    check_block(text, node, "sequence `[…]`").map(|()| items.as_slice())
}

fn wrong_type(
    text: &str,
    node: &YamlNode,
    parent: Option<&YamlMember>,
    expected: &str,
) -> EditError {
    let key = parent.map_or("", |member| member.key.as_str());
    EditError::wrong_type(text, node.span.start, key, expected)
}

/// Refuses collections that cannot be edited line by line.
fn check_block(text: &str, node: &YamlNode, kind: &str) -> Result<(), EditError> {
    let message = if node.is_flow {
        format!("this is a flow {kind}; write it with one entry per line, then try again")
    } else if !node.is_plain() {
        "values with a tag or an anchor are not supported; edit the file by hand".to_owned()
    } else {
        return Ok(());
    };
    Err(EditError::unsupported(text, node.span.start, message))
}

/// The column of the first character of a line, which may follow the dashes of lists.
fn column(text: &str, at: usize) -> Result<usize, EditError> {
    let before = text::slice(text, text::line_start(text, at)..at);
    if before.chars().all(|char| char == ' ' || char == '-') {
        return Ok(before.len());
    }
    let message = "this line starts in a way that is not supported; edit the file by hand";
    Err(EditError::unsupported(text, at, message))
}

/// The dash of an item of a block sequence.
fn dash(text: &str, item: &YamlNode) -> Result<usize, EditError> {
    let before = text::before(text, item.span.start).trim_end();
    let message = "this item of a list is not supported; edit the file by hand";
    let dash = before.strip_suffix('-').map(str::len);
    dash.ok_or_else(|| EditError::unsupported(text, item.span.start, message))
}

/// The offset after the colon of a member.
fn after_colon(text: &str, member: &YamlMember) -> usize {
    let end = member.key_span.end;
    text::after(text, end).find(':').map_or(end, |found| end + found + 1)
}

/// The end of the content of a node. The spans of block scalars contain the line breaks after them.
fn content_end(text: &str, node: &YamlNode) -> usize {
    text::before(text, node.span.end).trim_end().len()
}

/// The end of the last line of a node, with a comment on it.
fn last_line_end(text: &str, node: &YamlNode) -> usize {
    text::line_end(text, content_end(text, node))
}

/// The lines of an entry, with the line break before them.
fn lines(text: &str, start: usize, value: &YamlNode) -> Result<Range<usize>, EditError> {
    let line = text::line_start(text, start);
    if !text::starts_line(text, start) {
        let message = "this entry does not start a line; edit the file by hand";
        return Err(EditError::unsupported(text, start, message));
    }
    let end = text::line_end(text, content_end(text, value).max(start));
    Ok(match text::break_before(text, line) {
        Some(line_break) => line_break..end,
        None => line..text::next_line(text, end),
    })
}

/// The indentation of one level: that of the first mapping inside of another.
fn indent_step(text: &str, node: &YamlNode) -> Option<usize> {
    let YamlContent::Mapping(members) = &node.content else { return None };
    let own = column(text, node.span.start).ok().filter(|_| !node.is_flow)?;
    members.iter().find_map(|member| {
        let YamlContent::Mapping(_) = &member.value.content else { return None };
        let inner = column(text, member.value.span.start).ok().filter(|_| !member.value.is_flow)?;
        inner.checked_sub(own).filter(|step| *step > 0)
    })
}
