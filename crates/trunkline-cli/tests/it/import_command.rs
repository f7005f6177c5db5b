//! `trunkline import`, `install`, `uninstall`, `add`, `remove` and `init`: files of other hosts and our own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::program::Folder;

/// A credential that must not be printed.
const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

/// Files of ten hosts, as their users have them: below the home directory, and their text.
fn host_files() -> Vec<(&'static str, String)> {
    let cursor = json!({ "mcpServers": {
        "github": { "command": "npx", "args": ["-y", "github-mcp"], "env": { "GITHUB_TOKEN": TOKEN } },
        "time": { "command": "uvx", "args": ["mcp-server-time"] },
    } });
    vec![
        (".cursor/mcp.json", cursor.to_string()),
        (
            ".codex/config.toml",
            "model = \"x\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs-mcp\"]\n\
             env_vars = [\"DOCS_KEY\"]\ntool_timeout_sec = 90\ndefault_tools_approval_mode = \"prompt\"\n\
             [mcp_servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\n"
                .to_owned(),
        ),
        (
            ".config/goose/config.yaml",
            "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  \
             time:\n    enabled: false\n    type: stdio\n    name: time\n    cmd: uvx\n    \
             args: [\"mcp-server-time\", \"--local-timezone=UTC\"]\n    timeout: 300\n"
                .to_owned(),
        ),
        (
            ".config/Code/User/mcp.json",
            "// mine\n{ \"inputs\": [{ \"type\": \"promptString\", \"id\": \"key\" }],\n  \"servers\": { \"remote\": { \"type\": \
             \"http\", \"url\": \"https://example.com/mcp\", \"headers\": { \"Authorization\": \"Bearer ${input:key}\" } }, }, }\n"
                .to_owned(),
        ),
        (
            ".claude.json",
            json!({ "numStartups": 3, "mcpServers": { "api": { "type": "http", "url": "https://api.example.com/mcp" } } })
                .to_string(),
        ),
        (".config/zed/settings.json", r#"{ "theme": "x", "context_servers": { "zed-tool": { "command": "zt" } } }"#.to_owned()),
        (".gemini/settings.json", r#"{ "mcpServers": { "gem": { "httpUrl": "https://g.example.com", "trust": true } } }"#.to_owned()),
        (".codeium/windsurf/mcp_config.json", r#"{ "mcpServers": { "surf": { "serverUrl": "https://s.example.com", "disabledTools": ["x"] } } }"#.to_owned()),
        (".config/opencode/opencode.json", r#"{ "mcp": { "oc": { "type": "local", "command": ["oc", "run"], "environment": { "K": "{env:K}" } } } }"#.to_owned()),
        (".copilot/mcp-config.json", r#"{ "mcpServers": { "cop": { "type": "local", "command": "cop", "tools": ["*"] } } }"#.to_owned()),
    ]
}

pub(crate) fn home(folder: &Folder) -> PathBuf {
    folder.project().with_file_name("home")
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// An empty project of a user with ten hosts.
fn machine() -> Folder {
    let folder = Folder::new();
    for (path, text) in host_files() {
        write(&home(&folder).join(path), &text);
    }
    folder
}

pub(crate) fn own_file(folder: &Folder) -> PathBuf {
    home(folder).join(".config/trunkline/mcp.json")
}

pub(crate) fn own_servers(folder: &Folder) -> Value {
    let text = fs::read_to_string(own_file(folder)).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["mcpServers"].clone()
}

#[test]
fn servers_of_ten_hosts_are_found_and_imported() {
    let folder = machine();
    let run = folder.run(&["tools"]);
    assert!(run.messages.contains("can be imported: `trunkline import`"), "{run}");
    let run = folder.run(&["import"]);
    assert!(run.code == 2 && run.messages.contains("nothing was written"), "{run}");
    assert!(!own_file(&folder).exists());
    let run = folder.run(&["import", "--all"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!run.to_string().contains(TOKEN), "{run}");
    assert!(run.output.contains("no: same as `time` of Cursor"), "{run}");
    assert!(run.output.contains("as time-goose: differs from `time` of Cursor"), "{run}");
    for note in [
        "docs: `default_tools_approval_mode` is not carried over: approval",
        "remote: `${input:key}` became `${secret:key}`",
        "developer",
        "github: GITHUB_TOKEN is a credential in plain text",
    ] {
        assert!(run.messages.contains(note), "{note}: {run}");
    }
    let servers = own_servers(&folder);
    assert_eq!(
        servers,
        json!({
            "api": { "type": "http", "url": "https://api.example.com/mcp" },
            "github": { "command": "npx", "args": ["-y", "github-mcp"], "env": { "GITHUB_TOKEN": TOKEN } },
            "time": { "command": "uvx", "args": ["mcp-server-time"] },
            "remote": { "type": "http", "url": "https://example.com/mcp",
                "headers": { "Authorization": "Bearer ${secret:key}" } },
            "surf": { "url": "https://s.example.com", "denyTools": ["x"] },
            "zed-tool": { "command": "zt" },
            "oc": { "command": "oc", "args": ["run"], "env": { "K": "${K}" } },
            "docs": { "command": "npx", "args": ["-y", "docs-mcp"], "inheritEnv": ["DOCS_KEY"],
                "timeouts": { "call": 90_000 } },
            "gem": servers["gem"],
            "time-goose": servers["time-goose"],
            "cop": servers["cop"],
        }),
        "{servers:#}"
    );
    assert_eq!(servers["time-goose"]["enabled"], false);
    let run = folder.run(&["check"]);
    assert!(!run.output.contains("error["), "{run}");
    let run = folder.run(&["import", "--all"]);
    assert!(run.messages.contains("nothing to import"), "{run}");
    assert_eq!(own_servers(&folder), servers);
}

#[test]
fn credentials_move_to_the_store_on_request() {
    let folder = machine();
    let config = json!({ "secrets": { "store": "file" } });
    write(&own_file(&folder), &format!("// my own\n{config}\n"));
    // Seen: `***`, where the reference is written. The store is not needed for it.
    let run = folder.run(&["import", "cursor", "--move-secrets", "--dry-run"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.contains("\"GITHUB_TOKEN\": \"${secret:github.GITHUB_TOKEN}\""), "{run}");
    assert!(!run.to_string().contains(TOKEN) && !run.output.contains("***"), "{run}");
    let mut command = folder.command(&["import", "cursor", "--move-secrets"]);
    let run = folder.finish(command.env("TRUNKLINE_PASSPHRASE", "a passphrase for this test"));
    assert_eq!(run.code, 0, "{run}");
    let text = fs::read_to_string(own_file(&folder)).unwrap();
    assert!(text.contains("${secret:github.GITHUB_TOKEN}") && !text.contains(TOKEN), "{text}");
    assert!(text.starts_with("// my own\n"), "{text}");
}

#[test]
fn a_broken_file_is_named_and_the_others_are_imported() {
    let folder = machine();
    write(&home(&folder).join(".cursor/mcp.json"), "{ \"mcpServers\": { \"x\": ");
    let run = folder.run(&["import", "--all"]);
    assert!(run.code == 0 && run.messages.contains(".cursor/mcp.json:1: "), "{run}");
    assert!(own_servers(&folder)["docs"].is_object());
    let run = folder.run(&["import", "curser"]);
    assert!(run.code == 4 && run.messages.contains("did you mean `cursor`?"), "{run}");
}

/// Every byte outside of the entry is kept.
#[test]
fn trunkline_is_put_into_files_of_hosts_and_taken_out() {
    let folder = machine();
    let cases = [
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("goose", ".config/goose/config.yaml"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("claude-code", ".claude.json"),
        ("zed", ".config/zed/settings.json"),
        ("gemini", ".gemini/settings.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("opencode", ".config/opencode/opencode.json"),
        ("copilot-cli", ".copilot/mcp-config.json"),
    ];
    for (host, path) in cases {
        let path = home(&folder).join(path);
        let before = fs::read_to_string(&path).unwrap();
        let run = folder.run(&["install", host, "--dry-run"]);
        assert!(run.code == 0 && run.output.contains("connect"), "{run}");
        assert!(!run.output.contains(TOKEN) && !run.output.contains("numStartups"), "{run}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        let run = folder.run(&["install", host]);
        assert_eq!(run.code, 0, "{run}");
        let after = fs::read_to_string(&path).unwrap();
        let read = folder.run(&["config", "--config", path.to_str().unwrap(), "--format", "json"]);
        let is_there = host == "claude-code" || read.output.contains("trunkline");
        assert!(after.contains("connect") && is_there, "{host}: {after}\n{read}");
        let again = folder.run(&["install", host]);
        assert!(again.messages.contains("already"), "{again}");
        let run = folder.run(&["uninstall", host]);
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{host}");
    }
    // A host without a file gets one, and Trunkline is not imported into itself.
    let run = folder.run(&["install", "claude-desktop"]);
    assert_eq!(run.code, 0, "{run}");
    let run = folder.run(&["import", "claude-desktop"]);
    assert!(run.messages.contains("is Trunkline itself"), "{run}");
}

#[test]
fn a_file_that_trunkline_reads_itself_is_refused() {
    let folder = Folder::new();
    write(&folder.project().join(".mcp.json"), r#"{ "mcpServers": { "a": { "command": "a" } } }"#);
    let run = folder.run(&["install", "claude-code", "--project"]);
    assert!(run.code == 1 && run.messages.contains("Trunkline would start itself"), "{run}");
    let run = folder.run(&["import", "--project", "--all"]);
    assert_eq!(run.code, 0, "{run}");
    let run = folder.run(&["install", "claude-code", "--project"]);
    assert_eq!(run.code, 0, "{run}");
    let run = folder.run(&["config"]);
    assert!(run.output.contains("trunkline.json") && !run.output.contains("connect"), "{run}");
}

#[cfg(unix)]
#[test]
fn linked_and_locked_files_are_respected() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = machine();
    let (link, target) =
        (home(&folder).join(".cursor/mcp.json"), home(&folder).join("dotfiles/mcp.json"));
    write(&target, "{ \"mcpServers\": {} }\n");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(folder.run(&["install", "cursor"]).code, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("connect"));
    let own = own_file(&folder);
    write(&own, "{ \"mcpServers\": {} }\n");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(folder.run(&["add", "a", "--", "a"]).code, 0);
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn servers_are_added_and_removed() {
    let folder = Folder::new();
    let run = folder.run(&["add", "time", "--", "uvx", "mcp-server-time"]);
    assert_eq!(run.code, 0, "{run}");
    let url =
        ["add", "docs", "https://example.com/mcp", "--header", "Authorization: Bearer ${TOKEN}"];
    assert_eq!(folder.run(&url).code, 0);
    assert_eq!(
        own_servers(&folder),
        json!({
            "time": { "command": "uvx", "args": ["mcp-server-time"] },
            "docs": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } },
        })
    );
    let run = folder.run(&["add", "time", "--", "other"]);
    assert!(run.code == 1 && run.messages.contains("`--force` replaces it"), "{run}");
    let run = folder.run(&["add", "x"]);
    assert!(run.code == 2 && run.messages.contains("after `--`, or its URL"), "{run}");
    let run = folder.run(&["add", "x", "--env", "NOVALUE", "--", "x"]);
    assert_eq!(run.code, 2, "{run}");
    let run = folder.run(&["remove", "tiem"]);
    assert!(run.code == 4 && run.messages.contains("did you mean `time`?"), "{run}");
    assert_eq!(folder.run(&["remove", "time"]).code, 0);
    assert!(own_servers(&folder).get("time").is_none());
    write(&own_file(&folder), "{ \"mcpServers\": { // mine\n");
    let run = folder.run(&["add", "y", "--", "y"]);
    assert!(run.code == 1 && run.messages.contains("is not changed: line "), "{run}");
    assert_eq!(fs::read_to_string(own_file(&folder)).unwrap(), "{ \"mcpServers\": { // mine\n");
}

#[test]
fn a_project_begins_with_an_empty_file() {
    let folder = Folder::new();
    assert_eq!(folder.run(&["init"]).code, 0);
    let run = folder.run(&["init"]);
    assert!(run.code == 1 && run.messages.contains("exists already"), "{run}");
    let program = env!("CARGO_BIN_EXE_trunkline");
    let run = folder.run(&["add", "words", "--project", "--", program, "demo-server", "words"]);
    assert_eq!(run.code, 0, "{run}");
    let text = fs::read_to_string(folder.project().join("trunkline.json")).unwrap();
    assert!(
        text.contains("// The MCP servers of this directory.") && text.contains("demo-server"),
        "{text}"
    );
    assert_eq!(folder.run(&["check"]).code, 0);
}

#[test]
fn five_hundred_servers_are_imported() {
    let folder = Folder::new();
    let servers: serde_json::Map<_, _> =
        (0..500).map(|it| (format!("s{it}"), json!({ "command": format!("c{it}") }))).collect();
    write(&home(&folder).join(".cursor/mcp.json"), &json!({ "mcpServers": servers }).to_string());
    let run = folder.run(&["import", "--all", "--format", "json"]);
    assert_eq!(run.json()["servers"].as_array().unwrap().len(), 500, "{run}");
    assert_eq!(own_servers(&folder).as_object().unwrap().len(), 500);
}

/// No command shows a secret of an entry that it adds, replaces or removes.
#[test]
fn secrets_of_changed_entries_are_not_shown() {
    const SECRETS: [&str; 4] = [
        "sk-LEAKSECRET1234567890",
        "ghp_ARGSECRET1234567890abcdefABCDEF12",
        "PGSECRET77",
        "URLSECRET123456789",
    ];
    let folder = Folder::new();
    let servers = json!({ "mcpServers": {
        "env": { "command": "e", "env": { "TOKEN": SECRETS[0], "DEBUG": "1", "E": "e" } },
        "args": { "command": "a", "args": ["--token", SECRETS[1]] },
        "pg": { "command": "p", "args": [format!("postgresql://u:{}@h/db", SECRETS[2])] },
        "url": { "url": format!("https://example.com/mcp?api_key={}", SECRETS[3]) },
    } });
    write(&home(&folder).join(".cursor/mcp.json"), &servers.to_string());
    write(&own_file(&folder), &servers.to_string());
    let mut cases = vec![vec!["import", "cursor", "--dry-run", "--config", "new.json"]];
    for name in ["env", "args", "pg", "url"] {
        cases.push(vec!["remove", name, "--dry-run"]);
        cases.push(vec!["add", name, "--force", "--dry-run", "--", "x"]);
        for action in ["install", "uninstall"] {
            cases.push(vec![action, "cursor", "--name", name, "--force", "--dry-run"]);
            cases.push(vec![
                action,
                "cursor",
                "--name",
                name,
                "--force",
                "--dry-run",
                "--format",
                "json",
            ]);
        }
    }
    cases.push(vec!["tools", "--", "no-such-program", "--token", SECRETS[1]]);
    for case in cases {
        let run = folder.run(&case);
        for secret in SECRETS {
            assert!(!run.to_string().contains(secret), "{case:?}: {run}");
        }
    }
    let run = folder.run(&["import", "cursor", "--dry-run", "--config", "new.json"]);
    assert!(run.messages.contains("args: `args` has a credential in plain text"), "{run}");
    assert!(!run.messages.contains("DEBUG is a credential"), "{run}");
    let run = folder.run(&["add", "s", "--env", SECRETS[0], "--", "foo"]);
    assert!(run.code == 2 && !run.to_string().contains(SECRETS[0]), "{run}");
    let run = folder.run(&["add", "s", "--env", "A=1", "--env", "A=2", "--", "foo"]);
    assert!(run.code == 2 && run.messages.contains("given twice"), "{run}");
}

#[cfg(unix)]
#[test]
fn a_new_file_is_only_for_its_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = machine();
    assert_eq!(folder.run(&["import", "--all"]).code, 0);
    assert_eq!(fs::metadata(own_file(&folder)).unwrap().permissions().mode() & 0o777, 0o600);
}

/// No stored secret is replaced by another, and a second import adds nothing.
#[test]
fn moved_secrets_keep_others() {
    let folder = Folder::new();
    let servers = json!({ "mcpServers": {
        "a b": { "command": "a", "env": { "API_KEY": "sk-FIRST1234567890abcd" } },
        "a_b": { "command": "b", "env": { "API_KEY": "sk-SECOND234567890abcd" } },
    } });
    write(&home(&folder).join(".cursor/mcp.json"), &servers.to_string());
    write(&own_file(&folder), r#"{ "secrets": { "store": "file" } }"#);
    let with_passphrase = |arguments: &[&str]| {
        folder.finish(
            folder.command(arguments).env("TRUNKLINE_PASSPHRASE", "a passphrase for this test"),
        )
    };
    let run = with_passphrase(&["import", "--all", "--move-secrets"]);
    assert_eq!(run.code, 0, "{run}");
    let first = own_servers(&folder);
    assert_ne!(first["a b"]["env"]["API_KEY"], first["a_b"]["env"]["API_KEY"], "{first}");
    let run = with_passphrase(&["import", "--all", "--move-secrets"]);
    assert!(run.messages.contains("nothing to import"), "{run}");
    assert_eq!(own_servers(&folder), first);
}

#[test]
fn entries_that_are_not_trunkline_are_left_alone() {
    let folder = machine();
    let path = home(&folder).join(".cursor/mcp.json");
    let before = fs::read_to_string(&path).unwrap();
    for action in ["install", "uninstall"] {
        let run = folder.run(&[action, "cursor", "--name", "github"]);
        assert!(run.code == 1 && run.messages.contains("is not Trunkline"), "{run}");
    }
    assert_eq!(folder.run(&["install", "cursor", "--name", ""]).code, 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    for path in
        [".config/zed/settings.json", ".codex/config.toml", ".config/opencode/opencode.json"]
    {
        let path = home(&folder).join(path);
        let before = fs::read_to_string(&path).unwrap();
        let run = folder.run(&["add", "x", "--config", path.to_str().unwrap(), "--", "x"]);
        assert!(run.code == 1 && run.messages.contains("the form of another host"), "{run}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}

#[test]
fn hosts_with_units_and_rules_of_their_own_are_read_by_them() {
    let folder = Folder::new();
    let cline = r#"{"mcpServers":{"c":{"command":"npx","args":["${HOME}"],"timeout":90},"u":{"url":"https://e.com","timeout":1800}}}"#;
    write(&home(&folder).join(".cline/data/settings/cline_mcp_settings.json"), cline);
    let on = r#"{"mcpServers":{"t":{"command":"t","disabled":true}}}"#;
    write(&home(&folder).join(".cursor/mcp.json"), on);
    write(&home(&folder).join(".codex/config.toml"), "[mcp_servers.t]\ncommand = \"t\"\n");
    let bad = r#"{"servers":{"v":{"command":"v","env":{"T":"${input:bad name}"}}},"inputs":[{"id":"bad name","type":"promptString"}]}"#;
    write(&home(&folder).join(".config/Code/User/mcp.json"), bad);
    let run = folder.run(&["import", "--all"]);
    assert_eq!(run.code, 0, "{run}");
    let servers = own_servers(&folder);
    assert_eq!(
        servers["c"],
        json!({ "command": "npx", "args": ["$${HOME}"], "timeouts": { "call": 90_000 } })
    );
    assert_eq!(
        servers["u"],
        json!({ "type": "sse", "url": "https://e.com", "timeouts": { "call": 1_800_000 } })
    );
    assert_eq!(servers["t"], json!({ "command": "t" }), "it is on in one of the hosts");
    assert!(servers.get("v").is_none() && run.messages.contains("`v` cannot be imported"), "{run}");
    let run = folder.run(&["import", "vscode"]);
    assert_eq!(run.code, 1, "{run}");
}

/// Two processes that change one file at the same time do not undo each other's changes.
#[test]
fn changes_at_the_same_time_are_not_lost() {
    let folder = Folder::new();
    write(&own_file(&folder), "{ \"mcpServers\": {} }\n");
    let names: Vec<String> = (0..24).map(|it| format!("s{it}")).collect();
    let children: Vec<_> = names
        .iter()
        .map(|name| {
            let mut command = folder.command(&["add", name, "--", "x"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            (name, command.spawn().unwrap())
        })
        .collect();
    let added: Vec<_> = children
        .into_iter()
        .filter_map(|(name, mut child)| child.wait().unwrap().success().then_some(name))
        .collect();
    let servers = own_servers(&folder);
    assert!(!added.is_empty());
    assert!(added.iter().all(|name| servers.get(name.as_str()).is_some()), "{added:?} {servers}");
}

/// Seen: nothing was written, and the exit code was 0.
#[test]
fn an_import_that_cannot_ask_says_how_to_choose() {
    let folder = machine();
    for format in ["text", "json"] {
        let mut command = folder.command(&["import", "--format", format]);
        let run = folder.finish(command.stdin(std::process::Stdio::null()));
        assert_eq!(run.code, 2, "{run}");
        let message = "error: nothing was written: without a terminal, nothing can be asked\n";
        assert!(run.messages.contains(message), "{run}");
        let hint = "`trunkline import --all` writes all 11 servers, `trunkline import HOST…` those of some hosts\n";
        assert!(run.messages.contains(hint), "{run}");
        assert!(format == "text" || run.json()["written"] == false, "{run}");
    }
    assert!(!own_file(&folder).exists());
    assert_eq!(folder.run(&["import", "--dry-run"]).code, 0);
}

/// Seen: three numbers of servers in one run, and the option that was given as advice.
#[test]
fn the_numbers_of_an_import_agree() {
    let folder = machine();
    write(
        &folder.project().join(".cursor/mcp.json"),
        r#"{ "mcpServers": { "here": { "command": "h" } } }"#,
    );
    write(
        &home(&folder).join(".kiro/settings/mcp.json"),
        r#"{ "mcpServers": { "bad": { "args": ["x"] } } }"#,
    );
    let config = json!({ "secrets": { "store": "file" } });
    let offer = folder.run(&["tools"]);
    assert!(offer.messages.contains("11 servers of "), "{offer}");
    write(&own_file(&folder), &config.to_string());
    let mut command = folder.command(&["import", "--all", "--move-secrets"]);
    let run = folder.finish(command.env("TRUNKLINE_PASSPHRASE", "a passphrase for this test"));
    assert_eq!(run.code, 0, "{run}");
    assert!(!run.messages.contains("--move-secrets"), "{run}");
    for message in [
        "note: github: GITHUB_TOKEN is a credential in plain text, and moves to the store for secrets\n",
        "12 servers found: 11 to write, 1 the same as another\n",
        "11 servers written to [folder]/home/.config/trunkline/mcp.json",
        "1 credential moved to the store for secrets",
        "1 server of this directory: `trunkline import --project`",
    ] {
        assert!(run.messages.contains(message), "{message}: {run}");
    }
    assert_eq!(own_servers(&folder).as_object().unwrap().len(), 11);
    let run = folder.run(&["import", "--all"]);
    assert!(
        run.messages.contains("12 servers found: 0 to write, 12 the same as another\n"),
        "{run}"
    );
}
