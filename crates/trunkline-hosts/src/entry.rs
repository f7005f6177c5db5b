//! The entry of the gateway, in the form of each host.

use serde_json::{Value, json};

use crate::edit::{EntryLayout, KeyPath};
use crate::hosts::AiHost;

/// Seconds that goose waits for an answer: its own default, which it writes into each entry.
const GOOSE_TIMEOUT_SECONDS: u32 = 300;

/// The command that starts the gateway for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayCommand {
    /// The name of the entry, such as `trunkline`.
    pub name: String,
    /// The program, such as `trunkline`.
    pub command: String,
    /// Its arguments, such as `connect`.
    pub args: Vec<String>,
}

impl GatewayCommand {
    /// The entry for a host, under a key path of one of its files.
    pub fn entry(&self, host: &AiHost, key_path: &KeyPath) -> Value {
        let Self { name, command, args } = self;
        if key_path.layout() == EntryLayout::List {
            return json!({ "name": name, "command": command, "args": args });
        }
        match host.id() {
            "vscode" => json!({ "type": "stdio", "command": command, "args": args }),
            "opencode" => self.opencode_entry(key_path),
            "goose" => json!({
                "enabled": true,
                "type": "stdio",
                "name": name,
                "description": "",
                "cmd": command,
                "args": args,
                "envs": {},
                "env_keys": [],
                "timeout": GOOSE_TIMEOUT_SECONDS,
            }),
            "copilot-cli" => json!({
                "type": "local",
                "command": command,
                "args": args,
                "env": {},
                "tools": ["*"],
            }),
            _ => json!({ "command": command, "args": args }),
        }
    }

    fn opencode_entry(&self, key_path: &KeyPath) -> Value {
        let words: Vec<&String> = [&self.command].into_iter().chain(&self.args).collect();
        let is_newer = key_path.keys().count() > 1;
        if is_newer {
            // The newer form has `disabled` instead of `enabled`, and servers are enabled without it.
            json!({ "type": "local", "command": words })
        } else {
            json!({ "type": "local", "command": words, "enabled": true })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit;
    use crate::hosts::{HOSTS, find};
    use crate::system::{System, UserEnvironment};
    use std::path::Path;

    fn gateway() -> GatewayCommand {
        GatewayCommand {
            name: "trunkline".to_owned(),
            command: "trunkline".to_owned(),
            args: vec!["connect".to_owned()],
        }
    }

    #[test]
    fn each_host_has_its_own_form() {
        let plain = json!({ "command": "trunkline", "args": ["connect"] });
        let words = ["trunkline", "connect"];
        let map = KeyPath::map(["x"]);
        let entry = |id: &str, path: &KeyPath| gateway().entry(find(id).unwrap(), path);
        for id in ["claude-desktop", "claude-code", "cursor", "zed", "codex", "gemini", "roo"] {
            assert_eq!(entry(id, &map), plain);
        }
        assert_eq!(entry("vscode", &map)["type"], "stdio");
        let newer = KeyPath::map(["mcp", "servers"]);
        assert_eq!(
            entry("opencode", &map),
            json!({ "type": "local", "command": words, "enabled": true })
        );
        assert_eq!(entry("opencode", &newer), json!({ "type": "local", "command": words }));
        assert_eq!(entry("goose", &map)["cmd"], "trunkline");
        assert_eq!(entry("copilot-cli", &map)["tools"], json!(["*"]));
        assert_eq!(entry("continue", &KeyPath::list(["x"]))["name"], "trunkline");
        assert_eq!(entry("continue", &map), plain);
    }

    #[test]
    fn the_entry_can_be_written_for_each_host() {
        let user = UserEnvironment::new(System::Linux, "/nothing", |_| None);
        for host in HOSTS {
            let project = host.project_files(Path::new("/nothing"));
            for file in host.user_files(&user).into_iter().chain(project) {
                let path = file.key_path_in("").unwrap();
                let entry = gateway().entry(host, &path);
                let text = edit::insert("", file.format, &path, "trunkline", &entry).unwrap();
                assert!(edit::contains(&text, file.format, &path, "trunkline").unwrap());
            }
        }
    }

    #[test]
    fn goose_gets_readable_yaml() {
        let path = KeyPath::map(["extensions"]);
        let entry = gateway().entry(find("goose").unwrap(), &path);
        let text = edit::insert("", edit::FileFormat::Yaml, &path, "trunkline", &entry).unwrap();
        let expected = "extensions:\n  trunkline:\n    enabled: true\n    type: stdio\n    name: trunkline\n    \
                        description: \"\"\n    cmd: trunkline\n    args: [\"connect\"]\n    env_keys: []\n    envs: {}\n    \
                        timeout: 300\n";
        assert_eq!(text, expected);
    }
}
