//! Parses YAML into the same tree as JSON.
//!
//! Tags and aliases are not supported: name patterns contain `!` and `*`, and users write
//! `tools: [*, !web_*]` without quotes.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::jsonc::{Node, ObjectKey, ObjectMember, Value};
use super::source::Span;

/// Maximum nesting.
const MAX_DEPTH: usize = 64;

/// A YAML error with its span.
pub(crate) struct InvalidYaml {
    pub(crate) message: String,
    pub(crate) span: Span,
}

/// Parses one document. `start` is the offset of the text in its source.
pub(crate) fn read(text: &str, start: usize) -> Result<Node, InvalidYaml> {
    let signs = PatternSigns::absent_from(text);
    let plain = signs.hidden(text);
    let mut tree = TreeBuilder::new(text, start, signs);
    for event in Parser::new_from_str(&plain) {
        match event {
            Ok((event, span)) => {
                let span = tree.offsets.span(span.start.index(), span.end.index());
                tree.add(event, span)?;
            }
            Err(error) => {
                let at = error.marker().index();
                let span = tree.offsets.span(at, at + 1);
                return Err(InvalidYaml { message: error.info().to_owned(), span });
            }
        }
    }
    let empty = Node { span: Span::new(start, start + text.len()), value: Value::Null };
    Ok(tree.root.unwrap_or(empty))
}

/// Characters that replace `*` and `!` for the YAML parser, which gives those a meaning.
#[derive(Clone, Copy)]
struct PatternSigns {
    star: char,
    mark: char,
}

impl PatternSigns {
    /// Chooses two private-use characters that do not occur in the text.
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

/// The source offset of each character of a text.
struct Offsets {
    bytes: Vec<usize>,
}

impl Offsets {
    fn span(&self, from: usize, to: usize) -> Span {
        let byte = |index: usize| self.bytes[index.min(self.bytes.len() - 1)];
        Span::new(byte(from), byte(to))
    }
}

/// A tree under construction.
struct TreeBuilder {
    signs: PatternSigns,
    offsets: Offsets,
    open: Vec<Frame>,
    root: Option<Node>,
}

/// An incomplete list or object.
struct Frame {
    span: Span,
    holds: FrameContent,
}

enum FrameContent {
    Items(Vec<Node>),
    Members { members: Vec<ObjectMember>, key: Option<ObjectKey> },
}

impl TreeBuilder {
    fn new(text: &str, start: usize, signs: PatternSigns) -> Self {
        let bytes = text.char_indices().map(|(at, _)| start + at);
        let bytes = bytes.chain([start + text.len()]).collect();
        Self { signs, offsets: Offsets { bytes }, open: Vec::new(), root: None }
    }

    fn add(&mut self, event: Event<'_>, span: Span) -> Result<(), InvalidYaml> {
        match event {
            Event::Scalar(text, style, ..) => {
                let value = self.scalar(&text, style);
                self.push(Node { span, value })
            }
            Event::SequenceStart(..) => self.enter(span, FrameContent::Items(Vec::new())),
            Event::MappingStart(..) => {
                self.enter(span, FrameContent::Members { members: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Frame { span: start, holds }) = self.open.pop() else { return Ok(()) };
                let value = match holds {
                    FrameContent::Items(items) => Value::Array(items),
                    FrameContent::Members { members, .. } => Value::Object(members),
                };
                let span = Span::new(start.start(), span.end().max(start.end()));
                self.push(Node { span, value })
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(InvalidYaml { message: "there is a second document".to_owned(), span })
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
                // Numbers are not used; a name that looks like a number is a string.
                _ => {}
            }
        }
        Value::String(self.signs.shown(text).into())
    }

    fn enter(&mut self, span: Span, holds: FrameContent) -> Result<(), InvalidYaml> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("it nests deeper than {MAX_DEPTH} levels");
            return Err(InvalidYaml { message, span });
        }
        self.open.push(Frame { span, holds });
        Ok(())
    }

    fn push(&mut self, node: Node) -> Result<(), InvalidYaml> {
        match self.open.last_mut().map(|frame| &mut frame.holds) {
            None => self.root = Some(node),
            Some(FrameContent::Items(items)) => items.push(node),
            Some(FrameContent::Members { members, key }) => match key.take() {
                Some(key) => members.push(ObjectMember { key, value: node }),
                None => *key = Some(as_key(node)?),
            },
        }
        Ok(())
    }
}

fn as_key(node: Node) -> Result<ObjectKey, InvalidYaml> {
    let text = match node.value {
        Value::String(text) => text,
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string().into(),
        _ => {
            let message = "a key has to be a text".to_owned();
            return Err(InvalidYaml { message, span: node.span });
        }
    };
    Ok(ObjectKey { text, span: node.span })
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
