//! Servers of Continue: `mcpServers` in YAML, as a list of objects with a name.

use super::Translator;
use super::nodes::{escaped, map_strings, object, renamed, variable};
use crate::config::diagnostic::{Code, Severity};
use crate::config::jsonc::{Node, ObjectKey, ObjectMember, Value};
use crate::config::source::Span;

impl Translator<'_> {
    pub(super) fn continue_entries(&mut self, items: &[Node], span: Span) -> Node {
        let entries = items.iter().filter_map(|item| self.continue_entry(item)).collect();
        object(entries, span)
    }

    fn continue_entry(&mut self, item: &Node) -> Option<ObjectMember> {
        let first = Span::new(item.span.start(), item.span.start() + 1);
        let Value::Object(members) = &item.value else {
            let message = format!("every server in a list must be an object, not {}", item.kind());
            self.mistake(
                Code::WrongType,
                first,
                message,
                "write `- name: …` with the keys of a server",
            );
            return None;
        };
        if let Some(uses) = members.iter().find(|it| &*it.key.text == "uses") {
            let message =
                "this block of Continue's hub is not loaded: its content is not in this file";
            self.note(Severity::Warning, Code::NotApplied, uses.key.span, message);
            return None;
        }
        let name = item.get("name");
        let Some((Node { span, .. }, Value::String(name))) = name.map(|it| (it, &it.value)) else {
            let message = "this server has no name";
            self.mistake(Code::MissingKey, first, message, "add `name: …`");
            return None;
        };
        let key = ObjectKey { text: name.clone(), span: *span };
        let members = members.iter().filter(|it| &*it.key.text != "name").cloned();
        let members = members.flat_map(|it| self.continue_member(it)).collect();
        Some(ObjectMember { key, value: object(members, item.span) })
    }

    fn continue_member(&mut self, it: ObjectMember) -> Vec<ObjectMember> {
        match &*it.key.text {
            "command" | "args" | "env" | "cwd" | "url" | "headers" => {
                let value = map_strings(it.value, &with_references);
                vec![ObjectMember { key: it.key, value }]
            }
            "connectionTimeout" => vec![renamed("initTimeout", it)],
            "requestOptions" => self.request_options(it),
            _ => vec![it],
        }
    }

    fn request_options(&mut self, it: ObjectMember) -> Vec<ObjectMember> {
        let Value::Object(options) = it.value.value else { return vec![it] };
        let mut members = Vec::new();
        for option in options {
            if &*option.key.text == "headers" {
                let value = map_strings(option.value, &with_references);
                members.push(ObjectMember { key: option.key, value });
                continue;
            }
            let message = "of `requestOptions`, only `headers` has an effect here";
            self.note(Severity::Warning, Code::ForeignKey, option.key.span, message);
        }
        members
    }
}

/// Replaces `${{ secrets.NAME }}` and `${{ inputs.NAME }}` by references to variables. All other text means
/// itself.
fn with_references(text: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let Some((inner, after)) = after.split_once("}}") else { break };
        replaced += &escaped(before);
        match inner.trim().strip_prefix("secrets.").or(inner.trim().strip_prefix("inputs.")) {
            Some(name) => replaced += &variable(name),
            None => replaced += &format!("$${{{{{inner}}}}}"),
        }
        rest = after;
    }
    replaced + &escaped(rest)
}
