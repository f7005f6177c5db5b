//! Builds and converts nodes of a tree.

use crate::config::jsonc::{Node, ObjectKey, ObjectMember, Value};
use crate::config::source::Span;
use crate::config::template::ReferenceSource;

/// The first member with a key.
pub(super) fn member_of<'n>(node: &'n Node, key: &str) -> Option<&'n ObjectMember> {
    let Value::Object(members) = &node.value else { return None };
    members.iter().find(|member| &*member.key.text == key)
}

/// The same member under another key.
pub(super) fn renamed(key: &str, member: ObjectMember) -> ObjectMember {
    ObjectMember { key: ObjectKey { text: key.into(), span: member.key.span }, value: member.value }
}

/// A member with the span of another one's key.
pub(super) fn member(key: &str, span: Span, value: Node) -> ObjectMember {
    ObjectMember { key: ObjectKey { text: key.into(), span }, value }
}

pub(super) fn string(text: impl Into<Box<str>>, span: Span) -> Node {
    Node { span, value: Value::String(text.into()) }
}

pub(super) fn object(members: Vec<ObjectMember>, span: Span) -> Node {
    Node { span, value: Value::Object(members) }
}

/// A text that means exactly itself where `${…}` is a reference.
pub(super) fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

/// A reference to an environment variable.
pub(super) fn variable(name: &str) -> String {
    ReferenceSource::Variable(name.into()).written()
}

/// Replaces every string in a value.
pub(super) fn map_strings(node: Node, map: &dyn Fn(&str) -> String) -> Node {
    let value = match node.value {
        Value::String(text) => Value::String(map(&text).into()),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| map_strings(item, map)).collect())
        }
        Value::Object(members) => {
            let each =
                |ObjectMember { key, value }| ObjectMember { key, value: map_strings(value, map) };
            Value::Object(members.into_iter().map(each).collect())
        }
        other => other,
    };
    Node { span: node.span, value }
}

/// A value without references, for a host that has none.
pub(super) fn literal(node: Node) -> Node {
    map_strings(node, &escaped)
}

/// A number of seconds as a duration in milliseconds. Any other value is unchanged.
pub(super) fn from_seconds(node: Node) -> Node {
    let value = match node.value {
        Value::Number(text) => match text.replace('_', "").parse::<f64>() {
            Ok(seconds) => Value::Number((seconds * 1000.0).to_string().into()),
            Err(_) => Value::Number(text),
        },
        other => other,
    };
    Node { span: node.span, value }
}

/// The members of an object that is put together from several keys.
#[derive(Default)]
pub(super) struct ObjectParts {
    key: Option<Span>,
    members: Vec<ObjectMember>,
}

impl ObjectParts {
    pub(super) fn add(&mut self, key: Span, member: ObjectMember) {
        self.key.get_or_insert(key);
        self.members.push(member);
    }

    /// Adds all members of an object. Any other value is returned.
    pub(super) fn add_all(&mut self, member: ObjectMember) -> Option<ObjectMember> {
        let ObjectMember { key, value } = member;
        let Value::Object(members) = value.value else { return Some(ObjectMember { key, value }) };
        self.key.get_or_insert(key.span);
        self.members.extend(members);
        None
    }

    /// Keeps the members with certain keys.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.members.retain(|member| is_kept(&member.key.text));
    }

    /// The object under a key, if anything was added.
    pub(super) fn into_member(self, key: &str) -> Option<ObjectMember> {
        let span = self.key?;
        Some(member(key, span, object(self.members, span)))
    }
}

/// Whether a value is an object that contains servers.
pub(crate) fn holds_servers(node: &Node) -> bool {
    has_entries_with(node, &["command", "url"])
}

/// Whether a value is an object that contains an object with one of some keys.
pub(super) fn has_entries_with(node: &Node, keys: &[&str]) -> bool {
    let Value::Object(members) = &node.value else { return false };
    members.iter().any(|it| keys.iter().any(|key| it.value.get(key).is_some()))
}

/// A value as JSON text.
pub(crate) fn json_text(node: &Node) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match &node.value {
        Value::Null | Value::Broken => "null".to_owned(),
        Value::Bool(is_on) => is_on.to_string(),
        Value::Number(text) => text.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(json_text).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let each =
                |it: &ObjectMember| format!("{}: {}", quoted(&it.key.text), json_text(&it.value));
            format!("{{{}}}", members.iter().map(each).collect::<Vec<_>>().join(", "))
        }
    }
}
