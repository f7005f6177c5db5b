//! Adds and removes members of JSON objects as replacements of text.

use std::ops::Range;

use serde_json::{Map, Value};

use super::error::EditError;
use super::fields;
use super::json_tree::{JsonContent, JsonMember, JsonNode, parse, skip_comment};
use super::text::{self, Splice};

/// The indentation where a file has none to follow.
const DEFAULT_INDENT: &str = "  ";

/// Longest array that is written on one line, in characters.
const MAX_INLINE_ARRAY: usize = 80;

/// Adds or replaces the value at a path of keys, and adds the objects on the way.
pub(crate) fn insert(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let Some(root) = parse(text)? else { return Ok(new_document(text, path, value)) };
    let style = JsonStyle::of(text, &root);
    let mut node = &root;
    let mut parent = "";
    for (depth, key) in path.iter().enumerate() {
        let rest = path.get(depth..).unwrap_or_default();
        if node.is_null() {
            let with = style.pretty(&nested(rest, value), text::line_indent(text, node.span.start));
            return Ok(text::apply(text, vec![Splice::replace(node.span.clone(), with)]));
        }
        let JsonContent::Object(members) = &node.content else {
            return Err(EditError::wrong_type(text, node.span.start, parent, "an object"));
        };
        let Some(member) = members.iter().find(|member| member.key == *key) else {
            let value = nested(rest.get(1..).unwrap_or_default(), value);
            let place = ObjectPlace { text, node, members };
            return Ok(text::apply(text, place.add(key, &value, &style)));
        };
        if depth + 1 == path.len() {
            let with = if text::starts_line(text, member.start) {
                style.pretty(value, text::line_indent(text, member.start))
            } else {
                compact(value)
            };
            return Ok(text::apply(text, vec![Splice::replace(member.value.span.clone(), with)]));
        }
        node = &member.value;
        parent = key;
    }
    Ok(text.to_owned())
}

/// Removes the member at a path of keys. `None` if there is none.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    remove_if(text, path, |_, _| true)
}

/// Removes the member at a path of keys if it is an empty object without comments, and not the only member.
pub(crate) fn remove_empty(text: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    remove_if(text, path, |place, member| {
        let span = member.value.span.clone();
        let inside = text::slice(text, span).strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        place.members.len() > 1 && inside.is_some_and(|it| it.trim().is_empty())
    })
}

fn remove_if(
    text: &str,
    path: &[&str],
    is_meant: impl Fn(&ObjectPlace<'_>, &JsonMember) -> bool,
) -> Result<Option<String>, EditError> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut node = &root;
    for (depth, key) in path.iter().enumerate() {
        let JsonContent::Object(members) = &node.content else { return Ok(None) };
        let Some(index) = members.iter().position(|member| member.key == *key) else {
            return Ok(None);
        };
        let Some(member) = members.get(index) else { return Ok(None) };
        if depth + 1 == path.len() {
            let place = ObjectPlace { text, node, members };
            let is_meant = is_meant(&place, member);
            return Ok(is_meant.then(|| text::apply(text, place.remove(index))));
        }
        node = &member.value;
    }
    Ok(None)
}

/// A file for a text without a value: its comments stay.
fn new_document(text: &str, path: &[&str], value: &Value) -> String {
    let style = JsonStyle { indent: DEFAULT_INDENT.to_owned(), line_break: text::line_break(text) };
    let document = style.pretty(&nested(path, value), "");
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { style.line_break };
    format!("{text}{separator}{document}{}", style.line_break)
}

/// The value inside of one object per key.
fn nested(path: &[&str], value: &Value) -> Value {
    let wrap = |inner, key: &&str| Value::Object(Map::from_iter([((*key).to_owned(), inner)]));
    path.iter().rev().fold(value.clone(), wrap)
}

/// An object whose members change.
struct ObjectPlace<'a> {
    text: &'a str,
    node: &'a JsonNode,
    members: &'a [JsonMember],
}

impl ObjectPlace<'_> {
    /// Adds a member after the last one.
    fn add(&self, key: &str, value: &Value, style: &JsonStyle) -> Vec<Splice> {
        let Some(last) = self.members.last() else {
            return vec![self.add_first(key, value, style)];
        };
        let end = last.comma.map_or(last.value.span.end, |comma| comma + 1);
        let trivia = LineTrivia::after(self.text, end);
        let first = self.members.first().unwrap_or(last);
        let own_line = trivia.has_line_comment || text::starts_line(self.text, first.start);
        let at = if own_line { trivia.line } else { trivia.comments };
        let trailing_comma = if last.comma.is_some() { "," } else { "" };
        let member = if own_line {
            let is_indented = text::starts_line(self.text, last.start);
            let own = text::line_indent(self.text, last.start);
            let outer = text::line_indent(self.text, self.node.span.start);
            let indent =
                if is_indented { own.to_owned() } else { format!("{outer}{}", style.indent) };
            format!("{}{indent}{}", style.line_break, style.member(key, value, &indent))
        } else {
            format!(" {}: {}", quote(key), compact(value))
        };
        let mut splices = vec![Splice::insert(at, format!("{member}{trailing_comma}"))];
        if last.comma.is_none() {
            if at == end {
                return vec![Splice::insert(at, format!(",{member}"))];
            }
            splices.push(Splice::insert(end, ","));
        }
        splices
    }

    /// Adds the first member. [`ObjectPlace::remove`] gives back each kind of empty object.
    fn add_first(&self, key: &str, value: &Value, style: &JsonStyle) -> Splice {
        let (start, end) = (self.node.span.start + 1, self.node.span.end.saturating_sub(1));
        let inside = text::slice(self.text, start..end);
        let outer = text::line_indent(self.text, self.node.span.start);
        let indent = format!("{outer}{}", style.indent);
        let line = format!("{}{indent}{}", style.line_break, style.member(key, value, &indent));
        let at = start + inside.trim_end().len();
        if inside.is_empty() {
            return Splice::insert(start, format!("{line}{}{outer}", style.line_break));
        }
        if !inside.contains('\n') {
            return Splice::insert(at, format!(" {}: {}", quote(key), compact(value)));
        }
        // Another line break tells this object from one that was `{}`.
        if at == start {
            return Splice::insert(at, format!("{line}{}", style.line_break));
        }
        let line_end = Some(text::skip_blanks(self.text, at));
        let line_end = line_end.filter(|it| text::ends_line(self.text, *it));
        Splice::insert(line_end.unwrap_or(at), line)
    }

    /// Removes a member with its comma. Comments before and after it stay.
    fn remove(&self, index: usize) -> Vec<Splice> {
        let Some(member) = self.members.get(index) else { return Vec::new() };
        let end = member.comma.map_or(member.value.span.end, |comma| comma + 1);
        let line = text::line_start(self.text, member.start);
        let line_break = text::break_before(self.text, line);
        let own_line = line_break.filter(|_| text::starts_line(self.text, member.start));
        let blank_end = text::skip_blanks(self.text, end);
        let range = match own_line {
            Some(start) if text::ends_line(self.text, blank_end) => start..blank_end,
            Some(start) if self.may_join(index, start, blank_end) => start..end,
            // A comment or another member follows, and takes the place.
            Some(_) => member.start..blank_end,
            None => text::before(self.text, member.start).trim_end_matches([' ', '\t']).len()..end,
        };
        let range = if self.members.len() == 1 { self.widen_only_member(range) } else { range };
        let mut splices = vec![Splice::delete(range)];
        let previous = index.checked_sub(1).and_then(|it| self.members.get(it));
        if let Some(comma) = previous.and_then(|it| it.comma).filter(|_| member.comma.is_none()) {
            splices.push(Splice::delete(comma..comma + 1));
        }
        splices
    }

    /// Whether the bracket at `next` can move to the line that ends at `line_end`.
    fn may_join(&self, index: usize, line_end: usize, next: usize) -> bool {
        let previous = index.checked_sub(1).and_then(|it| self.members.get(it));
        let token =
            previous.map_or(self.node.span.start, |it| it.comma.unwrap_or(it.value.span.end));
        let start = token.max(text::line_start(self.text, line_end));
        let has_line_comment = text::slice(self.text, start..line_end).contains("//");
        text::after(self.text, next).starts_with('}') && !has_line_comment
    }

    /// The range to delete so that an object without other content becomes `{}`.
    fn widen_only_member(&self, range: Range<usize>) -> Range<usize> {
        let (start, end) = (self.node.span.start + 1, self.node.span.end.saturating_sub(1));
        let (before, after) =
            (text::slice(self.text, start..range.start), text::slice(self.text, range.end..end));
        let was_on_line = text::slice(self.text, range.clone()).starts_with(['\r', '\n']);
        if !before.trim().is_empty() || !after.trim().is_empty() || !was_on_line {
            return range;
        }
        match after.matches('\n').count() {
            1 => start..end,
            0 => range,
            // One line break less, as the insertion added one.
            _ => range.start..text::next_line(self.text, range.end).min(end),
        }
    }
}

/// The end of the comments after a member on its line.
struct LineTrivia {
    /// The end of the last comment.
    comments: usize,
    /// The same with the whitespace at the end of the line, unless more text follows.
    line: usize,
    has_line_comment: bool,
}

impl LineTrivia {
    fn after(text: &str, start: usize) -> Self {
        let mut comments = start;
        let mut has_line_comment = false;
        loop {
            let blank_end = text::skip_blanks(text, comments);
            let line = if text::ends_line(text, blank_end) { blank_end } else { comments };
            let Some(end) = skip_comment(text, blank_end) else {
                return Self { comments, line, has_line_comment };
            };
            has_line_comment |= text::after(text, blank_end).starts_with("//");
            comments = end;
        }
    }
}

/// The way in which a file is written.
struct JsonStyle {
    indent: String,
    line_break: &'static str,
}

impl JsonStyle {
    fn of(text: &str, root: &JsonNode) -> Self {
        let indent = indent_step(text, root).unwrap_or_else(|| DEFAULT_INDENT.to_owned());
        Self { indent, line_break: text::line_break(text) }
    }

    fn member(&self, key: &str, value: &Value, indent: &str) -> String {
        format!("{}: {}", quote(key), self.pretty(value, indent))
    }

    /// A value over several lines. Its first line is not indented.
    fn pretty(&self, value: &Value, indent: &str) -> String {
        let (open, close, lines): (_, _, Vec<String>) = match value {
            Value::Object(object) if !object.is_empty() => {
                let inner = format!("{indent}{}", self.indent);
                let line = |(key, value): (&String, &Value)| self.member(key, value, &inner);
                ("{", "}", fields::in_order(object).into_iter().map(line).collect())
            }
            Value::Array(items) if compact(value).chars().count() > MAX_INLINE_ARRAY => {
                let inner = format!("{indent}{}", self.indent);
                ("[", "]", items.iter().map(|item| self.pretty(item, &inner)).collect())
            }
            _ => return compact(value),
        };
        let separator = format!(",{}{indent}{}", self.line_break, self.indent);
        let (line_break, step) = (self.line_break, &self.indent);
        format!(
            "{open}{line_break}{indent}{step}{}{line_break}{indent}{close}",
            lines.join(&separator)
        )
    }
}

/// The indentation of one level: that of the first member on a line of its own.
fn indent_step(text: &str, node: &JsonNode) -> Option<String> {
    let children: Vec<&JsonNode> = match &node.content {
        JsonContent::Object(members) => {
            let first = members.iter().find(|member| text::starts_line(text, member.start));
            if let Some(first) = first {
                let outer = text::line_indent(text, node.span.start);
                let own = text::line_indent(text, first.start).strip_prefix(outer);
                if let Some(step) = own.filter(|step| !step.is_empty()) {
                    return Some(step.to_owned());
                }
            }
            members.iter().map(|member| &member.value).collect()
        }
        JsonContent::Array(items) => items.iter().collect(),
        JsonContent::Scalar(_) => return None,
    };
    children.into_iter().find_map(|child| indent_step(text, child))
}

/// A text in double quotes.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// A value on one line.
fn compact(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", quote(key), compact(value));
            let fields: Vec<_> = fields::in_order(object).into_iter().map(field).collect();
            if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(compact).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}
