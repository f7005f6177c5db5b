//! Extensions of goose: `extensions` in YAML. Variables are filled in only in addresses and headers, from
//! `envs` and `env_keys` of the entry.

use super::Translator;
use super::nodes::{
    ObjectParts, escaped, literal, map_strings, member, object, renamed, string, variable,
};
use crate::config::decode::RawObject as _;
use crate::config::diagnostic::{Code, Severity};
use crate::config::jsonc::{Node, ObjectKey, ObjectMember, Value};
use crate::config::raw::ServerEntry;
use crate::config::redact::quoted;

/// Types of extensions that are parts of goose.
const PARTS_OF_GOOSE: &[&str] = &["builtin", "platform", "frontend", "inline_python"];

impl Translator<'_> {
    pub(super) fn goose_entries(&mut self, extensions: Node) -> Node {
        let Value::Object(entries) = extensions.value else { return extensions };
        let mut servers = Vec::with_capacity(entries.len());
        for ObjectMember { key, value } in entries {
            if self.is_part_of_goose(&key, &value) {
                continue;
            }
            let span = value.span;
            let value = match value.value {
                Value::Object(members) => Value::Object(goose_entry(members)),
                other => other,
            };
            servers.push(ObjectMember { key, value: Node { span, value } });
        }
        object(servers, extensions.span)
    }

    fn is_part_of_goose(&mut self, key: &ObjectKey, entry: &Node) -> bool {
        let Some(kind) = entry.get("type") else { return false };
        let Value::String(word) = &kind.value else { return false };
        if !PARTS_OF_GOOSE.contains(&&**word) {
            return false;
        }
        let name = quoted(&key.text);
        let message =
            format!("extension {name} is left out: type `{word}` is a part of goose, not a server");
        self.note(Severity::Note, Code::ForeignKey, kind.span, message);
        true
    }
}

fn goose_entry(entry: Vec<ObjectMember>) -> Vec<ObjectMember> {
    let names = ExtensionVariables::of(&entry);
    let is_remote = entry.iter().any(|it| &*it.key.text == "uri");
    let mut members = Vec::with_capacity(entry.len());
    let mut variables = ObjectParts::default();
    for it in entry {
        match &*it.key.text {
            "cmd" => members.push(renamed("command", literal_member(it))),
            "args" | "cwd" => members.push(literal_member(it)),
            "uri" => members.push(renamed("url", names.filled(it))),
            "headers" => members.push(names.filled(it)),
            // Of a remote server, they are only the values of its references.
            "envs" | "env_keys" if is_remote => {}
            "envs" => {
                let rest = variables.add_all(literal_member(it));
                members.extend(rest.map(|it| renamed("env", it)));
            }
            "env_keys" => match &it.value.value {
                Value::Array(items) => {
                    for item in items {
                        let Value::String(name) = &item.value else { continue };
                        let value = string(variable(name), item.span);
                        variables.add(it.key.span, member(name, item.span, value));
                    }
                }
                _ => members.push(renamed("env", it)),
            },
            // An empty list allows all.
            "available_tools" if it.value.value == Value::Array(Vec::new()) => {}
            "available_tools" => members.push(renamed("allowTools", it)),
            // goose writes `null` for every key without a value.
            key if it.value.value == Value::Null && !ServerEntry::is_rule(key) => {}
            _ => members.push(it),
        }
    }
    members.extend(variables.into_member("env"));
    members
}

fn literal_member(it: ObjectMember) -> ObjectMember {
    ObjectMember { key: it.key, value: literal(it.value) }
}

/// The variables of an entry, as they are written here: a value of `envs`, a reference for `env_keys`.
#[derive(Default)]
struct ExtensionVariables(Vec<(Box<str>, String)>);

impl ExtensionVariables {
    fn of(entry: &[ObjectMember]) -> Self {
        let mut all = Vec::new();
        for it in entry {
            match (&*it.key.text, &it.value.value) {
                ("envs", Value::Object(members)) => {
                    for member in members {
                        let (Value::String(text) | Value::Number(text)) = &member.value.value
                        else {
                            continue;
                        };
                        all.push((member.key.text.clone(), escaped(text)));
                    }
                }
                ("env_keys", Value::Array(items)) => {
                    for item in items {
                        let Value::String(name) = &item.value else { continue };
                        all.push((name.clone(), variable(name)));
                    }
                }
                _ => {}
            }
        }
        // The longest first: `$TOKEN_2` is no `$TOKEN`.
        all.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self(all)
    }

    fn filled(&self, it: ObjectMember) -> ObjectMember {
        let value = map_strings(it.value, &|text| self.fill(text));
        ObjectMember { key: it.key, value }
    }

    /// Replaces `$NAME` and `${NAME}`. All other text means itself.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            let found = self.0.iter().find_map(|(name, value)| {
                let bare = after.strip_prefix(&**name).filter(|rest| !continues_name(rest));
                let braced = after.strip_prefix('{').and_then(|it| it.strip_prefix(&**name));
                let braced = braced.and_then(|it| it.strip_prefix('}'));
                Some((braced.or(bare)?, value))
            });
            match found {
                Some((after, value)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push_str(if after.starts_with('{') { "$$" } else { "$" });
                    rest = after;
                }
            }
        }
        filled + rest
    }
}

fn continues_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_')
}
