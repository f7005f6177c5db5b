//! Values that hosts write in more than one form.

use serde_json::json;

use super::{
    AgentEntry, OAuthDetails, ProgramEntry, RestartDetails, ServerEntry, StartupRequestEntry,
};
use crate::config::decode::{Decoder, Definitions, FromNode, NamedValues, WithSpan, word};
use crate::config::diagnostic::Code;
use crate::config::inherit::InheritEnv;
use crate::config::jsonc::{Node, ObjectKey, Value};
use crate::config::keywords::{RestartRule, Share, TransportKeyword, Trust};
use crate::config::source::Span;
use crate::config::units::{PositiveDuration, RawNumber};
use crate::name::NamePattern;

/// A transport by its keyword, or with its keys.
#[derive(Clone)]
pub(crate) enum TransportEntry {
    Word(TransportKeyword),
    Keys(Box<ServerEntry>),
}

impl FromNode for TransportEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match node.value {
            Value::String(_) => TransportKeyword::from_node(node, decoder).map(Self::Word),
            Value::Object(_) => {
                ServerEntry::from_node(node, decoder).map(|entry| Self::Keys(Box::new(entry)))
            }
            _ => {
                decoder.wrong_type(node, "a string or an object");
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        let word = TransportKeyword::schema(definitions);
        json!({ "anyOf": [word, ServerEntry::schema(definitions)] })
    }
}

/// A command: the program, the program with its arguments, or Zed's older object.
#[derive(Clone)]
pub(crate) enum CommandEntry {
    Program(Box<str>),
    Line(Vec<WithSpan<Box<str>>>),
    Object(Box<ProgramEntry>),
}

impl FromNode for CommandEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(program) => Some(Self::Program(program.clone())),
            Value::Array(_) => FromNode::from_node(node, decoder).map(Self::Line),
            Value::Object(_) => {
                ProgramEntry::from_node(node, decoder).map(|entry| Self::Object(Box::new(entry)))
            }
            _ => {
                decoder.wrong_type(node, "a string or an array of strings");
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ProgramEntry::schema(definitions),
        ] })
    }
}

/// Settings of OAuth, or a switch.
#[derive(Clone)]
pub(crate) enum OAuthEntry {
    Switch(bool),
    Details(Box<OAuthDetails>),
}

impl FromNode for OAuthEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::Bool(is_on) => Some(Self::Switch(*is_on)),
            // mcporter's keyword.
            Value::String(word) if &**word == "oauth" => Some(Self::Switch(true)),
            Value::Object(_) => {
                OAuthDetails::from_node(node, decoder).map(|it| Self::Details(Box::new(it)))
            }
            _ => {
                decoder.wrong_type(node, "an object or a switch");
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [{ "type": "boolean" }, { "const": "oauth" }, OAuthDetails::schema(definitions)] })
    }
}

/// Scopes as a list, or as one string with spaces.
#[derive(Clone)]
pub(crate) struct ScopesEntry(pub(crate) Vec<Box<str>>);

impl FromNode for ScopesEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(text) => Some(Self(text.split_whitespace().map(Into::into).collect())),
            Value::Array(_) => {
                let items: Vec<WithSpan<Box<str>>> = FromNode::from_node(node, decoder)?;
                Some(Self(items.into_iter().map(|item| item.value).collect()))
            }
            _ => {
                decoder.wrong_type(node, "an array of strings, or a string");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
        ] })
    }
}

/// A program with its arguments, as an array, or a program alone.
#[derive(Clone)]
pub(crate) struct HeadersCommandEntry(pub(crate) Vec<WithSpan<Box<str>>>);

impl FromNode for HeadersCommandEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let words = match &node.value {
            Value::String(program) => {
                vec![WithSpan { value: program.clone(), span: node.span, key: node.span }]
            }
            Value::Array(_) => FromNode::from_node(node, decoder)?,
            _ => {
                decoder.wrong_type(node, "a program, or an array of a program and its arguments");
                return None;
            }
        };
        if words.first().is_none_or(|program| program.value.trim().is_empty()) {
            let found = decoder.error(Code::NoCommandOrUrl, node.span, "the command is empty");
            decoder.push(found.label("expected a program"));
            return None;
        }
        Some(Self(words))
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ] })
    }
}

/// The value of an environment variable.
#[derive(Clone)]
pub(crate) enum VariableEntry {
    Set(Box<str>),
    /// `null`: the variable is removed (VS Code).
    Unset,
}

impl FromNode for VariableEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(text) | Value::Number(text) => Some(Self::Set(text.clone())),
            Value::Bool(value) => Some(Self::Set(value.to_string().into())),
            Value::Null => Some(Self::Unset),
            _ => {
                decoder.wrong_type(node, "a string");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "type": ["string", "number", "boolean", "null"] })
    }
}

/// Variables of the host that a server inherits: all of them, or those that patterns match.
#[derive(Clone)]
pub(crate) struct InheritEntry(pub(crate) InheritEnv);

impl FromNode for InheritEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::Bool(true) => Some(Self(InheritEnv::Everything)),
            Value::Bool(false) => Some(Self(InheritEnv::default())),
            Value::Array(items) => {
                let patterns: Vec<_> =
                    items.iter().map(|item| variable_pattern(item, decoder)).collect();
                let patterns = patterns.into_iter().collect::<Option<_>>()?;
                Some(Self(InheritEnv::Matching(patterns)))
            }
            _ => {
                decoder.wrong_type(node, "true or an array of names and patterns of variables");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "boolean" },
            { "type": "array", "items": { "type": "string", "minLength": 1 } },
        ] })
    }
}

fn variable_pattern(node: &Node, decoder: &mut Decoder<'_>) -> Option<NamePattern> {
    let text = word(node, decoder)?;
    NamePattern::new(text)
        .map_err(|reason| {
            let found = decoder.error(Code::BadPattern, node.span, "this is not a pattern");
            decoder.push(found.help(reason.to_string()));
        })
        .ok()
}

/// A restart rule, or one with details.
#[derive(Clone)]
pub(crate) enum RestartEntry {
    Rule(RestartRule),
    Details(Box<RestartDetails>),
}

impl FromNode for RestartEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        if let Value::Object(_) = node.value {
            let details = RestartDetails::from_node(node, decoder)?;
            return Some(Self::Details(Box::new(details)));
        }
        RestartRule::from_node(node, decoder).map(Self::Rule)
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        let rule = RestartRule::schema(definitions);
        json!({ "anyOf": [rule, RestartDetails::schema(definitions)] })
    }
}

/// A timeout: a number whose unit depends on the host, a string with a unit, or two durations.
#[derive(Clone)]
pub(crate) enum TimeoutEntry {
    Number(f64),
    Duration(std::time::Duration),
    Split(Box<StartupRequestEntry>),
}

impl FromNode for TimeoutEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match node.value {
            Value::Object(_) => {
                let split = StartupRequestEntry::from_node(node, decoder)?;
                Some(Self::Split(Box::new(split)))
            }
            Value::Number(_) => {
                RawNumber::from_node(node, decoder).map(|number| Self::Number(number.0))
            }
            _ => PositiveDuration::from_node(node, decoder).map(|bound| Self::Duration(bound.0)),
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        let number = RawNumber::schema(definitions);
        let duration = PositiveDuration::schema(definitions);
        json!({ "anyOf": [number, duration, StartupRequestEntry::schema(definitions)] })
    }
}

/// A level of trust, or Gemini CLI's switch of the same name, which has another meaning.
#[derive(Clone, Copy)]
pub(crate) enum TrustEntry {
    Level(Trust),
    Switch(bool),
}

impl FromNode for TrustEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match node.value {
            Value::Bool(is_on) => Some(Self::Switch(is_on)),
            _ => Trust::from_node(node, decoder).map(Self::Level),
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [Trust::schema(definitions), { "type": "boolean" }] })
    }
}

/// Agents in files, or in the configuration itself.
#[derive(Clone)]
pub(crate) enum AgentsEntry {
    Files(Vec<WithSpan<Box<str>>>),
    Named(NamedValues<AgentEntry>),
}

impl FromNode for AgentsEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(path) => Some(Self::Files(Vec::from([spanned(path.clone(), node.span)]))),
            Value::Array(_) => FromNode::from_node(node, decoder).map(Self::Files),
            _ => NamedValues::from_node(node, decoder).map(Self::Named),
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
            NamedValues::<AgentEntry>::schema(definitions),
        ] })
    }
}

fn spanned(value: Box<str>, span: Span) -> WithSpan<Box<str>> {
    WithSpan { value, span, key: span }
}

/// Patterns of tool names: a list, a comma-separated string, or opencode's map to booleans.
#[derive(Clone)]
pub(crate) struct PatternsEntry(pub(crate) Vec<WithSpan<Box<str>>>);

impl FromNode for PatternsEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(text) => {
                let patterns = text.split(',').map(str::trim).filter(|text| !text.is_empty());
                let pattern = |text: &str| spanned(text.into(), node.span);
                Some(Self(patterns.map(pattern).collect()))
            }
            Value::Object(members) => {
                let NamedValues(entries) = NamedValues::<bool>::from_node(node, decoder)?;
                // Without an entry that cannot be decoded, the others could include more.
                if entries.len() < members.len() {
                    return None;
                }
                let pattern = |(key, included): (ObjectKey, WithSpan<bool>)| match included.value {
                    true => spanned(key.text, key.span),
                    false => spanned(format!("!{}", key.text).into(), key.span),
                };
                Some(Self(entries.into_iter().map(pattern).collect()))
            }
            Value::Array(items) => items
                .iter()
                .map(|item| Some(spanned(word(item, decoder)?.into(), item.span)))
                .collect::<Option<_>>()
                .map(Self),
            _ => {
                decoder.wrong_type(node, "an array of strings");
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
            { "type": "object", "additionalProperties": { "type": "boolean" } },
        ] })
    }
}

/// Whether clients share a server process; or opencode's rule of the same name, about sharing
/// conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareEntry {
    Servers(Share),
    /// `manual`, `auto` or `disabled`, which have a meaning only in a file of opencode.
    Conversations,
}

impl FromNode for ShareEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(word) if matches!(&**word, "manual" | "auto" | "disabled") => {
                Some(Self::Conversations)
            }
            _ => Share::from_node(node, decoder).map(Self::Servers),
        }
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "anyOf": [
            Share::schema(definitions),
            { "enum": ["manual", "auto", "disabled"] },
        ] })
    }
}
