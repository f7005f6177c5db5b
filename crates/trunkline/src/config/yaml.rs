//! YAML, read into the same tree as JSON.
//!
//! Tags and aliases do not exist here: `!` and `*` are what patterns of names are made of, and
//! `tools: [*, !web_*]` is what people write.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::source::Span;
use super::syntax::{Key, Member, Node, Value};

/// Deepest nesting accepted.
const MAX_DEPTH: usize = 64;

/// Why a text is not YAML, and where.
pub(crate) struct NotYaml {
    pub(crate) message: String,
    pub(crate) span: Span,
}

/// Reads one document. `start` is where the text begins in its source.
pub(crate) fn read(text: &str, start: usize) -> Result<Node, NotYaml> {
    let signs = Signs::absent_from(text);
    let plain = signs.hidden(text);
    let mut tree = Tree::new(text, start, signs);
    for event in Parser::new_from_str(&plain) {
        match event {
            Ok((event, span)) => {
                let span = tree.offsets.span(span.start.index(), span.end.index());
                tree.add(event, span)?;
            }
            Err(error) => {
                let at = error.marker().index();
                let span = tree.offsets.span(at, at + 1);
                return Err(NotYaml { message: error.info().to_owned(), span });
            }
        }
    }
    let empty = Node { span: Span::new(start, start + text.len()), value: Value::Null };
    Ok(tree.root.unwrap_or(empty))
}

/// Characters that stand for `*` and `!` while a text is read, so that they mean nothing.
#[derive(Clone, Copy)]
struct Signs {
    star: char,
    mark: char,
}

impl Signs {
    /// Two characters for private use that the text does not have.
    fn absent_from(text: &str) -> Self {
        let mut free = ('\u{f0000}'..='\u{ffffd}').filter(|it| !text.contains(*it));
        let mut next = || free.next().unwrap_or(char::REPLACEMENT_CHARACTER);
        Self { star: next(), mark: next() }
    }

    fn hidden(self, text: &str) -> String {
        let hide = |it| match it {
            '*' => self.star,
            '!' => self.mark,
            other => other,
        };
        text.chars().map(hide).collect()
    }

    fn shown(self, text: &str) -> String {
        let show = |it| match it {
            it if it == self.star => '*',
            it if it == self.mark => '!',
            other => other,
        };
        text.chars().map(show).collect()
    }
}

/// Where each character of a text stands in its source.
struct Offsets {
    bytes: Vec<usize>,
}

impl Offsets {
    fn span(&self, from: usize, to: usize) -> Span {
        let byte = |index: usize| self.bytes[index.min(self.bytes.len() - 1)];
        Span::new(byte(from), byte(to))
    }
}

/// A tree being built.
struct Tree {
    signs: Signs,
    offsets: Offsets,
    open: Vec<Frame>,
    root: Option<Node>,
}

/// A list or an object that is not complete.
struct Frame {
    span: Span,
    holds: Holds,
}

enum Holds {
    Items(Vec<Node>),
    Members { members: Vec<Member>, key: Option<Key> },
}

impl Tree {
    fn new(text: &str, start: usize, signs: Signs) -> Self {
        let bytes = text.char_indices().map(|(at, _)| start + at);
        let bytes = bytes.chain([start + text.len()]).collect();
        Self { signs, offsets: Offsets { bytes }, open: Vec::new(), root: None }
    }

    fn add(&mut self, event: Event<'_>, span: Span) -> Result<(), NotYaml> {
        match event {
            Event::Scalar(text, style, ..) => {
                let value = self.scalar(&text, style);
                self.push(Node { span, value })
            }
            Event::SequenceStart(..) => self.enter(span, Holds::Items(Vec::new())),
            Event::MappingStart(..) => {
                self.enter(span, Holds::Members { members: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Frame { span: start, holds }) = self.open.pop() else { return Ok(()) };
                let value = match holds {
                    Holds::Items(items) => Value::Array(items),
                    Holds::Members { members, .. } => Value::Object(members),
                };
                let span = Span::new(start.start(), span.end().max(start.end()));
                self.push(Node { span, value })
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(NotYaml { message: "there is a second document".to_owned(), span })
            }
            _ => Ok(()),
        }
    }

    fn scalar(&self, text: &str, style: ScalarStyle) -> Value {
        if style == ScalarStyle::Plain {
            match text {
                "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
                "true" | "True" | "TRUE" => return Value::Bool(true),
                "false" | "False" | "FALSE" => return Value::Bool(false),
                // Nothing here is a number; a name that looks like one is a name.
                _ => {}
            }
        }
        Value::String(self.signs.shown(text).into())
    }

    fn enter(&mut self, span: Span, holds: Holds) -> Result<(), NotYaml> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("it nests deeper than {MAX_DEPTH} levels");
            return Err(NotYaml { message, span });
        }
        self.open.push(Frame { span, holds });
        Ok(())
    }

    fn push(&mut self, node: Node) -> Result<(), NotYaml> {
        match self.open.last_mut().map(|frame| &mut frame.holds) {
            None => self.root = Some(node),
            Some(Holds::Items(items)) => items.push(node),
            Some(Holds::Members { members, key }) => match key.take() {
                Some(key) => members.push(Member { key, value: node }),
                None => *key = Some(as_key(node)?),
            },
        }
        Ok(())
    }
}

fn as_key(node: Node) -> Result<Key, NotYaml> {
    let text = match node.value {
        Value::String(text) => text,
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string().into(),
        _ => {
            let message = "a key has to be a text".to_owned();
            return Err(NotYaml { message, span: node.span });
        }
    };
    Ok(Key { text, span: node.span })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let Ok(node) = read(text, 0) else { panic!("not YAML: {text}") };
        let Some(Value::Array(items)) = node.get("tools").map(|tools| &tools.value) else {
            panic!("no list in {node:?}")
        };
        items.iter().map(|item| text.get(item.span.range()).unwrap().to_owned()).collect()
    }

    #[test]
    fn patterns_need_no_quotes() {
        assert_eq!(texts("tools: [*]"), ["*"]);
        assert_eq!(texts("tools: [*, !web_*]"), ["*", "!web_*"]);
        assert_eq!(texts("tools:\n- *\n- !web_*  # not the web\n- 'x'\n"), ["*", "!web_*", "'x'"]);
        assert_eq!(texts("tools:\r\n  - größe_*\r\n  - b\r\n"), ["größe_*", "b"]);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [("a: [1, 2", 8), ("a: b: c", 4), ("é: \"x", 3), ("[[[\n:", 4)] {
            let Err(found) = read(text, 0) else { panic!("{text}") };
            assert!(found.span.start() >= expected, "{text}: {:?} {}", found.span, found.message);
        }
        assert!(read(&"[".repeat(100), 0).is_err());
        assert!(read("{a: b}\n---\nc: d", 0).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[a*!&:\\-\\[\\]{}#|>'\" \n\té]{0,40}") {
            let _ = read(&text, 7);
        }
    }
}
