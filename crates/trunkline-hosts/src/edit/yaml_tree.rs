//! Parses one YAML document into a tree with the span of each value.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

use super::error::EditError;
use super::text;

/// Maximum nesting. No host nests its settings deeper, and each level takes a stack frame.
const MAX_YAML_DEPTH: usize = 64;

/// A value and its place in the text.
#[derive(Debug)]
pub(crate) struct YamlNode {
    /// The content, without a tag or anchor. Block collections start at their first key or dash.
    pub(crate) span: Range<usize>,
    pub(crate) content: YamlContent,
    pub(crate) is_flow: bool,
    /// The tag and the anchor, which are only compared.
    properties: Option<String>,
}

/// The value of a node.
#[derive(Debug)]
pub(crate) enum YamlContent {
    Mapping(Vec<YamlMember>),
    Sequence(Vec<YamlNode>),
    Scalar(Value),
    Alias(usize),
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct YamlMember {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: YamlNode,
}

impl YamlNode {
    /// The value, with tags, anchors and aliases in a form that no other value has.
    pub(crate) fn to_value(&self) -> Value {
        let value = match &self.content {
            YamlContent::Mapping(members) => {
                let member = |it: &YamlMember| (it.key.clone(), it.value.to_value());
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            YamlContent::Sequence(items) => items.iter().map(Self::to_value).collect(),
            YamlContent::Scalar(value) => value.clone(),
            YamlContent::Alias(id) => Value::from(format!("\0alias {id}")),
        };
        match &self.properties {
            None => value,
            Some(properties) => Value::Array(vec![Value::from(format!("\0{properties}")), value]),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.content, YamlContent::Scalar(Value::Null))
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.properties.is_none()
    }
}

/// Parses a text. There is no value in a text of whitespace and comments.
pub(crate) fn parse(text: &str) -> Result<Option<YamlNode>, EditError> {
    let mut offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    offsets.push(text.len());
    let offset = |index: usize| offsets.get(index).copied().unwrap_or(text.len());
    let mut builder = YamlBuilder { text, open: Vec::new(), root: None };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                let span = offset(span.start.index())..offset(span.end.index());
                builder.add(event, span)?;
            }
            Err(error) => {
                let at = offset(error.marker().index());
                return Err(EditError::syntax(text, at, error.info()));
            }
        }
    }
    Ok(builder.root)
}

/// A collection that is not complete.
struct YamlFrame {
    span: Range<usize>,
    is_flow: bool,
    properties: Option<String>,
    items: Vec<YamlNode>,
    is_mapping: bool,
}

struct YamlBuilder<'a> {
    text: &'a str,
    open: Vec<YamlFrame>,
    root: Option<YamlNode>,
}

impl YamlBuilder<'_> {
    fn add(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), EditError> {
        match event {
            Event::Scalar(content, style, anchor, tag) => {
                let value = scalar(&content, style);
                let properties = properties(anchor, tag.as_deref());
                let content = YamlContent::Scalar(value);
                self.push(YamlNode { span, content, is_flow: true, properties });
            }
            Event::Alias(id) => {
                let content = YamlContent::Alias(id);
                self.push(YamlNode { span, content, is_flow: true, properties: None });
            }
            Event::SequenceStart(anchor, tag) => {
                self.enter(span, '[', properties(anchor, tag.as_deref()))?;
            }
            Event::MappingStart(anchor, tag) => {
                self.enter(span, '{', properties(anchor, tag.as_deref()))?;
            }
            // The span of a closing bracket goes on to the end of its line.
            Event::SequenceEnd | Event::MappingEnd => self.leave(span.start + 1)?,
            Event::DocumentStart(_) if self.root.is_some() => {
                let message = "files with more than one YAML document are not supported";
                return Err(EditError::unsupported(self.text, span.start, message));
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(
        &mut self,
        span: Range<usize>,
        bracket: char,
        properties: Option<String>,
    ) -> Result<(), EditError> {
        if self.open.len() >= MAX_YAML_DEPTH {
            let message = format!("it nests deeper than {MAX_YAML_DEPTH} levels");
            return Err(EditError::syntax(self.text, span.start, message));
        }
        // The span of a block collection is empty, or that of its tag or anchor.
        let is_flow = text::after(self.text, span.start).starts_with(bracket) && !span.is_empty();
        let is_mapping = bracket == '{';
        self.open.push(YamlFrame { span, is_flow, properties, items: Vec::new(), is_mapping });
        Ok(())
    }

    fn leave(&mut self, end: usize) -> Result<(), EditError> {
        let Some(frame) = self.open.pop() else { return Ok(()) };
        let YamlFrame { span, is_flow, properties, items, is_mapping } = frame;
        let first = items.first().map_or(span.start, |item| item.span.start);
        let last = items.iter().map(|item| item.span.end).max().unwrap_or(end);
        let span = if is_flow { span.start..end } else { first..last };
        let content = if is_mapping {
            YamlContent::Mapping(self.members(items)?)
        } else {
            YamlContent::Sequence(items)
        };
        self.push(YamlNode { span, content, is_flow, properties });
        Ok(())
    }

    /// The members of a mapping whose keys and values alternate.
    fn members(&self, items: Vec<YamlNode>) -> Result<Vec<YamlMember>, EditError> {
        let mut members: Vec<YamlMember> = Vec::new();
        let mut keys = std::collections::HashSet::new();
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let at = key.span.start;
            let YamlContent::Scalar(content) = &key.content else {
                let message = "keys that are collections or aliases are not supported";
                return Err(EditError::unsupported(self.text, at, message));
            };
            let name = match content {
                Value::String(name) => name.clone(),
                // As written: `1` and `true` are names for the hosts.
                _ => text::slice(self.text, key.span.clone()).to_owned(),
            };
            if !keys.insert(name.clone()) {
                return Err(EditError::duplicate_key(self.text, at, &name));
            }
            members.push(YamlMember { key: name, key_span: key.span, value });
        }
        Ok(members)
    }

    fn push(&mut self, node: YamlNode) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(frame) => frame.items.push(node),
        }
    }
}

fn properties(anchor: usize, tag: Option<&Tag>) -> Option<String> {
    let tag = tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
    (anchor > 0 || tag.is_some()).then(|| format!("{anchor} {}", tag.unwrap_or_default()))
}

/// The value of a scalar by the core schema of YAML 1.2.
fn scalar(content: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(content);
    }
    match content {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = content.parse::<i64>() {
        return Value::from(number);
    }
    let is_number = content.contains(|char: char| char.is_ascii_digit())
        && content.chars().all(|char| char.is_ascii_digit() || "+-.eE".contains(char));
    let float = content.parse::<f64>().ok().filter(|_| is_number).and_then(Number::from_f64);
    float.map_or_else(|| Value::from(content), Value::Number)
}
