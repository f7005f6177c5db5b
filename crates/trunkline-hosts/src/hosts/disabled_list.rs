//! Lists of servers that a host keeps switched off, written apart from the servers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::AiHost;
use crate::edit::{self, FileFormat};
use crate::system::UserEnvironment;

/// The key with which Claude Code switches off servers of `.mcp.json`.
const DISABLED_MCP_JSON_SERVERS: &str = "disabledMcpjsonServers";

/// The key with which Claude Code switches off any server in a project.
const DISABLED_MCP_SERVERS: &str = "disabledMcpServers";

/// A list in a JSON file that names the servers of a project which are switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledList {
    /// The file, which may not exist.
    pub path: PathBuf,
    keys: Vec<String>,
}

impl DisabledList {
    fn new(path: PathBuf, keys: &[&str]) -> Self {
        Self { path, keys: keys.iter().map(ToString::to_string).collect() }
    }

    /// The key of the list.
    pub fn key(&self) -> &str {
        self.keys.last().map(String::as_str).unwrap_or_default()
    }

    /// The names of the list in a text: none if it is not there. `None` if it cannot be read, so that it may name
    /// any server.
    pub fn names_in(&self, text: &str) -> Option<Vec<String>> {
        if text.trim().is_empty() {
            return Some(Vec::new());
        }
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        match edit::value_at(text, FileFormat::Json, &keys).ok()? {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(_) => None,
        }
    }
}

impl AiHost {
    /// The lists that switch off servers in the files of a project.
    pub fn disabled_lists(&self, user: &UserEnvironment<'_>, project: &Path) -> Vec<DisabledList> {
        if self.id != "claude-code" {
            return Vec::new();
        }
        let variable = user.directory("CLAUDE_CONFIG_DIR");
        let state = variable.clone().unwrap_or_else(|| user.home().to_owned());
        let settings = variable.unwrap_or_else(|| user.home().join(".claude"));
        let of_project = project.join(".claude");
        let files = [
            settings.join("settings.json"),
            of_project.join("settings.json"),
            of_project.join("settings.local.json"),
        ];
        let mut lists: Vec<_> = files
            .into_iter()
            .map(|path| DisabledList::new(path, &[DISABLED_MCP_JSON_SERVERS]))
            .collect();
        if let Some(name) = project.to_str() {
            for key in [DISABLED_MCP_JSON_SERVERS, DISABLED_MCP_SERVERS] {
                let path = state.join(".claude.json");
                lists.push(DisabledList::new(path, &["projects", name, key]));
            }
        }
        lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::find;
    use crate::system::System;

    #[test]
    fn a_list_that_cannot_be_read_is_not_empty() {
        let list = DisabledList::new("settings.json".into(), &["disabledMcpjsonServers"]);
        let names = |text| list.names_in(text);
        assert_eq!(names(""), Some(Vec::new()));
        assert_eq!(names("{ \"model\": \"x\" }"), Some(Vec::new()));
        assert_eq!(names("{ \"disabledMcpjsonServers\": [\"a\"] }"), Some(vec!["a".to_owned()]));
        for text in
            ["{ \"disabledMcpjsonServers\": \"a\" }", "{ \"disabledMcpjsonServers\": [", "{"]
        {
            assert_eq!(names(text), None, "{text}");
        }
    }

    #[test]
    fn the_directory_of_claude_code_can_be_elsewhere() {
        let user = UserEnvironment::new(System::Linux, "/home/me", |name| {
            (name == "CLAUDE_CONFIG_DIR").then(|| "/other".to_owned())
        });
        let lists = find("claude-code").unwrap().disabled_lists(&user, Path::new("/work/p"));
        let paths: Vec<_> = lists.iter().map(|list| list.path.to_str().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "/other/settings.json",
                "/work/p/.claude/settings.json",
                "/work/p/.claude/settings.local.json",
                "/other/.claude.json",
                "/other/.claude.json",
            ]
        );
        assert!(find("cursor").unwrap().disabled_lists(&user, Path::new("/work/p")).is_empty());
    }
}
