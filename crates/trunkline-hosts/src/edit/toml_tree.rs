//! The statements of a TOML text with their spans, and its value.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, parse_document};

use super::error::EditError;

/// A header or an assignment.
#[derive(Debug)]
pub(crate) struct TomlStatement {
    /// All keys from the root.
    pub(crate) path: Vec<String>,
    pub(crate) span: Range<usize>,
    /// The value of an assignment; headers have none.
    pub(crate) value: Option<TomlNode>,
}

/// A value of an assignment.
#[derive(Debug)]
pub(crate) struct TomlNode {
    pub(crate) span: Range<usize>,
    /// The members of an inline table.
    pub(crate) members: Option<Vec<TomlMember>>,
}

/// An assignment in an inline table.
#[derive(Debug)]
pub(crate) struct TomlMember {
    pub(crate) path: Vec<String>,
    pub(crate) start: usize,
    pub(crate) value: TomlNode,
    /// The offset of the comma after the value.
    pub(crate) comma: Option<usize>,
}

/// The value of a text.
pub(crate) fn parse(text: &str) -> Result<Value, EditError> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(text.len(), |span| span.start);
        EditError::syntax(text, at, error.message().trim().replace('\n', "; "))
    })?;
    Ok(table_value(table.get_ref()))
}

fn table_value(table: &DeTable<'_>) -> Value {
    let field = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        (key.get_ref().to_string(), value_of(value.get_ref()))
    };
    Value::Object(table.iter().map(field).collect::<Map<_, _>>())
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            decimal.map_or_else(|_| Value::from(number.as_str()), Value::from)
        }
        DeValue::Float(number) => {
            let finite = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            finite.map_or_else(|| Value::from(number.as_str()), Value::Number)
        }
        DeValue::Boolean(value) => Value::from(*value),
        // Only compared: a form that no other value has.
        DeValue::Datetime(time) => Value::from(format!("\0{time}")),
        DeValue::Array(items) => items.iter().map(|item| value_of(item.get_ref())).collect(),
        DeValue::Table(table) => table_value(table),
    }
}

/// The statements of a text that [`parse`] accepts.
pub(crate) fn statements(text: &str) -> Vec<TomlStatement> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut events: Vec<Event> = Vec::new();
    parse_document(&tokens, &mut events, &mut ());
    let mut reader = StatementReader { source, events, at: 0 };
    let mut statements = Vec::new();
    let mut header: Vec<String> = Vec::new();
    while let Some(event) = reader.next() {
        let start = event.span().start();
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                let (path, end) = reader.header(event.span().end());
                header.clone_from(&path);
                statements.push(TomlStatement { path, span: start..end, value: None });
            }
            EventKind::SimpleKey => {
                let path = [header.clone(), reader.key(event)].concat();
                let value = reader.value();
                let span = start..value.span.end;
                statements.push(TomlStatement { path, span, value: Some(value) });
            }
            _ => {}
        }
    }
    statements
}

struct StatementReader<'a> {
    source: Source<'a>,
    events: Vec<Event>,
    at: usize,
}

impl StatementReader<'_> {
    fn next(&mut self) -> Option<Event> {
        let event = self.events.get(self.at).copied();
        self.at += 1;
        event
    }

    fn decode(&self, event: Event) -> String {
        let mut key = String::new();
        if let Some(raw) = self.source.get(event) {
            raw.decode_key(&mut key, &mut ());
        }
        key
    }

    /// The keys of a header, and its end.
    fn header(&mut self, mut end: usize) -> (Vec<String>, usize) {
        let mut path = Vec::new();
        while let Some(event) = self.next() {
            end = event.span().end();
            match event.kind() {
                EventKind::SimpleKey => path.push(self.decode(event)),
                EventKind::StdTableClose | EventKind::ArrayTableClose => break,
                _ => {}
            }
        }
        (path, end)
    }

    /// A dotted key, to its equals sign.
    fn key(&mut self, first: Event) -> Vec<String> {
        let mut path = vec![self.decode(first)];
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::SimpleKey => path.push(self.decode(event)),
                EventKind::KeyValSep => break,
                _ => {}
            }
        }
        path
    }

    fn value(&mut self) -> TomlNode {
        while let Some(event) = self.next() {
            let span = event.span();
            match event.kind() {
                EventKind::Scalar => {
                    return TomlNode { span: span.start()..span.end(), members: None };
                }
                EventKind::ArrayOpen => return self.array(span.start()),
                EventKind::InlineTableOpen => return self.inline_table(span.start()),
                _ => {}
            }
        }
        TomlNode { span: 0..0, members: None }
    }

    fn array(&mut self, start: usize) -> TomlNode {
        let mut depth = 1;
        let mut end = start;
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::ArrayOpen => depth += 1,
                EventKind::ArrayClose => depth -= 1,
                _ => {}
            }
            end = event.span().end();
            if depth == 0 {
                break;
            }
        }
        TomlNode { span: start..end, members: None }
    }

    fn inline_table(&mut self, start: usize) -> TomlNode {
        let mut members: Vec<TomlMember> = Vec::new();
        let mut end = start;
        while let Some(event) = self.next() {
            end = event.span().end();
            match event.kind() {
                EventKind::InlineTableClose => break,
                EventKind::SimpleKey => {
                    let path = self.key(event);
                    let start = event.span().start();
                    members.push(TomlMember { path, start, value: self.value(), comma: None });
                }
                EventKind::ValueSep => {
                    if let Some(last) = members.last_mut() {
                        last.comma = Some(event.span().start());
                    }
                }
                _ => {}
            }
        }
        TomlNode { span: start..end, members: Some(members) }
    }
}
