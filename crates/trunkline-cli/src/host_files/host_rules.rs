//! Rules beside the servers in a file of a host, which an import does not carry over.

use serde_json::Value;
use trunkline_hosts::edit::{self, FileFormat};

/// The reason why rules for approval are left out.
const APPROVAL: &str = "approval of tools is up to each host";

/// Notes on the rules of a JSON file that limit tools or servers in a host, and have no effect on imported servers.
pub(super) fn notes(host: &str, text: &str) -> Vec<String> {
    let at = |key: &str| edit::value_at(text, FileFormat::Json, &[key]).ok().flatten();
    let note = |key: &str, reason: &str| format!("`{key}` is not carried over: {reason}");
    let mut notes = Vec::new();
    match host {
        "opencode" => {
            let reason = "the tools that it denies are not hidden here; use `denyTools` of a server, or `agents`";
            for key in ["permission", "tools"] {
                let reason = |rule: &Value| if denies_tools(rule) { reason } else { APPROVAL };
                let rule = at(key).filter(limits_tools);
                notes.extend(rule.map(|rule| note(key, reason(&rule))));
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
            notes.extend(at("allowedTools").map(|_| note("allowedTools", APPROVAL)));
        }
        "mcporter" => {
            let reason = "the files of other hosts are not followed; `trunkline import` reads them";
            let has_hosts = |value: &Value| value.as_array().is_none_or(|it| !it.is_empty());
            notes.extend(at("imports").filter(has_hosts).map(|_| note("imports", reason)));
        }
        _ => {}
    }
    notes
}

/// Whether a rule of opencode denies a tool, or asks before it runs. It may be for all tools, for each, or for patterns of
/// arguments.
fn limits_tools(rule: &Value) -> bool {
    match rule {
        Value::Object(members) => members.values().any(limits_tools),
        _ => *rule == "ask" || denies_tools(rule),
    }
}

/// Whether a rule of opencode denies a tool.
fn denies_tools(rule: &Value) -> bool {
    match rule {
        Value::Object(members) => members.values().any(denies_tools),
        Value::Bool(is_allowed) => !is_allowed,
        // A word that is not known may deny.
        Value::String(word) => !matches!(word.as_str(), "allow" | "ask"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_by_what_they_do() {
        let found = |host, text: &str| notes(host, text).join("\n");
        let denied = found("opencode", r#"{ "permission": { "bash": { "rm *": "deny" } } }"#);
        assert!(denied.contains("`permission`") && denied.contains("not hidden"), "{denied}");
        let asked = found("opencode", r#"{ "permission": { "edit": "ask" } }"#);
        assert!(asked.contains(APPROVAL), "{asked}");
        assert_eq!(found("amazon-q", r#"{ "tools": ["*"] }"#), "");
        assert_eq!(found("cursor", r#"{ "tools": { "x": false }, "sandbox": {} }"#), "");
        assert_eq!(found("opencode", "{ broken"), "");
    }
}
