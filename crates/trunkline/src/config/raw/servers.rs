//! The objects that contain servers by name, and the rules that hosts put next to them.

use serde_json::json;

use super::{InputEntry, ServerEntry, StartupRequestEntry};
use crate::config::decode::{Decoder, Definitions, FromNode, RawObject, WithSpan, left_out};
use crate::config::diagnostic::Code;
use crate::config::jsonc::{Node, ObjectMember, Value};
use crate::config::limits::LimitKeyword;
use crate::config::source::Span;
use crate::name::{MAX_NAME_BYTES, ServerName};

/// The servers of one root key, each decoded separately, so that an invalid entry does not affect
/// others.
#[derive(Clone)]
pub(crate) struct ServerMap(pub(crate) Vec<NamedServer>);

/// One entry under a root key.
#[derive(Clone)]
pub(crate) struct NamedServer {
    pub(crate) name: ServerName,
    pub(crate) key: Span,
    pub(crate) span: Span,
    /// `None` if it is not even an object.
    pub(crate) entry: Option<ServerEntry>,
    /// Whether every value in it could be decoded.
    pub(crate) clean: bool,
}

impl ServerMap {
    /// Decodes members as servers. Invalid names are reported and left out.
    pub(crate) fn from_members<'n>(
        members: impl Iterator<Item = &'n ObjectMember>,
        decoder: &mut Decoder<'_>,
    ) -> Self {
        Self(members.filter_map(|member| NamedServer::read(member, decoder)).collect())
    }
}

impl NamedServer {
    fn read(member: &ObjectMember, decoder: &mut Decoder<'_>) -> Option<Self> {
        let ObjectMember { key, value: node } = member;
        let name = match ServerName::new(&key.text) {
            Ok(name) => name,
            Err(reason) => {
                let message = format!("this server cannot be called that: {reason}");
                decoder.push(decoder.error(Code::BadName, key.span, message));
                return None;
            }
        };
        let (entry, clean) = decoder.within_server(&name, |decoder| {
            decoder.about(format!("server `{}`", key.text), |decoder| {
                ServerEntry::from_node(node, decoder)
            })
        });
        Some(Self { name, key: key.span, span: node.span, entry, clean })
    }
}

impl FromNode for ServerMap {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let members = decoder.members(node, "an object with servers by name")?;
        Some(Self::from_members(members.iter(), decoder))
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        json!({
            "type": "object",
            "propertyNames": { "minLength": 1, "maxLength": MAX_NAME_BYTES },
            "additionalProperties": ServerEntry::schema(definitions),
        })
    }
}

/// The value of opencode's `mcp` key: servers, or an object that contains servers; and in a file of
/// Gemini CLI, rules for the servers elsewhere.
#[derive(Clone, Default)]
pub(crate) struct McpEntry {
    pub(crate) servers: Option<ServerMap>,
    pub(crate) timeout: Option<WithSpan<StartupRequestEntry>>,
    pub(crate) allowed: Option<WithSpan<Vec<WithSpan<Box<str>>>>>,
    pub(crate) excluded: Option<WithSpan<Vec<WithSpan<Box<str>>>>>,
    pub(crate) inputs: Option<WithSpan<Vec<WithSpan<InputEntry>>>>,
    /// Whether `allowed` or `excluded` exists and cannot be decoded.
    pub(crate) has_unreadable_rule: bool,
    /// Whether there is a list or a switch in the place of a server.
    pub(crate) has_unknown_rule: bool,
}

impl McpEntry {
    /// Whether the keys are those of `mcp` itself, and not names of servers. A server with such a
    /// name has a type, a command or a URL.
    pub(crate) fn has_own_keys(node: &Node) -> bool {
        let is_entry = |value: &Node| {
            ["type", "command", "url"].into_iter().any(|key| {
                value.get(key).is_some_and(|value| !matches!(value.value, Value::Object(_)))
            })
        };
        let object = |key| node.get(key).is_some_and(|it| is_object(it) && !is_entry(it));
        let array = |key| node.get(key).is_some_and(|it| matches!(it.value, Value::Array(_)));
        let text = |key| node.get(key).is_some_and(|it| matches!(it.value, Value::String(_)));
        // Even if it cannot be decoded: taken for a server, it would be a rule that is not applied.
        let rule = |key| node.get(key).is_some_and(|it| !is_object(it) || !is_entry(it));
        object("servers")
            || object("timeout")
            || rule("allowed")
            || rule("excluded")
            || array("inputs")
            || text("serverCommand")
    }

    fn read_field(&mut self, member: &ObjectMember, decoder: &mut Decoder<'_>) {
        match &*member.key.text {
            "servers" => {
                let subject = "`mcp.servers`".to_owned();
                let read = |decoder: &mut Decoder<'_>| ServerMap::from_node(&member.value, decoder);
                self.servers = decoder.about(subject, read);
            }
            "timeout" => {
                decoder.field(&mut self.timeout, member);
            }
            "allowed" => self.has_unreadable_rule |= !decoder.field(&mut self.allowed, member),
            "excluded" => self.has_unreadable_rule |= !decoder.field(&mut self.excluded, member),
            "inputs" => {
                decoder.field(&mut self.inputs, member);
            }
            "serverCommand" => {}
            _ => {
                let word = LimitKeyword::written(&member.key.text, &member.value);
                self.has_unreadable_rule |= Self::near_rule(&member.key.text).is_some()
                    || word.is_some_and(|word| word.is_possible_among(Self::KEYS));
                decoder.unknown_key::<Self>(member);
                decoder.keep(member);
            }
        }
    }
}

/// Whether a member in the place of a server can only be a rule: a list, or a switch that is off.
fn is_unknown_rule(member: &ObjectMember) -> bool {
    match (LimitKeyword::of(&member.key.text), &member.value.value) {
        (_, Value::Array(_)) => true,
        (Some(LimitKeyword::Switch(is_used)), Value::Bool(value)) => *value != is_used,
        (_, Value::Bool(_)) => true,
        _ => false,
    }
}

fn is_object(node: &Node) -> bool {
    matches!(node.value, Value::Object(_))
}

impl RawObject for McpEntry {
    const KEYS: &'static [&'static str] = &["servers", "timeout", "allowed", "excluded"];
    const RULES: &'static [&'static [&'static str]] = &[&["allowed"], &["excluded"]];

    fn key_count(&self) -> usize {
        let servers = self.servers.as_ref().map_or(0, |servers| servers.0.len());
        servers
            + usize::from(self.timeout.is_some())
            + usize::from(self.allowed.is_some())
            + usize::from(self.excluded.is_some())
    }
}

impl FromNode for McpEntry {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let members = decoder.members(node, "an object with servers by name")?;
        let mut entry = Self::default();
        if Self::has_own_keys(node) {
            let mut nested = members.iter().filter(|member| &*member.key.text == "servers");
            if let (Some(first), Some(again)) = (nested.next(), nested.next()) {
                decoder.duplicate_key(&again.key, first.key.span);
            }
            for member in members {
                if !left_out::<Self>(member, decoder) {
                    entry.read_field(member, decoder);
                } else if Self::is_rule(&member.key.text) {
                    entry.has_unreadable_rule = true;
                }
            }
        } else {
            entry.has_unknown_rule = members.iter().any(is_unknown_rule);
            entry.servers = Some(ServerMap::from_members(members.iter(), decoder));
        }
        Some(entry)
    }

    fn schema(definitions: &mut Definitions) -> serde_json::Value {
        let servers = ServerMap::schema(definitions);
        let names = json!({ "type": "array", "items": { "type": "string" } });
        let nested = json!({
            "type": "object",
            "properties": {
                "servers": servers,
                "timeout": StartupRequestEntry::schema(definitions),
                "allowed": names,
                "excluded": names,
                "serverCommand": { "type": "string" },
                "inputs": Vec::<WithSpan<InputEntry>>::schema(definitions),
            },
            "anyOf": [
                { "required": ["servers"] }, { "required": ["timeout"] },
                { "required": ["allowed"] }, { "required": ["excluded"] },
                { "required": ["serverCommand"] },
            ],
        });
        json!({ "anyOf": [nested, servers] })
    }
}
