//! Decodes parsed JSON into typed values: one definition of each object decodes it, checks it, and
//! describes it in the JSON Schema.

use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::jsonc::{Node, ObjectKey, ObjectMember, Value};
use super::limits::LimitKeyword;
use super::redact::quoted;
use super::source::{Location, Source, Span};
use super::suggest::Suggestions;
use crate::name::ServerName;

mod object;
mod keywords;
mod values;

pub(crate) use keywords::words;
pub(crate) use object::{object_schema, written};
pub(crate) use values::{AnyValue, NamedValues};

/// A value, with its span and that of its key.
#[derive(Clone)]
pub(crate) struct WithSpan<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
    pub(crate) key: Span,
}

/// A type that can be written in a configuration file.
pub(crate) trait FromNode: Sized {
    /// Decodes a value. `None` means that this failed, and was reported.
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self>;

    /// The JSON Schema of the value.
    fn schema(definitions: &mut Definitions) -> serde_json::Value;
}

/// An object defined by [`written`].
pub(crate) trait RawObject {
    /// All spellings of all keys.
    const KEYS: &'static [&'static str];

    /// The spellings of each key that is a rule, which restricts callers.
    const RULES: &'static [&'static [&'static str]];

    /// Whether a key is a rule.
    fn is_rule(key: &str) -> bool {
        Self::RULES.iter().any(|spellings| spellings.contains(&key))
    }

    /// The rule that an unknown key was probably meant to be.
    fn near_rule(key: &str) -> Option<&'static str> {
        // With a separate work limit: many other misspellings must not make this one go unnoticed.
        let rules = Self::RULES.iter().copied().flatten().copied();
        Suggestions::default().nearest(key, rules)?;
        let near = Suggestions::default().nearest(key, Self::KEYS.iter().copied());
        near.filter(|near| Self::is_rule(near))
    }

    /// The number of keys that were written.
    fn key_count(&self) -> usize;
}

/// The named definitions of the JSON Schema.
pub(crate) type Definitions = serde_json::Map<String, serde_json::Value>;

/// Decodes values of one source and collects diagnostics.
pub(crate) struct Decoder<'a> {
    source: &'a Arc<Source>,
    suggestions: &'a mut Suggestions,
    diagnostics: Vec<Diagnostic>,
    /// The server that is being decoded, if any.
    server: Option<ServerName>,
    /// The subject of messages: "`args`", "every item of `args`".
    subject: String,
    /// Unknown members of objects that do not store them themselves.
    unknown: Vec<ObjectMember>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(source: &'a Arc<Source>, suggestions: &'a mut Suggestions) -> Self {
        Self {
            source,
            suggestions,
            diagnostics: Vec::new(),
            server: None,
            subject: "the configuration".to_owned(),
            unknown: Vec::new(),
        }
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// Runs a step whose diagnostics are all about `server`. Also returns whether it had no errors.
    pub(crate) fn within_server<T>(
        &mut self,
        server: &ServerName,
        step: impl FnOnce(&mut Self) -> T,
    ) -> (T, bool) {
        let before = self.diagnostic_count();
        let outer = self.server.replace(server.clone());
        let result = step(self);
        self.server = outer;
        let clean = !self.has_errors_since(before);
        (result, clean)
    }

    /// The number of diagnostics so far, for [`Self::has_errors_since`].
    pub(crate) fn diagnostic_count(&self) -> usize {
        self.diagnostics.len()
    }

    /// Whether an error was reported after the first `count` diagnostics.
    pub(crate) fn has_errors_since(&self, count: usize) -> bool {
        let is_error = |found: &Diagnostic| found.severity == Severity::Error;
        self.diagnostics.iter().skip(count).any(is_error)
    }

    /// Stores an unknown member.
    pub(crate) fn keep(&mut self, member: &ObjectMember) {
        self.unknown.push(member.clone());
    }

    /// Takes the stored unknown members.
    pub(crate) fn take_unknown(&mut self) -> Vec<ObjectMember> {
        std::mem::take(&mut self.unknown)
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

    pub(crate) fn closest_match<'k>(
        &mut self,
        word: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Option<String> {
        self.suggestions.nearest(word, known).map(|near| format!("did you mean `{near}`?"))
    }

    /// Reports that a value has the wrong type.
    pub(crate) fn wrong_type(&mut self, node: &Node, expected: &str) {
        if node.value == Value::Broken {
            return; // The parser reported it.
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

    /// The members of an object; reports any other value.
    pub(crate) fn members<'n>(
        &mut self,
        node: &'n Node,
        expected: &str,
    ) -> Option<&'n [ObjectMember]> {
        if let Value::Object(members) = &node.value {
            return Some(members);
        }
        self.wrong_type(node, expected);
        None
    }

    /// Runs a step with another subject for messages.
    pub(crate) fn about<T>(&mut self, subject: String, step: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.subject, subject);
        let result = step(self);
        self.subject = outer;
        result
    }

    /// Decodes the value of a key into its field. Returns whether that succeeded.
    pub(crate) fn field<T: FromNode>(
        &mut self,
        place: &mut Option<WithSpan<T>>,
        member: &ObjectMember,
    ) -> bool {
        let ObjectMember { key, value: node } = member;
        if let Some(first) = place {
            self.duplicate_key(key, first.key);
            return false;
        }
        let subject = quoted(self.written_key(key));
        let value = self.about(subject, |decoder| T::from_node(node, decoder));
        *place = value.map(|value| WithSpan { value, span: node.span, key: key.span });
        place.is_some()
    }

    /// The key as it is in the text, where `foreign` has translated it.
    fn written_key<'k>(&'k self, key: &'k ObjectKey) -> &'k str {
        let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let written = self.source.text().get(key.span.range());
        written.filter(|text| !text.is_empty() && text.chars().all(fits)).unwrap_or(&key.text)
    }

    pub(crate) fn duplicate_key(&mut self, key: &ObjectKey, first: Span) {
        let first = self.location(first);
        let earlier = first.source().text().get(first.span().range()).unwrap_or(&key.text);
        let earlier = earlier.trim_matches(['"', '\'']);
        let message = if earlier == &*key.text {
            format!("{} is written twice", quoted(&key.text))
        } else {
            format!("{} and {} mean the same", quoted(&key.text), quoted(earlier))
        };
        let found = self.error(Code::DuplicateKey, key.span, message);
        self.push(found.label("again here").related(first, "first here"));
    }

    /// Reports an unknown key of an object. One that is similar to a rule, or a synonym of one, is
    /// an error: without the rule, callers would see more than intended.
    pub(crate) fn unknown_key<T: RawObject>(&mut self, member: &ObjectMember) {
        let key = &member.key;
        let message = format!("{} is not a known key here", quoted(&key.text));
        if let Some(rule) = T::near_rule(&key.text) {
            let found = self.error(Code::UnknownKey, key.span, message);
            let help = format!("did you mean `{rule}`?");
            return self.push(found.label("a rule that is not applied").help(help));
        }
        let word = LimitKeyword::written(&key.text, &member.value);
        if let Some(word) = word.filter(|word| word.is_possible_among(T::KEYS)) {
            let found = self.error(Code::UnknownKey, key.span, message);
            let help = word.advice(T::is_rule);
            return self.push(found.label("a rule that is not applied").help(help));
        }
        let help = self.closest_match(&key.text, T::KEYS.iter().copied());
        let found = self.hint(Code::UnknownKey, key.span, message).label("has no effect");
        self.push(found.maybe_help(help));
    }

    /// The positions of the errors reported so far, for [`ErrorPlaces::any_within`].
    pub(crate) fn error_places(&self) -> ErrorPlaces {
        ErrorPlaces::of(&self.diagnostics)
    }

    /// The positions of errors of one code.
    pub(crate) fn error_places_of(&self, code: Code) -> ErrorPlaces {
        ErrorPlaces::of(self.diagnostics.iter().filter(|found| found.code == code))
    }

    /// Reports an unknown keyword.
    pub(crate) fn unknown_word(&mut self, node: &Node, what: &str, allowed: &[&str]) {
        let Value::String(word) = &node.value else { return };
        let help = self.closest_match(word, allowed.iter().copied());
        let list = allowed.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let found = self
            .error(Code::UnknownValue, node.span, format!("{} is not {what}", quoted(word)))
            .label(format!("expected {list}"));
        self.push(found.maybe_help(help));
    }

    /// The current subject of messages.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }
}

/// The offsets of errors in one source, sorted.
pub(crate) struct ErrorPlaces(Vec<usize>);

impl ErrorPlaces {
    pub(crate) fn of<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> Self {
        let diagnostics = diagnostics.into_iter();
        let errors = diagnostics.filter(|found| found.severity == Severity::Error);
        let places = errors.filter_map(|found| Some(found.location.as_ref()?.span().start()));
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        Self(places)
    }

    /// Whether an error is in a member, including its key.
    pub(crate) fn any_within(&self, member: &ObjectMember) -> bool {
        let (start, end) = (member.key.span.start(), member.value.span.range().end);
        let first = self.0.partition_point(|place| *place < start);
        self.0.get(first).is_some_and(|place| *place <= end)
    }
}

/// Whether a value is `null`, which is reported and treated like a missing key. As the value of a
/// rule it is an error.
pub(crate) fn left_out<T: RawObject>(member: &ObjectMember, decoder: &mut Decoder<'_>) -> bool {
    if member.value.value != Value::Null {
        return false;
    }
    if T::is_rule(&member.key.text) {
        let message = format!("{} is null, which is not a rule", quoted(&member.key.text));
        let found = decoder.error(Code::WrongType, member.value.span, message);
        decoder.push(found.help("remove the key to leave the rule out"));
        return true;
    }
    let message = format!("{} is null, which counts as left out", quoted(&member.key.text));
    let found = decoder.warning(Code::WrongType, member.value.span, message);
    decoder.push(found.help("remove the key"));
    true
}

/// The string of a node; reports any other value.
pub(crate) fn word<'n>(node: &'n Node, decoder: &mut Decoder<'_>) -> Option<&'n str> {
    if let Value::String(text) = &node.value {
        return Some(text);
    }
    decoder.wrong_type(node, "a string");
    None
}
