//! Converts other hosts' exclusions to patterns: Claude Code's `disallowedTools` and opencode's
//! `permission`.

use crate::config::decode::{Decoder, FromNode as _, WithSpan};
use crate::config::diagnostic::Code;
use crate::config::jsonc::{Node, ObjectMember, Value};
use crate::config::raw::PatternsEntry;

/// Names of opencode's built-in tools and permissions. A nested rule under one of these limits its
/// arguments.
const OPENCODE_PERMISSIONS: &[&str] = &[
    "bash",
    "codesearch",
    "doom_loop",
    "edit",
    "external_directory",
    "glob",
    "grep",
    "list",
    "lsp",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
];

/// Returns the patterns of `disallowedTools` and `permission` in document order; `None`, with a
/// diagnostic, if they cannot be read.
pub(super) fn exclusions(
    members: &[ObjectMember],
    decoder: &mut Decoder<'_>,
) -> Option<Vec<WithSpan<Box<str>>>> {
    let mut patterns = Vec::new();
    for ObjectMember { key, value } in members {
        match &*key.text {
            "disallowedTools" => patterns.extend(disallowed_tools(value, decoder)?),
            "permission" => patterns.extend(denied_permissions(value, decoder)?),
            _ => {}
        }
    }
    Some(patterns)
}

/// Returns the tools that Claude Code excludes. `Bash(git:*)` excludes only some arguments, not the
/// tool, and is skipped.
fn disallowed_tools(node: &Node, decoder: &mut Decoder<'_>) -> Option<Vec<WithSpan<Box<str>>>> {
    let subject = "`disallowedTools`".to_owned();
    let PatternsEntry(names) =
        decoder.about(subject, |decoder| PatternsEntry::from_node(node, decoder))?;
    let mut patterns = Vec::new();
    for name in names.into_iter().filter(|name| !name.value.contains('(')) {
        if name.value.starts_with("mcp__") || name.value.starts_with('!') {
            let message = "this is no name of a tool here";
            let found = decoder.error(Code::BadPattern, name.span, message);
            let help =
                "write the exposed name, such as `server_tool`, as `trunkline tools` lists it";
            decoder.push(found.help(help));
            return None;
        }
        patterns.push(WithSpan { value: format!("!{}", name.value).into(), ..name });
    }
    Some(patterns)
}

/// Returns the tools that opencode denies.
fn denied_permissions(node: &Node, decoder: &mut Decoder<'_>) -> Option<Vec<WithSpan<Box<str>>>> {
    let excluded =
        |name: &str| WithSpan { value: format!("!{name}").into(), span: node.span, key: node.span };
    match &node.value {
        Value::String(rule) => match &**rule {
            "allow" | "ask" => Some(Vec::new()),
            "deny" => Some(vec![excluded("*")]),
            _ => {
                decoder.wrong_permission(node);
                None
            }
        },
        Value::Object(members) => {
            let mut patterns = Vec::new();
            for ObjectMember { key, value } in members {
                match &value.value {
                    Value::String(rule) if matches!(&**rule, "allow" | "ask") => {}
                    Value::String(rule) if &**rule == "deny" => patterns.push(excluded(&key.text)),
                    Value::Object(_) if OPENCODE_PERMISSIONS.contains(&&*key.text) => {}
                    Value::Object(_) => patterns.push(excluded(&key.text)),
                    _ => {
                        decoder.wrong_permission(value);
                        return None;
                    }
                }
            }
            Some(patterns)
        }
        _ => {
            decoder.wrong_permission(node);
            None
        }
    }
}

impl Decoder<'_> {
    /// Reports an invalid rule under `permission`.
    fn wrong_permission(&mut self, node: &Node) {
        let message = "this is no rule of `permission`";
        let found = self.error(Code::UnknownValue, node.span, message);
        self.push(found.label("expected `allow`, `ask` or `deny`"));
    }
}
