//! `trunkline import`: fields and files of hosts that change what their servers may do.

use serde_json::{Value, json};

use crate::import_command::{home, own_file, own_servers, write};
use crate::support::program::Folder;

/// Seen: servers that were switched off in Claude Code were imported switched on.
#[test]
fn servers_that_claude_code_has_switched_off_stay_off() {
    let folder = Folder::new();
    let names = ["in-state", "by-toggle", "in-settings", "in-local", "in-user", "on"];
    let servers: Value =
        names.map(|it| (it.to_owned(), json!({ "command": it }))).into_iter().collect();
    let project = folder.project();
    write(&project.join(".mcp.json"), &json!({ "mcpServers": servers }).to_string());
    let list = |name: &str| json!({ "disabledMcpjsonServers": [name] }).to_string();
    write(&project.join(".claude/settings.json"), &list("in-settings"));
    write(&project.join(".claude/settings.local.json"), &list("in-local"));
    write(&home(&folder).join(".claude/settings.json"), &list("in-user"));
    let section =
        json!({ "disabledMcpjsonServers": ["in-state"], "disabledMcpServers": ["by-toggle"] });
    let state = json!({ "projects": { project.to_str().unwrap(): section } });
    write(&home(&folder).join(".claude.json"), &state.to_string());
    let imported = || {
        let run = folder.run(&["import", "--all", "--project", "--format", "json", "--dry-run"]);
        let servers = run.json()["servers"].as_array().unwrap().clone();
        let is_on = |it: &Value| it["enabled"] == true;
        let on: Vec<_> =
            servers.iter().filter(|it| is_on(it)).map(|it| it["name"].clone()).collect();
        (on, run)
    };
    let (on, run) = imported();
    assert_eq!(on, ["on"], "{run}");
    // A list that cannot be read may name any server.
    write(&project.join(".claude/settings.local.json"), "{ \"disabledMcpjsonServers\": [");
    let (on, run) = imported();
    assert!(on.is_empty(), "{run}");
    let failure = run.json()["failures"][0].to_string();
    assert!(
        failure.contains("settings.local.json: `disabledMcpjsonServers` cannot be read"),
        "{run}"
    );
    let run = folder.run(&["import", "--all", "--project"]);
    assert_eq!(run.code, 0, "{run}");
    let text = std::fs::read_to_string(project.join("trunkline.json")).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        written["mcpServers"]["in-state"],
        json!({ "command": "in-state", "enabled": false })
    );
}

/// Seen: rules of a host that deny tools, and entries that only switch a server off, were left out without a word.
#[test]
fn rules_of_hosts_that_are_not_carried_over_are_named() {
    let folder = Folder::new();
    let opencode = json!({
        "permission": { "fs_*": "deny" },
        "tools": { "fs_write": false },
        "agent": { "plan": { "tools": { "fs_move": false } } },
        "mcp": { "fs": { "type": "local", "command": ["fs"] }, "gone": { "enabled": false } },
    });
    write(&home(&folder).join(".config/opencode/opencode.json"), &opencode.to_string());
    let vscode = json!({ "sandbox": { "enabled": true }, "servers": { "v": { "command": "v" } } });
    write(&home(&folder).join(".config/Code/User/mcp.json"), &vscode.to_string());
    let agent = json!({
        "name": "a", "tools": ["@git"], "allowedTools": ["@git/status"], "mcpServers": { "git": { "command": "g" } },
    });
    write(&home(&folder).join(".aws/amazonq/cli-agents/a.json"), &agent.to_string());
    let run = folder.run(&["import", "--all", "--dry-run"]);
    assert_eq!(run.code, 0, "{run}");
    for note in [
        "opencode.json: `permission` is not carried over: ",
        "opencode.json: `tools` is not carried over: ",
        "opencode.json: `agent` is not carried over: ",
        "opencode.json: there is no server `gone` to switch on or off",
        "Code/User/mcp.json: `sandbox` is not carried over: ",
        "cli-agents/a.json: `tools` is not carried over: ",
        "cli-agents/a.json: `allowedTools` is not carried over: ",
    ] {
        assert!(run.messages.contains(note), "{note}: {run}");
    }
    let run = folder.run(&["import", "vscode", "--dry-run", "--format", "json"]);
    assert!(run.json()["notes"][0].as_str().unwrap().contains("`sandbox`"), "{run}");
    // Rules that allow everything, and other settings, are no loss.
    let opencode = json!({
        "permission": "allow", "tools": { "x": true }, "agent": { "plan": { "model": "m" } },
        "mcp": { "fs": { "type": "local", "command": ["fs"] } },
    });
    write(&home(&folder).join(".config/opencode/opencode.json"), &opencode.to_string());
    let run = folder.run(&["import", "opencode", "--dry-run"]);
    assert!(!run.messages.contains("not carried over"), "{run}");
}

/// Seen: the client secret of a login was copied without a note, and `--move-secrets` left it there.
#[test]
fn client_secrets_of_logins_are_credentials() {
    const SECRET: &str = "verysecretxyz";
    let folder = Folder::new();
    let cursor = json!({ "mcpServers": { "o": {
        "url": "https://example.com/mcp", "auth": { "CLIENT_ID": "cid", "CLIENT_SECRET": SECRET },
    } } });
    write(&home(&folder).join(".cursor/mcp.json"), &cursor.to_string());
    let gemini = json!({ "mcpServers": { "g": {
        "httpUrl": "https://g.example.com", "oauth": { "enabled": true, "clientId": "gid", "clientSecret": SECRET },
    } } });
    write(&home(&folder).join(".gemini/settings.json"), &gemini.to_string());
    write(&own_file(&folder), r#"{ "secrets": { "store": "file" } }"#);
    let run = folder.run(&["import", "--all", "--dry-run"]);
    for note in [
        "note: o: oauth.clientSecret is a credential in plain text; `--move-secrets` moves it",
        "note: g: oauth.clientSecret is a credential in plain text; `--move-secrets` moves it",
    ] {
        assert!(run.messages.contains(note), "{note}: {run}");
    }
    let mut command = folder.command(&["import", "--all", "--move-secrets"]);
    let run = folder.finish(command.env("TRUNKLINE_PASSPHRASE", "a passphrase for this test"));
    assert!(run.code == 0 && !run.to_string().contains(SECRET), "{run}");
    assert!(run.messages.contains("2 credentials moved"), "{run}");
    let servers = own_servers(&folder);
    assert_eq!(servers["o"]["oauth"]["clientSecret"], "${secret:o.oauth.clientSecret}");
    assert_eq!(servers["g"]["oauth"]["clientSecret"], "${secret:g.oauth.clientSecret}");
}

/// Seen: `words` of two hosts became `C D`, and the name went to another server of a third host.
#[test]
fn the_name_of_a_server_that_was_merged_is_not_given_to_another() {
    let folder = Folder::new();
    let words = json!({ "command": "demo-server", "args": ["words"] });
    let entry = |name: &str| json!({ "mcpServers": { name: words } }).to_string();
    write(&home(&folder).join(".config/Claude/claude_desktop_config.json"), &entry("C D"));
    write(&home(&folder).join(".cursor/mcp.json"), &entry("words"));
    let numbers = "[mcp_servers.words]\ncommand = \"demo-server\"\nargs = [\"numbers\"]\n";
    write(&home(&folder).join(".codex/config.toml"), numbers);
    // A host that is listed after the one with the other server has the merged one too.
    write(&home(&folder).join(".copilot/mcp-config.json"), &entry("late"));
    let late = json!({ "mcpServers": { "late": { "command": "other" } } });
    write(&home(&folder).join(".codeium/windsurf/mcp_config.json"), &late.to_string());
    let run = folder.run(&["import", "--all"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.contains("no: same as `C D` of Claude Desktop"), "{run}");
    assert!(run.output.contains("as words-codex: differs from `words` of Cursor"), "{run}");
    assert!(
        run.output.contains("as late-windsurf: differs from `late` of GitHub Copilot CLI"),
        "{run}"
    );
    let servers = own_servers(&folder);
    let names: Vec<_> = servers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["C D", "late-windsurf", "words-codex"], "{servers:#}");
    let run = folder.run(&["import", "--all"]);
    assert!(run.messages.contains("nothing to import"), "{run}");
}

/// Seen: the default of a reference was called a credential.
#[test]
fn the_default_of_a_reference_is_no_credential() {
    let folder = Folder::new();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let servers = json!({ "mcpServers": {
        "plain": { "command": "p", "args": ["${X:-d}"] },
        "token": { "command": "t", "args": [format!("${{X:-{token}}}")] },
    } });
    write(&home(&folder).join(".cursor/mcp.json"), &servers.to_string());
    let run = folder.run(&["import", "--all", "--dry-run"]);
    assert!(!run.to_string().contains(token), "{run}");
    assert!(!run.messages.contains("plain: "), "{run}");
    assert!(run.messages.contains("token: `args` has a credential in plain text"), "{run}");
}

/// Seen: `bearerTokenEnv` was left out, a command line was one program, and `imports` was not named.
#[test]
fn servers_of_mcporter_are_imported_as_it_runs_them() {
    let folder = Folder::new();
    let config = json!({ "imports": ["cursor"], "mcpServers": {
        "words": { "command": format!("'{}' demo-server words", env!("CARGO_BIN_EXE_trunkline")) },
        "docs": { "baseUrl": "https://example.com/mcp", "bearerTokenEnv": "DOCS_TOKEN" },
        "plain": { "baseUrl": "https://example.com/plain", "bearerToken": "sesame-open" },
    } });
    let path = home(&folder).join(".mcporter/mcporter.json");
    write(&path, &config.to_string());
    let run = folder.run(&["import", "mcporter"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.messages.contains("mcporter.json: `imports` is not carried over: "), "{run}");
    assert!(!run.to_string().contains("sesame"), "{run}");
    let servers = own_servers(&folder);
    assert_eq!(servers["words"]["args"], json!(["demo-server", "words"]), "{servers}");
    assert_eq!(servers["docs"]["headers"]["Authorization"], "Bearer ${DOCS_TOKEN}");
    assert_eq!(servers["plain"]["headers"]["Authorization"], "Bearer sesame-open");
    let path = path.to_str().unwrap();
    let run = folder.run(&["call", "words", "shout", "text=hi", "--config", path]);
    assert!(run.code == 0 && run.output.contains("HI"), "{run}");
    let run = folder.run(&["check", "-v", path]);
    assert!(run.to_string().contains("`imports` is kept and has no effect"), "{run}");
}
