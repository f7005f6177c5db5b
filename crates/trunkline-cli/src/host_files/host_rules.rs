//! Rules beside the servers in a file of a host, which an import does not carry over.

use serde_json::Value;
use trunkline_hosts::edit::{self, FileFormat};

/// Notes on the rules of a JSON file that limit tools or servers in a host, and have no effect on imported servers.
pub(super) fn notes(host: &str, text: &str) -> Vec<String> {
    let at = |key: &str| edit::value_at(text, FileFormat::Json, &[key]).ok().flatten();
    let note = |key: &str, reason: &str| format!("`{key}` is not carried over: {reason}");
    let mut notes = Vec::new();
    match host {
        "opencode" => {
            let reason = "the tools that it denies are not hidden here; use `denyTools` of a server, or `agents`";
            for key in ["permission", "tools"] {
                notes.extend(at(key).filter(limits_tools).map(|_| note(key, reason)));
            }
            let reason = "its agents are not imported; use `agents` for the tools of each";
            for key in ["agent", "mode"] {
                notes.extend(at(key).filter(limits_tools_of_agents).map(|_| note(key, reason)));
            }
        }
        "vscode" => {
            let reason = "servers run with your own permissions";
            notes.extend(at("sandbox").map(|_| note("sandbox", reason)));
        }
        "amazon-q" => {
            let reason = "the tools that it leaves out are not hidden here; use `allowTools` of a server, or `agents`";
            let is_limit = |value: &Value| !is_everything(value);
            notes.extend(at("tools").filter(is_limit).map(|_| note("tools", reason)));
            let reason = "approval of tools is up to each host";
            notes.extend(at("allowedTools").map(|_| note("allowedTools", reason)));
        }
        _ => {}
    }
    notes
}

/// Whether a rule of opencode denies a tool, or asks before it runs.
fn limits_tools(rule: &Value) -> bool {
    match rule {
        Value::Object(members) => members.values().any(limits_tools),
        Value::Array(items) => items.iter().any(limits_tools),
        Value::Bool(is_allowed) => !is_allowed,
        Value::String(word) => word != "allow",
        _ => false,
    }
}

/// Whether an agent of opencode has such a rule.
fn limits_tools_of_agents(agents: &Value) -> bool {
    let rules = |agent: &Value| ["permission", "tools"].map(|key| agent.get(key).cloned());
    let mut agents = agents.as_object().into_iter().flat_map(|members| members.values());
    agents.any(|agent| rules(agent).iter().flatten().any(limits_tools))
}

/// Whether a list of Amazon Q has all tools.
fn is_everything(tools: &Value) -> bool {
    tools.as_array().is_some_and(|items| items.iter().any(|item| item == "*"))
}
