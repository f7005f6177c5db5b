//! Adds and removes tables and inline tables of TOML as replacements of text.

use std::ops::Range;

use serde_json::Value;

use super::error::{EditError, EditErrorKind};
use super::fields;
use super::json_edit::quote;
use super::text::{self, Splice};
use super::toml_tree::{TomlMember, TomlNode, TomlStatement, parse, statements};

/// Adds or replaces the table at a path of keys.
///
/// A new table goes to the end of the file, except where its parent is an inline table.
pub(crate) fn insert(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    check_types(text, path)?;
    let statements = statements(text);
    if let Some((node, rest)) = inline_parent(&statements, path) {
        return Ok(text::apply(text, insert_inline(text, node, rest, value)?));
    }
    let runs = runs(&statements, path);
    let table = table(path, value, text::line_break(text))?;
    let mut splices: Vec<Splice> = Vec::new();
    let mut is_placed = false;
    for run in &runs {
        let range = run.lines(text);
        if !is_placed && run.has_header {
            splices.push(Splice::replace(range, table.clone()));
            is_placed = true;
        } else {
            splices.push(Splice::delete(run.lines_with_break(text)));
        }
    }
    let mut edited = text::apply(text, splices);
    if !is_placed {
        append(&mut edited, &table, text::line_break(text));
    }
    Ok(edited)
}

/// Removes the table at a path of keys, wherever its parts are. `None` if there is none.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    parse(text)?;
    let statements = statements(text);
    if let Some((node, rest)) = inline_parent(&statements, path) {
        let splices = remove_inline(text, node, rest);
        return Ok((!splices.is_empty()).then(|| text::apply(text, splices)));
    }
    let runs = runs(&statements, path);
    let splices = runs.iter().map(|run| Splice::delete(run.lines_with_break(text)));
    Ok((!runs.is_empty()).then(|| text::apply(text, splices.collect())))
}

/// Refuses a path through a value that is no table.
fn check_types(text: &str, path: &[&str]) -> Result<(), EditError> {
    let root = parse(text)?;
    let mut value = &root;
    let keys = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
    for (depth, key) in keys.iter().enumerate() {
        let Some(next) = value.get(*key) else { return Ok(()) };
        if !next.is_object() {
            let prefix = path.get(..=depth).unwrap_or_default();
            let found = statements(text).into_iter().find(|it| is_prefix(prefix, &it.path));
            let at = found.map_or(0, |statement| statement.span.start);
            return Err(EditError::wrong_type(text, at, key, "a table"));
        }
        value = next;
    }
    Ok(())
}

/// Whether a path starts with the keys of another.
fn is_prefix(prefix: &[&str], path: &[String]) -> bool {
    prefix.len() <= path.len() && prefix.iter().zip(path).all(|(one, other)| one == other)
}

/// The keys after a prefix.
fn strip<'p, 'k>(path: &'p [&'k str], prefix: &[String]) -> Option<&'p [&'k str]> {
    let matches = prefix.iter().zip(path).all(|(one, other)| one == other);
    path.get(prefix.len()..).filter(|rest| matches && !rest.is_empty())
}

/// The inline table that holds a path, and the keys inside of it.
fn inline_parent<'s, 'p, 'k>(
    statements: &'s [TomlStatement],
    path: &'p [&'k str],
) -> Option<(&'s TomlNode, &'p [&'k str])> {
    let of_statement = |statement: &'s TomlStatement| {
        let node = statement.value.as_ref().filter(|node| node.members.is_some())?;
        strip(path, &statement.path).map(|rest| (node, rest))
    };
    let (mut node, mut rest) = statements.iter().find_map(of_statement)?;
    while let Some((inner, keys)) = node.members.iter().flatten().find_map(|member| {
        let inner = Some(&member.value).filter(|node| node.members.is_some())?;
        strip(rest, &member.path).map(|keys| (inner, keys))
    }) {
        (node, rest) = (inner, keys);
    }
    Some((node, rest))
}

fn insert_inline(
    text: &str,
    node: &TomlNode,
    path: &[&str],
    value: &Value,
) -> Result<Vec<Splice>, EditError> {
    let members: &[TomlMember] = node.members.as_deref().unwrap_or_default();
    if let Some(member) = members.iter().find(|it| it.path == path) {
        return Ok(vec![Splice::replace(member.value.span.clone(), inline(value)?)]);
    }
    if let Some(member) = members.iter().find(|it| is_prefix(path, &it.path)) {
        let message = "this server is written with dotted keys in an inline table; edit it by hand";
        return Err(EditError::unsupported(text, member.start, message));
    }
    let assignment = format!("{} = {}", dotted(path), inline(value)?);
    Ok(vec![match members.last() {
        None => Splice::replace(node.span.clone(), format!("{{ {assignment} }}")),
        Some(TomlMember { comma: Some(comma), .. }) => {
            Splice::insert(comma + 1, format!(" {assignment},"))
        }
        Some(last) => Splice::insert(last.value.span.end, format!(", {assignment}")),
    }])
}

fn remove_inline(text: &str, node: &TomlNode, path: &[&str]) -> Vec<Splice> {
    let members: &[TomlMember] = node.members.as_deref().unwrap_or_default();
    let is_part = |member: &TomlMember| is_prefix(path, &member.path);
    if members.iter().all(is_part) {
        return vec![Splice::replace(node.span.clone(), "{}")];
    }
    let mut splices = Vec::new();
    for (index, member) in members.iter().enumerate().filter(|(_, member)| is_part(member)) {
        let start = text::before(text, member.start).trim_end_matches([' ', '\t']).len();
        let end = member.comma.map_or(member.value.span.end, |comma| comma + 1);
        splices.push(Splice::delete(start..end));
        // The comma of the last member that stays.
        let is_last = members.get(index..).unwrap_or_default().iter().all(is_part);
        let kept = members.get(..index).unwrap_or_default().last().filter(|it| !is_part(it));
        let has_no_comma = members.last().is_some_and(|last| last.comma.is_none());
        if let Some(comma) = kept.and_then(|it| it.comma).filter(|_| is_last && has_no_comma) {
            splices.push(Splice::delete(comma..comma + 1));
        }
    }
    splices
}

/// Statements of one table that follow each other.
struct StatementRun {
    span: Range<usize>,
    has_header: bool,
}

impl StatementRun {
    /// The lines of the run without the last line break.
    fn lines(&self, text: &str) -> Range<usize> {
        text::line_start(text, self.span.start)..text::line_end(text, self.span.end)
    }

    /// The lines with one line break, and with the blank line before a header.
    fn lines_with_break(&self, text: &str) -> Range<usize> {
        let Range { mut start, mut end } = self.lines(text);
        let next = text::next_line(text, end);
        let had_break = next > end;
        end = next;
        if self.has_header
            && let Some(line_break) = text::break_before(text, start)
        {
            let is_blank = text::line_start(text, line_break) == line_break;
            if is_blank && line_break > 0 || !had_break {
                start = line_break;
            }
            if is_blank && !had_break {
                start = text::break_before(text, line_break).unwrap_or(line_break);
            }
        }
        start..end
    }
}

/// The runs of statements at or below a path.
fn runs(statements: &[TomlStatement], path: &[&str]) -> Vec<StatementRun> {
    let mut runs: Vec<StatementRun> = Vec::new();
    let mut was_part = false;
    for statement in statements {
        let is_part = is_prefix(path, &statement.path);
        let is_header = statement.value.is_none();
        if is_part {
            // Assignments of the parent can be followed by a header of this table.
            match runs.last_mut().filter(|run| was_part && run.has_header) {
                Some(run) => run.span.end = statement.span.end,
                None => {
                    runs.push(StatementRun { span: statement.span.clone(), has_header: is_header });
                }
            }
        }
        was_part = is_part;
    }
    runs
}

/// Adds a table after a blank line. A text without a line break at its end keeps to have none.
fn append(text: &mut String, table: &str, line_break: &str) {
    let ends_line = text.is_empty() || text.ends_with('\n');
    if !text.is_empty() {
        text.push_str(line_break);
    }
    if !ends_line {
        text.push_str(line_break);
    }
    text.push_str(table);
    if ends_line {
        text.push_str(line_break);
    }
}

/// A table with its header, without a line break at its end.
fn table(path: &[&str], value: &Value, line_break: &str) -> Result<String, EditError> {
    let mut lines = vec![format!("[{}]", dotted(path))];
    for (key, value) in value.as_object().map(fields::in_order).unwrap_or_default() {
        lines.push(format!("{} = {}", bare_or_quoted(key), inline(value)?));
    }
    Ok(lines.join(line_break))
}

fn dotted(path: &[&str]) -> String {
    path.iter().map(|key| bare_or_quoted(key)).collect::<Vec<_>>().join(".")
}

fn bare_or_quoted(key: &str) -> String {
    let is_bare = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { basic_string(key) }
}

/// A basic string: that of JSON, with the one character that only TOML forbids.
fn basic_string(text: &str) -> String {
    quote(text).replace('\u{7f}', "\\u007f")
}

/// A value on one line.
fn inline(value: &Value) -> Result<String, EditError> {
    Ok(match value {
        Value::Null => {
            let message = "an entry in a TOML file cannot have null";
            return Err(EditError::new(EditErrorKind::InvalidEntry, message));
        }
        Value::String(text) => basic_string(text),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(inline).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(object) if object.is_empty() => "{}".to_owned(),
        Value::Object(object) => {
            let field = |(key, value): (&String, &Value)| {
                Ok(format!("{} = {}", bare_or_quoted(key), inline(value)?))
            };
            let fields: Result<Vec<String>, EditError> =
                fields::in_order(object).into_iter().map(field).collect();
            format!("{{ {} }}", fields?.join(", "))
        }
        scalar => scalar.to_string(),
    })
}
