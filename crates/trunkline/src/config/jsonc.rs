//! Parses JSON with comments into a tree with spans.
//!
//! The reader continues after a mistake: a missing comma in one server must not hide the next
//! server, nor the next mistake. Available parser crates stop at the first one.

use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::source::{Source, Span};

pub(super) mod scan;

use scan::{Scanner, curly_hint, uncurled};

/// Maximum nesting. Configurations nest six levels deep; the limit keeps the reader's stack usage
/// small on any thread.
const MAX_DEPTH: usize = 64;

/// Maximum number of values. A hundred thousand servers have fewer; the limit keeps a file of ten
/// million commas from exhausting memory.
const MAX_VALUES: usize = 2_000_000;

/// Mistakes reported before the reader gives up: with more, the text is hardly a configuration.
const MAX_MISTAKES: usize = 50;

/// A value with its span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// A JSON value. Numbers stay text, so that none is rounded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Box<str>),
    String(Box<str>),
    Array(Vec<Node>),
    Object(Vec<ObjectMember>),
    /// Unreadable text, already reported.
    Broken,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectMember {
    pub(crate) key: ObjectKey,
    pub(crate) value: Node,
}

/// A key with its span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectKey {
    pub(crate) text: Box<str>,
    pub(crate) span: Span,
}

impl Node {
    /// The type of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
            Value::Broken => "something unreadable",
        }
    }

    /// The first value under a key, if this is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Object(members) = &self.value else { return None };
        members.iter().find(|member| &*member.key.text == key).map(|member| &member.value)
    }
}

/// A parsed text with every mistake in it.
pub(crate) struct Document {
    /// `None` if the text is empty.
    pub(crate) root: Option<Node>,
    pub(crate) mistakes: Vec<Diagnostic>,
    /// Whether the tree is complete and every value is in its intended place. A surplus comma loses
    /// nothing; an unclosed bracket may.
    pub(crate) is_whole: bool,
}

/// Parses a whole text.
pub(crate) fn read(source: &Arc<Source>) -> Document {
    let mut reader = JsoncReader {
        source,
        scanner: Scanner::new(source.text()),
        open: Vec::new(),
        mistakes: Vec::new(),
        values: 0,
        is_whole: true,
    };
    let root = reader.document();
    Document { root, mistakes: reader.mistakes, is_whole: reader.is_whole }
}

struct JsoncReader<'a> {
    source: &'a Arc<Source>,
    scanner: Scanner<'a>,
    /// The closers of open brackets, innermost last: they decide which bracket a stray closer ends.
    open: Vec<u8>,
    mistakes: Vec<Diagnostic>,
    values: usize,
    is_whole: bool,
}

/// The token after an item inside brackets.
enum NextToken {
    Item,
    End,
}

impl JsoncReader<'_> {
    fn document(&mut self) -> Option<Node> {
        self.trivia();
        if self.scanner.at_end() {
            let empty = Diagnostic::new(Severity::Error, Code::EmptyFile, "there is nothing here")
                .at(self.source, self.scanner.here())
                .help("write at least `{}`, or servers such as `{ \"mcpServers\": { … } }`");
            self.mistakes.push(empty);
            return None;
        }
        let root = self.value();
        self.trivia();
        if !self.scanner.at_end() && !self.gave_up() {
            let span = self.scanner.word_here();
            self.loss(span, "unexpected text after the end of the configuration", |found| {
                found.label("nothing may follow the closing bracket")
            });
        }
        Some(root)
    }

    fn value(&mut self) -> Node {
        self.values += 1;
        if self.values == MAX_VALUES {
            let message =
                format!("more than {MAX_VALUES} values: nothing after this place is used");
            self.is_whole = false;
            self.report(Code::TooLarge, self.scanner.here(), &message, |found| found);
        }
        match self.scanner.peek() {
            Some(b'{') => self.nested(b'}', Self::object),
            Some(b'[') => self.nested(b']', Self::array),
            Some(b'"' | b'\'') => {
                let (text, span) = self.string();
                Node { span, value: Value::String(text) }
            }
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(),
            Some(byte) if scan::starts_word(byte) => self.word(),
            _ => self.no_value(),
        }
    }

    /// Reads the content of brackets, unless it nests too deep.
    fn nested(&mut self, closer: u8, content: fn(&mut Self, Span) -> Value) -> Node {
        let opener = self.scanner.advance(1);
        if self.open.len() >= MAX_DEPTH {
            self.scanner.skip_nested();
            let span = Span::new(opener.start(), self.scanner.offset());
            let deep = format!("brackets nest deeper than {MAX_DEPTH} levels");
            self.is_whole = false;
            self.report(Code::TooDeep, opener, &deep, |found| found.label("too deep from here"));
            return Node { span, value: Value::Broken };
        }
        self.open.push(closer);
        let value = content(self, opener);
        self.open.pop();
        Node { span: Span::new(opener.start(), self.scanner.offset()), value }
    }

    fn object(&mut self, opener: Span) -> Value {
        let mut members = Vec::new();
        while let NextToken::Item = self.next_item(b'}', opener) {
            let Some(key) = self.key() else { continue };
            self.colon(&key);
            self.trivia();
            let value = match self.scanner.peek() {
                Some(b',' | b'}' | b']') | None => self.no_value(),
                _ => self.value(),
            };
            members.push(ObjectMember { key, value });
            self.separator();
        }
        Value::Object(members)
    }

    fn array(&mut self, opener: Span) -> Value {
        let mut items = Vec::new();
        while let NextToken::Item = self.next_item(b']', opener) {
            let before = self.scanner.offset();
            items.push(self.value());
            if self.scanner.offset() == before {
                self.scanner.advance(1);
            }
            self.separator();
        }
        Value::Array(items)
    }

    /// Moves to the next item, or past the closing bracket.
    fn next_item(&mut self, closer: u8, opener: Span) -> NextToken {
        loop {
            self.trivia();
            match self.scanner.peek() {
                _ if self.gave_up() => return NextToken::End,
                None => {
                    let bracket = if closer == b'}' { '{' } else { '[' };
                    let message = format!("this `{bracket}` is never closed");
                    self.loss(opener, &message, |found| found.label("opened here"));
                    return NextToken::End;
                }
                Some(byte) if byte == closer => {
                    self.scanner.advance(1);
                    return NextToken::End;
                }
                Some(b',') => {
                    let span = self.scanner.advance(1);
                    self.mistake(span, "unexpected comma", |found| found.label("remove it"));
                }
                Some(b'}' | b']') if self.closes_outer() => {
                    let message = format!("missing `{}`", char::from(closer));
                    self.loss(opener, &message, |found| found.label("opened here, not closed"));
                    return NextToken::End;
                }
                Some(b'}' | b']') => {
                    let span = self.scanner.advance(1);
                    let message = format!("expected `{}` here", char::from(closer));
                    self.loss(span, &message, |found| found.label("wrong closing bracket"));
                    return NextToken::End;
                }
                Some(_) => return NextToken::Item,
            }
        }
    }

    /// Whether the closing bracket here belongs to the next outer bracket.
    fn closes_outer(&self) -> bool {
        let outer = &self.open[..self.open.len().saturating_sub(1)];
        self.scanner.peek().is_some_and(|byte| outer.last() == Some(&byte))
    }

    /// Moves past the comma after an item; reports a missing one.
    fn separator(&mut self) {
        let after = self.scanner.offset();
        self.trivia();
        match self.scanner.peek() {
            Some(b',') => {
                self.scanner.advance(1);
            }
            Some(b'}' | b']') | None => {}
            Some(byte) if byte == b'"' || byte == b'\'' || scan::starts_value(byte) => {
                self.mistake(Span::new(after, after), "missing comma", |found| {
                    found.label("expected `,` here")
                });
            }
            Some(_) => {
                let span = self.scanner.skip_to_separator();
                self.loss(span, "unexpected text", |found| found.label("expected `,` or an end"));
                if self.scanner.peek() == Some(b',') {
                    self.scanner.advance(1);
                }
            }
        }
    }

    fn key(&mut self) -> Option<ObjectKey> {
        match self.scanner.peek() {
            Some(b'"' | b'\'') => {
                let (text, span) = self.string();
                Some(ObjectKey { text, span })
            }
            Some(byte) if scan::starts_word(byte) => {
                let span = self.scanner.word();
                let text: Box<str> = uncurled(self.scanner.slice(span)).into();
                let help = curly_hint(self.scanner.slice(span));
                self.mistake(span, "keys must be in double quotes", |found| found.maybe_help(help));
                Some(ObjectKey { text, span })
            }
            _ => {
                let span = self.scanner.skip_to_separator();
                self.loss(span, "expected a key", |found| found.label("a key in double quotes"));
                None
            }
        }
    }

    fn colon(&mut self, key: &ObjectKey) {
        self.trivia();
        match self.scanner.peek() {
            Some(b':') => {
                self.scanner.advance(1);
            }
            Some(b'=') => {
                let span = self.scanner.advance(1);
                self.mistake(span, "expected `:` here", |found| found.label("not `=`"));
            }
            _ => {
                self.loss(key.span, "missing `:` after a key", |found| {
                    found.label("a key needs a value")
                });
            }
        }
    }

    fn string(&mut self) -> (Box<str>, Span) {
        let string = self.scanner.string();
        if string.single_quoted {
            self.mistake(string.span, "strings must be in double quotes", |found| {
                found.label("single quotes are not JSON")
            });
        }
        for fault in string.faults {
            if fault.is_unclosed {
                self.scanner.skip_continuation();
            }
            self.is_whole &= !fault.is_unclosed;
            self.mistake(fault.span, fault.message, |found| found.maybe_help(fault.help));
        }
        (string.text, string.span)
    }

    fn number(&mut self) -> Node {
        let span = self.scanner.word();
        let text = self.scanner.slice(span);
        if scan::is_number(text) {
            return Node { span, value: Value::Number(text.into()) };
        }
        self.mistake(span, "this is not a JSON number", |found| {
            found.label("expected something like 30, 0.5 or 1e3")
        });
        Node { span, value: Value::Broken }
    }

    fn word(&mut self) -> Node {
        let span = self.scanner.word();
        let value = match self.scanner.slice(span) {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            other => {
                let help = match other.to_ascii_lowercase().as_str() {
                    "true" | "yes" | "on" => "write `true`",
                    "false" | "no" | "off" => "write `false`",
                    "none" | "nil" | "undefined" | "nan" => "write `null`",
                    _ => "put text in double quotes",
                };
                let curly = curly_hint(other);
                self.mistake(span, "this is not a JSON value", |found| {
                    found.help(help).maybe_help(curly)
                });
                Value::Broken
            }
        };
        Node { span, value }
    }

    fn no_value(&mut self) -> Node {
        let span = self.scanner.here();
        self.mistake(span, "expected a value", |found| {
            found.label("a string, number, object, array, true, false or null")
        });
        Node { span, value: Value::Broken }
    }

    /// Skips white space and comments.
    fn trivia(&mut self) {
        while let Some(fault) = self.scanner.trivia() {
            self.is_whole &= !fault.is_unclosed;
            self.mistake(fault.span, fault.message, |found| found.maybe_help(fault.help));
        }
    }

    fn gave_up(&self) -> bool {
        self.mistakes.len() > MAX_MISTAKES || self.values >= MAX_VALUES
    }

    /// Reports a mistake after which the tree may be incomplete, or values misplaced.
    fn loss(&mut self, span: Span, message: &str, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.is_whole = false;
        self.report(Code::Syntax, span, message, more);
    }

    fn mistake(&mut self, span: Span, message: &str, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.report(Code::Syntax, span, message, more);
    }

    fn report(
        &mut self,
        code: Code,
        span: Span,
        message: &str,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if self.mistakes.len() < MAX_MISTAKES {
            let found = Diagnostic::new(Severity::Error, code, message).at(self.source, span);
            self.mistakes.push(more(found));
        } else if self.mistakes.len() == MAX_MISTAKES {
            self.is_whole = false;
            let message = "too many mistakes: nothing after this place is used";
            let found = Diagnostic::new(Severity::Error, code, message).at(self.source, span);
            self.mistakes.push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Option<Node>, Vec<String>) {
        let source = Arc::new(Source::new("test.json", text));
        let document = read(&source);
        let mistakes = document.mistakes.iter().map(|found| {
            let place = found.location.as_ref().unwrap().start();
            format!("{}:{} {}", place.line, place.column, found.message)
        });
        (document.root, mistakes.collect())
    }

    fn keys(node: &Node) -> Vec<&str> {
        let Value::Object(members) = &node.value else { panic!("not an object: {node:?}") };
        members.iter().map(|member| &*member.key.text).collect()
    }

    #[test]
    fn comments_trailing_commas_and_crlf_are_accepted() {
        let text = "{ // one\r\n  \"a\": [1, 2,], /* two */ \"b\": \"x\\u00e9\\n\",\r\n}";
        let (root, mistakes) = read_text(text);
        assert_eq!(mistakes, Vec::<String>::new());
        let root = root.unwrap();
        assert_eq!(keys(&root), ["a", "b"]);
        assert_eq!(root.get("b").unwrap().value, Value::String("xé\n".into()));
    }

    #[test]
    fn reading_goes_on_after_each_mistake() {
        let text =
            "{\n \"a\": 1\n \"b\" 2,\n c: True,\n \"d\": 'x',\n \"e\": ,\n \"f\": 01, \"g\": 3 }";
        let (root, mistakes) = read_text(text);
        assert_eq!(keys(&root.unwrap()), ["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(
            mistakes,
            [
                "2:8 missing comma",
                "3:2 missing `:` after a key",
                "4:2 keys must be in double quotes",
                "4:5 this is not a JSON value",
                "5:7 strings must be in double quotes",
                "6:7 expected a value",
                "7:7 this is not a JSON number",
            ]
        );
    }

    #[test]
    fn an_unclosed_bracket_is_reported_where_it_was_opened() {
        assert_eq!(read_text("{ \"a\": {").1.len(), 2);
        let (root, mistakes) = read_text("{ \"a\": [1, 2 }");
        assert_eq!(keys(&root.unwrap()), ["a"]);
        assert_eq!(mistakes, ["1:8 missing `]`"]);
    }

    #[test]
    fn windows_paths_get_a_hint_about_backslashes() {
        let source = Arc::new(Source::new("x", r#"{"command": "C:\Users\me"}"#));
        let document = read(&source);
        assert!(document.mistakes[0].help.as_ref().unwrap().contains(r"\\"));
    }

    #[test]
    fn nesting_is_bounded_without_recursion() {
        let text = format!("{{\"a\": {}1{}, \"b\": 2}}", "[".repeat(100_000), "]".repeat(100_000));
        let (root, mistakes) = read_text(&text);
        assert_eq!(keys(&root.unwrap()), ["a", "b"]);
        assert_eq!(mistakes, ["1:70 brackets nest deeper than 64 levels"]);
    }

    #[test]
    fn a_text_that_is_no_configuration_is_given_up_early() {
        let (_, mistakes) = read_text(&"{ ? ".repeat(100_000));
        assert!(mistakes.len() <= MAX_MISTAKES + 1, "{}", mistakes.len());
    }
}
