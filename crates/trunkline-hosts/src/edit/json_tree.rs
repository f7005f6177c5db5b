//! Parses JSON with comments and trailing commas into a tree with the span of each value.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

use super::error::EditError;
use super::text;

/// Maximum nesting. No host nests its settings deeper, and each level takes a stack frame.
const MAX_JSON_DEPTH: usize = 128;

/// A value and its place in the text.
#[derive(Debug)]
pub(crate) struct JsonNode {
    pub(crate) span: Range<usize>,
    pub(crate) content: JsonContent,
}

/// The value of a node.
#[derive(Debug)]
pub(crate) enum JsonContent {
    Object(Vec<JsonMember>),
    Array(Vec<JsonNode>),
    Scalar(Value),
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct JsonMember {
    pub(crate) key: String,
    pub(crate) start: usize,
    pub(crate) value: JsonNode,
    /// The offset of the comma after the value.
    pub(crate) comma: Option<usize>,
}

impl JsonNode {
    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            JsonContent::Object(members) => {
                let member = |it: &JsonMember| (it.key.clone(), it.value.to_value());
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            JsonContent::Array(items) => items.iter().map(Self::to_value).collect(),
            JsonContent::Scalar(value) => value.clone(),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.content, JsonContent::Scalar(Value::Null))
    }
}

/// Parses a text. There is no value in a text of whitespace and comments.
pub(crate) fn parse(text: &str) -> Result<Option<JsonNode>, EditError> {
    let mut parser = JsonParser { text, at: 0 };
    parser.skip_trivia()?;
    if parser.peek().is_none() {
        return Ok(None);
    }
    let root = parser.value(0)?;
    parser.skip_trivia()?;
    match parser.peek() {
        None => Ok(Some(root)),
        Some(_) => Err(parser.error("there is more text after the end of the value")),
    }
}

/// The offset after a comment, if one starts here. `None` also for a block comment without an end.
pub(crate) fn skip_comment(text: &str, at: usize) -> Option<usize> {
    let rest = text::after(text, at);
    if rest.starts_with("//") {
        return Some(text::line_end(text, at));
    }
    let inside = rest.strip_prefix("/*")?;
    inside.find("*/").map(|length| at + length + 4)
}

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
}

impl JsonParser<'_> {
    fn peek(&self) -> Option<char> {
        text::after(self.text, self.at).chars().next()
    }

    fn error(&self, message: impl Into<String>) -> EditError {
        EditError::syntax(self.text, self.at, message)
    }

    fn unexpected(&self, expected: &str) -> EditError {
        match self.peek() {
            Some(char) => self.error(format!("expected {expected}, found {char:?}")),
            None => self.error(format!("expected {expected}, found the end of the file")),
        }
    }

    fn accept(&mut self, char: char) -> bool {
        let found = self.peek() == Some(char);
        if found {
            self.at += char.len_utf8();
        }
        found
    }

    fn skip_trivia(&mut self) -> Result<(), EditError> {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r') => self.at += 1,
                Some('/') => {
                    let end = skip_comment(self.text, self.at);
                    self.at = end.ok_or_else(|| self.error("this is not a complete comment"))?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonNode, EditError> {
        if depth > MAX_JSON_DEPTH {
            return Err(self.error(format!("it nests deeper than {MAX_JSON_DEPTH} levels")));
        }
        let start = self.at;
        let content = match self.peek() {
            Some('{') => JsonContent::Object(self.members(depth)?),
            Some('[') => JsonContent::Array(self.items(depth)?),
            Some('"') => JsonContent::Scalar(Value::String(self.string()?)),
            _ => JsonContent::Scalar(self.word()?),
        };
        Ok(JsonNode { span: start..self.at, content })
    }

    fn members(&mut self, depth: usize) -> Result<Vec<JsonMember>, EditError> {
        self.at += 1;
        let mut members: Vec<JsonMember> = Vec::new();
        let mut keys = HashSet::new();
        loop {
            self.skip_trivia()?;
            if self.accept('}') {
                return Ok(members);
            }
            if members.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.unexpected("`,` or `}`"));
            }
            let start = self.at;
            if self.peek() != Some('"') {
                return Err(self.unexpected("a key in double quotes or `}`"));
            }
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return Err(EditError::duplicate_key(self.text, start, &key));
            }
            self.skip_trivia()?;
            if !self.accept(':') {
                return Err(self.unexpected("`:`"));
            }
            self.skip_trivia()?;
            let value = self.value(depth + 1)?;
            self.skip_trivia()?;
            let comma = Some(self.at).filter(|_| self.accept(','));
            members.push(JsonMember { key, start, value, comma });
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<JsonNode>, EditError> {
        self.at += 1;
        let mut items = Vec::new();
        let mut may_continue = true;
        loop {
            self.skip_trivia()?;
            if self.accept(']') {
                return Ok(items);
            }
            if !may_continue {
                return Err(self.unexpected("`,` or `]`"));
            }
            items.push(self.value(depth + 1)?);
            self.skip_trivia()?;
            may_continue = self.accept(',');
        }
    }

    fn string(&mut self) -> Result<String, EditError> {
        let rest = text::after(self.text, self.at);
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, char)| {
            let is_end = *char == '"' && !is_escaped;
            is_escaped = *char == '\\' && !is_escaped;
            is_end
        });
        let (end, _) = end.ok_or_else(|| self.error("this text has no closing quote"))?;
        let parsed = serde_json::from_str(text::slice(rest, 0..end + 1));
        let parsed = parsed.map_err(|error| {
            // serde_json counts columns of bytes from 1, and a line break is an error itself.
            let offset = if error.line() > 1 { 0 } else { error.column().saturating_sub(1) };
            EditError::syntax(self.text, self.at + offset, "this text is not valid in JSON")
        })?;
        self.at += end + 1;
        Ok(parsed)
    }

    fn word(&mut self) -> Result<Value, EditError> {
        let rest = text::after(self.text, self.at);
        let is_part = |char: char| char.is_ascii_alphanumeric() || "+-._".contains(char);
        let length = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected("a value"));
        }
        let word = text::slice(rest, 0..length);
        let value = serde_json::from_str(word)
            .map_err(|_| self.error(format!("`{word}` is not a value of JSON")))?;
        self.at += length;
        Ok(value)
    }
}
