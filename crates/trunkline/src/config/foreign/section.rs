//! Reads the servers of one section of a file, such as one project in the state file of Claude Code.

use std::sync::Arc;

use super::nodes::{member, object};
use super::{HostDocument, SERVERS, translated};
use crate::config::diagnostic::{Code, Diagnostic, Severity};
use crate::config::jsonc::{Node, ObjectMember, Value};
use crate::config::redact::quoted;
use crate::config::source::Source;

/// Keys of objects that contain servers, in a section as in a whole file.
pub(super) const CONTAINERS: &[&str] =
    &[SERVERS, "servers", "mcp", "context_servers", "mcp_servers"];

/// The declarations that entries of VS Code refer to.
const INPUTS: &str = "inputs";

/// The list with which Claude Code switches servers of a project off.
const DISABLED_SERVERS: &str = "disabledMcpServers";

/// The part of a text that is read.
#[derive(Clone, Copy)]
pub(crate) enum SourcePart<'p> {
    /// All of it.
    Whole,
    /// The servers of the object at a path of keys. Its other keys are not reported.
    Section(&'p [&'p str]),
}

pub(super) fn read(
    source: &Arc<Source>,
    mut document: HostDocument,
    path: &[&str],
) -> HostDocument {
    let Some(root) = document.root.take() else { return document };
    let Some(found) = path.iter().try_fold(&root, |node, key| node.get(key)) else {
        let place = path.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(" → ");
        let message = format!("there is no section {place} in {}", source.name());
        document.mistakes.push(Diagnostic::new(Severity::Error, Code::MissingKey, message));
        return document;
    };
    if disabled_servers(found).is_none() {
        // It may name any server.
        document.is_whole = false;
        let message = format!("`{DISABLED_SERVERS}` must be an array");
        document.mistakes.push(Diagnostic::new(Severity::Error, Code::WrongType, message));
    }
    let root = servers_of(found);
    translated(source, HostDocument { root: Some(root), ..document })
}

/// An object with the servers of a section alone.
fn servers_of(section: &Node) -> Node {
    let Value::Object(members) = &section.value else { return section.clone() };
    let disabled = disabled_servers(section).unwrap_or_default();
    let is_kept = |key: &str| CONTAINERS.contains(&key) || key == INPUTS;
    let kept = members.iter().filter(|it| is_kept(&it.key.text));
    let kept = kept.map(|it| {
        let ObjectMember { key, value } = it.clone();
        ObjectMember { key, value: switched_off(value, disabled) }
    });
    object(kept.collect(), section.span)
}

/// The servers that a section switches off; `None` if the list cannot be read.
fn disabled_servers(section: &Node) -> Option<&[Node]> {
    match section.get(DISABLED_SERVERS).map(|node| &node.value) {
        None => Some(&[]),
        Some(Value::Array(items)) => Some(items),
        Some(_) => None,
    }
}

/// Switches off the servers that a list names.
fn switched_off(servers: Node, disabled: &[Node]) -> Node {
    let Value::Object(entries) = servers.value else { return servers };
    let switch = |ObjectMember { key, mut value }: ObjectMember| {
        let is_named = |it: &&Node| matches!(&it.value, Value::String(name) if *name == key.text);
        if let (Some(item), Value::Object(members)) =
            (disabled.iter().find(is_named), &mut value.value)
        {
            members.retain(|it| !matches!(&*it.key.text, "enabled" | "disabled"));
            let off = Node { span: item.span, value: Value::Bool(false) };
            members.push(member("enabled", item.span, off));
        }
        ObjectMember { key, value }
    };
    object(entries.into_iter().map(switch).collect(), servers.span)
}
