//! Servers of Codex: `[mcp_servers.NAME]` in TOML. Its values have no references; keys such as
//! `bearer_token_env_var` name variables instead.

use super::Translator;
use super::nodes::{
    ObjectParts, from_seconds, literal, map_strings, member, renamed, string, variable,
};
use crate::config::diagnostic::{Code, Severity};
use crate::config::jsonc::{Node, ObjectMember, Value};

/// The parts of an entry that several keys of Codex contribute to.
#[derive(Default)]
struct CodexParts {
    members: Vec<ObjectMember>,
    headers: ObjectParts,
    timeouts: ObjectParts,
    oauth: ObjectParts,
}

impl Translator<'_> {
    pub(super) fn codex_entry(&mut self, entry: Vec<ObjectMember>) -> Vec<ObjectMember> {
        let has_seconds = entry.iter().any(|it| &*it.key.text == "startup_timeout_sec");
        let mut parts = CodexParts::default();
        for it in entry {
            // Codex uses the older key only without the newer one.
            if has_seconds && &*it.key.text == "startup_timeout_ms" {
                continue;
            }
            let rest = parts.add(it).and_then(|it| self.codex_member(it, &mut parts));
            parts.members.extend(rest);
        }
        let CodexParts { mut members, headers, timeouts, oauth } = parts;
        members.extend(headers.into_member("headers"));
        members.extend(timeouts.into_member("timeouts"));
        members.extend(oauth.into_member("oauth"));
        members
    }

    /// Translates a key whose value may need a note.
    fn codex_member(&mut self, it: ObjectMember, parts: &mut CodexParts) -> Option<ObjectMember> {
        match &*it.key.text {
            "env_vars" => Some(self.env_vars(it)),
            // In a server entry of other hosts, `tools` is a list of visible tools.
            "tools" if matches!(it.value.value, Value::Object(_)) => {
                let message =
                    "`tools.*.approval_mode` has no effect: approval is the host's business";
                self.note(Severity::Note, Code::ForeignKey, it.key.span, message);
                None
            }
            "auth" => {
                let message =
                    "`auth` of Codex has no effect: a login is used where the server asks for one";
                self.note(Severity::Note, Code::ForeignKey, it.key.span, message);
                None
            }
            "oauth" => parts.oauth.add_all(literal_member(it)),
            _ => Some(it),
        }
    }

    /// Variables that are copied if they are set, by exact names.
    fn env_vars(&mut self, it: ObjectMember) -> ObjectMember {
        let Value::Array(items) = it.value.value else { return renamed("inheritEnv", it) };
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            let is_remote =
                |source: &Node| matches!(&source.value, Value::String(it) if &**it == "remote");
            if item.get("source").is_some_and(is_remote) {
                let message =
                    "this variable of a remote environment is not copied: servers run here";
                self.note(Severity::Warning, Code::NotApplied, item.span, message);
                continue;
            }
            let name = item.get("name").cloned();
            names.push(name.unwrap_or(item));
        }
        let names = Node { span: it.value.span, value: Value::Array(names) };
        member("inheritEnv", it.key.span, names)
    }
}

impl CodexParts {
    /// Translates a key, or returns it.
    fn add(&mut self, it: ObjectMember) -> Option<ObjectMember> {
        let key = it.key.span;
        match &*it.key.text {
            "command" | "args" | "env" | "cwd" | "url" => self.members.push(literal_member(it)),
            "enabled_tools" => self.members.push(renamed("allowTools", it)),
            "disabled_tools" => self.members.push(renamed("denyTools", it)),
            "http_headers" => {
                let rest = self.headers.add_all(literal_member(it));
                self.members.extend(rest.map(|it| renamed("headers", it)));
            }
            "env_http_headers" => {
                let ObjectMember { key, value } = it;
                let value = map_strings(value, &variable);
                let rest = self.headers.add_all(ObjectMember { key, value });
                self.members.extend(rest.map(|it| renamed("headers", it)));
            }
            "bearer_token_env_var" => {
                let value = bearer(it.value);
                self.headers.add(key, member("Authorization", key, value));
            }
            "startup_timeout_sec" => {
                self.timeouts.add(key, member("handshake", key, from_seconds(it.value)));
            }
            "startup_timeout_ms" => self.timeouts.add(key, member("handshake", key, it.value)),
            "tool_timeout_sec" => {
                self.timeouts.add(key, member("call", key, from_seconds(it.value)));
            }
            "scopes" => self.oauth.add(key, it),
            _ => return Some(it),
        }
        None
    }
}

/// The value of a header with the token in a variable.
fn bearer(node: Node) -> Node {
    match &node.value {
        Value::String(name) => string(format!("Bearer {}", variable(name)), node.span),
        _ => node,
    }
}

fn literal_member(it: ObjectMember) -> ObjectMember {
    ObjectMember { key: it.key, value: literal(it.value) }
}
