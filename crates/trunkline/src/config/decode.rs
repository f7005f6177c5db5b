//! From syntax to typed values: one definition of each object reads it, checks it, and describes
//! it in the JSON Schema.

use std::sync::Arc;

use serde_json::json;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::source::{Location, Source, Span};
use super::suggest::Suggestions;
use super::syntax::{Key, Member, Node, Value};
use crate::name::ServerName;

/// A value, where it stands, and where its key stands.
#[derive(Clone)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
    pub(crate) key: Span,
}

/// A type that can be written in a configuration file.
pub(crate) trait FromNode: Sized {
    /// Reads a value. `None` means that it could not be read and that this has been reported.
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self>;

    /// What may be written, as JSON Schema.
    fn schema(definitions: &mut Definitions) -> serde_json::Value;
}

/// An object made by [`written`].
pub(crate) trait Written {
    /// Every spelling of every key.
    const KEYS: &'static [&'static str];

    /// How many keys it was written with.
    fn key_count(&self) -> usize;
}

/// The named parts of the JSON Schema.
pub(crate) type Definitions = serde_json::Map<String, serde_json::Value>;

/// Reads values from one source and collects what is wrong with them.
pub(crate) struct Decoder<'a> {
    source: &'a Arc<Source>,
    suggestions: &'a mut Suggestions,
    diagnostics: Vec<Diagnostic>,
    /// The server being read, if one is.
    server: Option<ServerName>,
    /// What is being read, for messages: "`args`", "every item of `args`".
    subject: String,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(source: &'a Arc<Source>, suggestions: &'a mut Suggestions) -> Self {
        Self {
            source,
            suggestions,
            diagnostics: Vec::new(),
            server: None,
            subject: "the configuration".to_owned(),
        }
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// Runs a step in which everything reported is about `server`; says whether it went without
    /// errors.
    pub(crate) fn within_server<T>(
        &mut self,
        server: &ServerName,
        step: impl FnOnce(&mut Self) -> T,
    ) -> (T, bool) {
        let before = self.diagnostics.len();
        let outer = self.server.replace(server.clone());
        let result = step(self);
        self.server = outer;
        let is_error = |found: &Diagnostic| found.severity == Severity::Error;
        let clean = !self.diagnostics[before..].iter().any(is_error);
        (result, clean)
    }

    pub(crate) fn location(&self, span: Span) -> Location {
        Location::new(self.source, span)
    }

    pub(crate) fn push(&mut self, mut found: Diagnostic) {
        if found.server.is_none() {
            found.server = self.server.clone();
        }
        self.diagnostics.push(found);
    }

    pub(crate) fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, message).at(self.source, span)
    }

    pub(crate) fn warning(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, message).at(self.source, span)
    }

    pub(crate) fn hint(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Hint, code, message).at(self.source, span)
    }

    pub(crate) fn note(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Note, code, message).at(self.source, span)
    }

    pub(crate) fn nearest<'k>(
        &mut self,
        word: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Option<String> {
        self.suggestions.nearest(word, known).map(|near| format!("did you mean `{near}`?"))
    }

    /// Reports that a value has the wrong type.
    pub(crate) fn wrong_type(&mut self, node: &Node, expected: &str) {
        if node.value == Value::Broken {
            return; // Reported when it was read.
        }
        let message = format!("{} must be {expected}, not {}", self.subject, node.kind());
        let help = match (&node.value, expected) {
            (Value::String(_), expected) if expected.starts_with("an array") => {
                Some("put it in brackets: `[ … ]`")
            }
            (Value::String(text), "true or false") if matches!(&**text, "true" | "false") => {
                Some("remove the quotes")
            }
            (Value::String(text), _) if text.parse::<f64>().is_ok() => Some("remove the quotes"),
            (Value::Number(_) | Value::Bool(_), expected) if expected.starts_with("a string") => {
                Some("put it in double quotes")
            }
            (Value::Null, _) => Some("leave it out instead"),
            _ => None,
        };
        let label = format!("expected {expected}");
        let found = self.error(Code::WrongType, node.span, message).label(label);
        self.push(found.maybe_help(help.map(str::to_owned)));
    }

    /// The members of an object; reports anything else.
    pub(crate) fn members<'n>(&mut self, node: &'n Node, expected: &str) -> Option<&'n [Member]> {
        if let Value::Object(members) = &node.value {
            return Some(members);
        }
        self.wrong_type(node, expected);
        None
    }

    /// Reads something with another subject for messages.
    pub(crate) fn about<T>(&mut self, subject: String, step: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.subject, subject);
        let result = step(self);
        self.subject = outer;
        result
    }

    /// Reads the value of a key into its place. A value of `null` counts as left out.
    pub(crate) fn field<T: FromNode>(&mut self, place: &mut Option<Spanned<T>>, member: &Member) {
        let Member { key, value: node } = member;
        if let Some(first) = place {
            return self.duplicate_key(key, first.key);
        }
        let value = self.about(format!("`{}`", key.text), |decoder| T::from_node(node, decoder));
        *place = value.map(|value| Spanned { value, span: node.span, key: key.span });
    }

    pub(crate) fn duplicate_key(&mut self, key: &Key, first: Span) {
        let first = self.location(first);
        let earlier = &first.source().text()[first.span().range()];
        let same = earlier.trim_matches(['"', '\'']) == &*key.text;
        let message = if same {
            format!("`{}` is written twice", key.text)
        } else {
            format!("`{}` and {earlier} mean the same", key.text)
        };
        let found = self.error(Code::DuplicateKey, key.span, message);
        self.push(found.label("again here").related(first, "first here"));
    }

    /// Reports a key that is not among those known.
    pub(crate) fn unknown_key(&mut self, key: &Key, known: &[&str]) {
        let help = self.nearest(&key.text, known.iter().copied());
        let message = format!("`{}` is not a known key here", key.text);
        let found = self.hint(Code::UnknownKey, key.span, message).label("has no effect");
        self.push(found.maybe_help(help));
    }
}

/// Whether a value may be treated as if its key were left out: it is `null`, which is reported.
pub(crate) fn left_out(member: &Member, decoder: &mut Decoder<'_>) -> bool {
    if member.value.value != Value::Null {
        return false;
    }
    let message = format!("`{}` is null, which counts as left out", member.key.text);
    let found = decoder.warning(Code::WrongType, member.value.span, message);
    decoder.push(found.help("remove the key"));
    true
}

/// Defines an object that can be written in a file.
///
/// Every field is optional and knows all its spellings; the first is the one the documentation
/// uses. Unknown keys are kept in `unknown`: a plain `struct` reports them, an `open struct`
/// leaves that to whoever reads it.
macro_rules! written {
    (
        $(#[doc = $doc:literal])*
        struct $name:ident { $($body:tt)* }
    ) => {
        written!(@object [report] [$($doc)*] $name { $($body)* });
    };
    (
        $(#[doc = $doc:literal])*
        open struct $name:ident { $($body:tt)* }
    ) => {
        written!(@object [keep] [$($doc)*] $name { $($body)* });
    };
    (@object [$mode:ident] [$($doc:literal)*] $name:ident {
        $($(#[doc = $field_doc:literal])* $field:ident: $type:ty = $key:literal $(| $alias:literal)*),*
        $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Default)]
        pub(crate) struct $name {
            $($(#[doc = $field_doc])* pub(crate) $field: Option<crate::config::decode::Spanned<$type>>,)*
            /// Members under keys that are not known.
            pub(crate) unknown: Vec<crate::config::syntax::Member>,
        }

        impl crate::config::decode::Written for $name {
            const KEYS: &'static [&'static str] = &[$($key $(, $alias)*),*];

            fn key_count(&self) -> usize {
                self.unknown.len() $(+ usize::from(self.$field.is_some()))*
            }
        }

        impl crate::config::decode::FromNode for $name {
            fn from_node(
                node: &crate::config::syntax::Node,
                decoder: &mut crate::config::decode::Decoder<'_>,
            ) -> Option<Self> {
                let mut object = Self::default();
                for member in decoder.members(node, "an object")? {
                    match &*member.key.text {
                        $($key $(| $alias)* => {
                            if !crate::config::decode::left_out(member, decoder) {
                                decoder.field(&mut object.$field, member);
                            }
                        })*
                        _ => {
                            written!(@unknown [$mode] decoder, member);
                            object.unknown.push(member.clone());
                        }
                    }
                }
                Some(object)
            }

            fn schema(definitions: &mut crate::config::decode::Definitions) -> serde_json::Value {
                crate::config::decode::object_schema(
                    definitions,
                    stringify!($name),
                    concat!($($doc, "\n"),*),
                    |definitions| vec![
                        $((
                            &[$key $(, $alias)*][..],
                            concat!($($field_doc, "\n"),*),
                            <$type as crate::config::decode::FromNode>::schema(definitions),
                        )),*
                    ],
                )
            }
        }
    };
    (@unknown [report] $decoder:ident, $member:ident) => {
        $decoder.unknown_key(&$member.key, <Self as crate::config::decode::Written>::KEYS);
    };
    (@unknown [keep] $decoder:ident, $member:ident) => {};
}
pub(crate) use written;

/// All spellings of a key, its documentation and its schema.
type Property = (&'static [&'static str], &'static str, serde_json::Value);

/// Describes an object once, and refers to it.
pub(crate) fn object_schema(
    definitions: &mut Definitions,
    name: &str,
    documentation: &str,
    properties: impl FnOnce(&mut Definitions) -> Vec<Property>,
) -> serde_json::Value {
    let reference = json!({ "$ref": format!("#/$defs/{name}") });
    if definitions.contains_key(name) {
        return reference;
    }
    // Present before its properties are described, so that an object may contain itself.
    definitions.insert(name.to_owned(), json!({}));
    let mut described = serde_json::Map::new();
    for (keys, documentation, schema) in properties(definitions) {
        for (index, key) in keys.iter().enumerate() {
            let text = match index {
                0 => sentence(documentation),
                _ => format!("Another spelling of `{}`.", keys[0]),
            };
            described.insert((*key).to_owned(), with_description(schema.clone(), &text));
        }
    }
    let object = json!({
        "type": "object",
        "description": sentence(documentation),
        "properties": described,
    });
    definitions.insert(name.to_owned(), object);
    reference
}

fn with_description(schema: serde_json::Value, text: &str) -> serde_json::Value {
    match schema {
        serde_json::Value::Object(mut schema) => {
            schema.insert("description".to_owned(), text.into());
            schema.into()
        }
        other => other,
    }
}

/// Documentation lines as one paragraph.
fn sentence(documentation: &str) -> String {
    documentation.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Defines a choice between words, with all spellings of each. `unlisted` words are understood and
/// never offered.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident, $what:literal {
            $($(#[$variant_doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),* $(,)?
        }
        $(unlisted { $($(#[$odd_doc:meta])* $odd:ident = $odd_word:literal $(| $odd_alias:literal)*),* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[$variant_doc])* $variant,)*
            $($($(#[$odd_doc])* $odd,)*)?
        }

        impl $name {
            /// The word for it in a configuration file.
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    $($(Self::$odd => $odd_word,)*)?
                }
            }

            /// The words that messages offer.
            const OFFERED: &'static [&'static str] = &[$($word),*];

            /// All words that are understood.
            const WORDS: &'static [&'static str] =
                &[$($word, $($alias,)*)* $($($odd_word, $($odd_alias,)*)*)?];

            /// What a word means; `None` for a word that is not one of these.
            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word $(| $alias)* => Some(Self::$variant),)*
                    $($($odd_word $(| $odd_alias)* => Some(Self::$odd),)*)?
                    _ => None,
                }
            }
        }

        impl crate::config::decode::FromNode for $name {
            fn from_node(
                node: &crate::config::syntax::Node,
                decoder: &mut crate::config::decode::Decoder<'_>,
            ) -> Option<Self> {
                let word = crate::config::decode::word(node, decoder)?;
                let meant = Self::from_word(word);
                if meant.is_none() {
                    decoder.unknown_word(node, $what, Self::OFFERED);
                }
                meant
            }

            fn schema(_: &mut crate::config::decode::Definitions) -> serde_json::Value {
                serde_json::json!({ "enum": Self::WORDS })
            }
        }
    };
}
pub(crate) use words;

/// The text of a string node; reports anything else.
pub(crate) fn word<'n>(node: &'n Node, decoder: &mut Decoder<'_>) -> Option<&'n str> {
    if let Value::String(text) = &node.value {
        return Some(text);
    }
    decoder.wrong_type(node, "a string");
    None
}

impl Decoder<'_> {
    /// Reports a word that is not one of those allowed.
    pub(crate) fn unknown_word(&mut self, node: &Node, what: &str, allowed: &[&str]) {
        let Value::String(word) = &node.value else { return };
        let help = self.nearest(word, allowed.iter().copied());
        let list = allowed.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let shown: String = word.chars().take(40).collect();
        let found = self
            .error(Code::UnknownValue, node.span, format!("`{shown}` is not {what}"))
            .label(format!("expected {list}"));
        self.push(found.maybe_help(help));
    }

    /// The subject of messages now.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }
}

impl FromNode for Box<str> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        word(node, decoder).map(Into::into)
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "string" })
    }
}

impl FromNode for bool {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        decoder.wrong_type(node, "true or false");
        None
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": "boolean" })
    }
}

impl<T: FromNode> FromNode for Vec<Spanned<T>> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Value::Array(items) = &node.value else {
            decoder.wrong_type(node, "an array");
            return None;
        };
        let subject = format!("every item of {}", decoder.subject());
        let items = decoder.about(subject, |decoder| {
            let item = |item: &Node| {
                let value = T::from_node(item, decoder)?;
                Some(Spanned { value, span: item.span, key: item.span })
            };
            items.iter().map(item).collect::<Vec<_>>()
        });
        items.into_iter().collect()
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "type": "array", "items": T::schema(definitions) })
    }
}

/// An object whose keys are names.
#[derive(Clone)]
pub(crate) struct Map<T>(pub(crate) Vec<(Key, Spanned<T>)>);

impl<T: FromNode> FromNode for Map<T> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let members = decoder.members(node, "an object")?;
        let mut first_uses = std::collections::HashMap::new();
        let mut entries = Vec::with_capacity(members.len());
        for Member { key, value: node } in members {
            if let Some(first) = first_uses.insert(&*key.text, key.span) {
                decoder.duplicate_key(key, first);
                continue;
            }
            let subject = format!("`{}` in {}", key.text, decoder.subject());
            if let Some(value) = decoder.about(subject, |decoder| T::from_node(node, decoder)) {
                entries.push((key.clone(), Spanned { value, span: node.span, key: key.span }));
            }
        }
        Some(Self(entries))
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "type": "object", "additionalProperties": T::schema(definitions) })
    }
}

/// Anything: kept as it is.
#[derive(Clone)]
pub(crate) struct Anything(pub(crate) Node);

impl FromNode for Anything {
    fn from_node(node: &Node, _: &mut Decoder<'_>) -> Option<Self> {
        Some(Self(node.clone()))
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({})
    }
}
