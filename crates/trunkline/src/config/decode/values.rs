//! Decodes plain values: strings, booleans, lists, maps and arbitrary JSON.

use serde_json::json;

use super::{Decoder, Definitions, FromNode, WithSpan, word};
use crate::config::jsonc::{Node, ObjectKey, ObjectMember, Value};
use crate::config::redact::quoted;

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

impl<T: FromNode> FromNode for Vec<WithSpan<T>> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Value::Array(items) = &node.value else {
            decoder.wrong_type(node, "an array");
            return None;
        };
        let subject = format!("every item of {}", decoder.subject());
        let items = decoder.about(subject, |decoder| {
            let item = |item: &Node| {
                let value = T::from_node(item, decoder)?;
                Some(WithSpan { value, span: item.span, key: item.span })
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
pub(crate) struct NamedValues<T>(pub(crate) Vec<(ObjectKey, WithSpan<T>)>);

impl<T: FromNode> FromNode for NamedValues<T> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let members = decoder.members(node, "an object")?;
        let mut first_uses = std::collections::HashMap::new();
        let mut entries = Vec::with_capacity(members.len());
        for ObjectMember { key, value: node } in members {
            let first = *first_uses.entry(&*key.text).or_insert(key.span);
            if first != key.span {
                decoder.duplicate_key(key, first);
                continue;
            }
            let subject = format!("{} in {}", quoted(&key.text), decoder.subject());
            if let Some(value) = decoder.about(subject, |decoder| T::from_node(node, decoder)) {
                entries.push((key.clone(), WithSpan { value, span: node.span, key: key.span }));
            }
        }
        Some(Self(entries))
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({ "type": "object", "additionalProperties": T::schema(definitions) })
    }
}

/// Any value, preserved as it is.
#[derive(Clone)]
pub(crate) struct AnyValue(pub(crate) Node);

impl FromNode for AnyValue {
    fn from_node(node: &Node, _: &mut Decoder<'_>) -> Option<Self> {
        Some(Self(node.clone()))
    }

    fn schema(_: &mut Definitions) -> serde_json::Value {
        json!({})
    }
}
