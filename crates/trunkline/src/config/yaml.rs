//! Parses YAML into the same tree as JSON.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::jsonc::{Node, ObjectKey, ObjectMember, Value};
use super::source::Span;

/// Maximum nesting.
const MAX_DEPTH: usize = 64;

/// Maximum number of values that aliases repeat: a few lines of YAML can stand for billions.
const MAX_REPEATED_VALUES: usize = 10_000;

/// The key that merges the members of other objects into one.
const MERGE_KEY: &str = "<<";

/// Interpretation of scalars and of the signs `*` and `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum YamlStyle {
    /// Frontmatter with name patterns. They contain `!` and `*`, and users write `tools: [*, !web_*]`
    /// without quotes, so that there are no tags and aliases. A name that looks like a number is a string.
    Patterns,
    /// Plain YAML, as other hosts read it.
    Plain,
}

/// A YAML error with its span.
pub(crate) struct InvalidYaml {
    pub(crate) message: String,
    pub(crate) span: Span,
}

/// Parses one document. `start` is the offset of the text in its source.
pub(crate) fn read(text: &str, start: usize, style: YamlStyle) -> Result<Node, InvalidYaml> {
    let signs = PatternSigns::absent_from(text);
    let parsed = match style {
        YamlStyle::Patterns => signs.hidden(text),
        YamlStyle::Plain => text.to_owned(),
    };
    let mut tree = TreeBuilder::new(text, start, style, signs);
    for event in Parser::new_from_str(&parsed) {
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
    style: YamlStyle,
    signs: PatternSigns,
    offsets: Offsets,
    open: Vec<Frame>,
    root: Option<Node>,
    /// Values with an anchor, by its number.
    anchors: HashMap<usize, Node>,
    repeated: usize,
}

/// An incomplete list or object.
struct Frame {
    span: Span,
    anchor: usize,
    holds: FrameContent,
}

enum FrameContent {
    Items(Vec<Node>),
    Members { members: Vec<ObjectMember>, key: Option<ObjectKey> },
}

impl TreeBuilder {
    fn new(text: &str, start: usize, style: YamlStyle, signs: PatternSigns) -> Self {
        let bytes = text.char_indices().map(|(at, _)| start + at);
        let bytes = bytes.chain([start + text.len()]).collect();
        Self {
            style,
            signs,
            offsets: Offsets { bytes },
            open: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            repeated: 0,
        }
    }

    fn add(&mut self, event: Event<'_>, span: Span) -> Result<(), InvalidYaml> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = match tag {
                    None => self.scalar(&text, style),
                    Some(_) => Value::String(self.signs.shown(&text).into()),
                };
                self.finish(Node { span, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.enter(span, anchor, FrameContent::Items(Vec::new()))
            }
            Event::MappingStart(anchor, _) => {
                let holds = FrameContent::Members { members: Vec::new(), key: None };
                self.enter(span, anchor, holds)
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(span),
            Event::Alias(anchor) => {
                let node = self.repeat(anchor, span)?;
                self.push(node)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(InvalidYaml { message: "there is a second document".to_owned(), span })
            }
            _ => Ok(()),
        }
    }

    /// Closes the innermost list or object.
    fn leave(&mut self, span: Span) -> Result<(), InvalidYaml> {
        let Some(Frame { span: start, anchor, holds }) = self.open.pop() else { return Ok(()) };
        let (value, last) = match holds {
            FrameContent::Items(items) => {
                let last = items.last().map(|item| item.span.end());
                (Value::Array(items), last)
            }
            FrameContent::Members { members, .. } => {
                let last = members.last().map(|member| member.value.span.end());
                (Value::Object(self.merged(members)), last)
            }
        };
        // Without brackets, the parser sees the end only at the next token.
        let is_block = span.start() == span.end();
        let end = last.filter(|_| is_block).unwrap_or(span.end());
        let span = Span::new(start.start(), end.max(start.end()));
        self.finish(Node { span, value }, anchor)
    }

    /// The members of an object with those of its merge key. Its own take precedence.
    fn merged(&self, mut members: Vec<ObjectMember>) -> Vec<ObjectMember> {
        let is_merge = |member: &ObjectMember| {
            &*member.key.text == MERGE_KEY && matches!(member.value.value, Value::Object(_))
        };
        if self.style == YamlStyle::Patterns {
            return members;
        }
        while let Some(at) = members.iter().position(is_merge) {
            let Value::Object(others) = members.remove(at).value.value else { break };
            for other in others {
                if members.iter().all(|member| member.key.text != other.key.text) {
                    members.push(other);
                }
            }
        }
        members
    }

    fn scalar(&self, text: &str, style: ScalarStyle) -> Value {
        if style == ScalarStyle::Plain {
            match text {
                "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
                "true" | "True" | "TRUE" => return Value::Bool(true),
                "false" | "False" | "FALSE" => return Value::Bool(false),
                number if self.style == YamlStyle::Plain && is_number(number) => {
                    return Value::Number(number.into());
                }
                _ => {}
            }
        }
        Value::String(self.signs.shown(text).into())
    }

    fn enter(&mut self, span: Span, anchor: usize, holds: FrameContent) -> Result<(), InvalidYaml> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("it nests deeper than {MAX_DEPTH} levels");
            return Err(InvalidYaml { message, span });
        }
        self.open.push(Frame { span, anchor, holds });
        Ok(())
    }

    /// Adds a complete value, and stores it if it has an anchor.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), InvalidYaml> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        self.push(node)
    }

    /// The value that an alias stands for.
    fn repeat(&mut self, anchor: usize, span: Span) -> Result<Node, InvalidYaml> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(InvalidYaml { message: "this alias stands for nothing".to_owned(), span });
        };
        self.repeated += size(&node);
        if self.repeated > MAX_REPEATED_VALUES {
            let message = format!("aliases repeat more than {MAX_REPEATED_VALUES} values");
            return Err(InvalidYaml { message, span });
        }
        Ok(node)
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

/// The number of values in a value, itself included.
fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|member| size(&member.value)).sum(),
        _ => 0,
    }
}

/// Whether a plain scalar is a number in decimal digits.
fn is_number(text: &str) -> bool {
    text.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit())
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn as_key(node: Node) -> Result<ObjectKey, InvalidYaml> {
    let text = match node.value {
        Value::String(text) | Value::Number(text) => text,
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
        let Ok(node) = read(text, 0, YamlStyle::Patterns) else { panic!("not YAML: {text}") };
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
            let Err(found) = read(text, 0, YamlStyle::Patterns) else { panic!("{text}") };
            assert!(found.span.start() >= expected, "{text}: {:?} {}", found.span, found.message);
        }
        assert!(read(&"[".repeat(100), 0, YamlStyle::Patterns).is_err());
        assert!(read("{a: b}\n---\nc: d", 0, YamlStyle::Patterns).is_err());
    }

    fn plain(text: &str) -> Node {
        match read(text, 0, YamlStyle::Plain) {
            Ok(node) => node,
            Err(found) => panic!("{text}: {}", found.message),
        }
    }

    #[test]
    fn plain_yaml_has_numbers_tags_aliases_and_merge_keys() {
        let root =
            plain("a: 300\nb: !!str 300\nc: &x { k: v, n: 1 }\nd: *x\ne:\n  <<: *x\n  n: 2\n");
        assert_eq!(root.get("a").unwrap().value, Value::Number("300".into()));
        assert_eq!(root.get("b").unwrap().value, Value::String("300".into()));
        assert_eq!(root.get("d").unwrap().get("k").unwrap().value, Value::String("v".into()));
        let merged = root.get("e").unwrap();
        assert_eq!(merged.get("k").unwrap().value, Value::String("v".into()));
        assert_eq!(merged.get("n").unwrap().value, Value::Number("2".into()));
    }

    #[test]
    fn aliases_cannot_multiply_without_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let list = format!("*a{}, ", n - 1).repeat(10);
            text += &format!("a{n}: &a{n} [{list}]\n");
        }
        assert!(read(&text, 0, YamlStyle::Plain).is_err());
    }

    #[test]
    fn a_block_ends_with_its_last_value() {
        let text = "a:\n  b: c\n\n# next\nd: e\n";
        let root = plain(text);
        assert_eq!(text.get(root.get("a").unwrap().span.range()), Some("b: c"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[a*!&:\\-\\[\\]{}#|>'\" \n\té]{0,40}") {
            let _ = read(&text, 7, YamlStyle::Patterns);
            let _ = read(&text, 7, YamlStyle::Plain);
        }
    }
}
