//! References to stored secrets: resolved when a server starts, and only for that server.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::program::{Folder, Run};
use crate::support::secrets::{CANARY, bare_command, command, run, set, write_own_config};

/// A server that writes its environment to a file and ends.
fn server(more: &Value) -> Value {
    let mut server = json!({ "command": "sh", "args": ["-c", "env > variables.txt"] });
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server
}

fn folder(server: &Value) -> Folder {
    let config = json!({ "restart": "never", "mcpServers": { "s": server } });
    Folder::new().file("trunkline.json", config.to_string())
}

fn variables(folder: &Folder) -> Option<String> {
    fs::read_to_string(folder.project().join("variables.txt")).ok()
}

fn has_canary(run: &Run) -> bool {
    run.to_string().contains("canary")
}

#[test]
fn a_reference_is_resolved_for_its_server_and_masked_in_output() {
    let folder = folder(&server(&json!({ "env": { "TOKEN": "${secret:GITHUB_TOKEN}" } })));
    set(&folder, "GITHUB_TOKEN", CANARY);
    set(&folder, "OTHER", "other-canary");
    for arguments in [&["status"][..], &["-vvv", "status"], &["config", "-v"], &["check", "-v"]] {
        let run = run(&folder, arguments);
        assert!(!has_canary(&run), "{arguments:?}: {run}");
    }
    let variables = variables(&folder).unwrap();
    assert!(variables.contains(&format!("TOKEN={CANARY}")), "{variables}");
    assert!(!variables.contains("other-canary"), "{variables}");
}

/// The key of all secrets would be a secret of every server.
#[test]
fn the_key_of_the_store_is_not_inherited() {
    let folder = folder(&server(&json!({ "inheritEnv": true })));
    let mut command = command(&folder, &["status"]);
    command.env("TRUNKLINE_SECRETS_PASSPHRASE", CANARY).env("TRUNKLINE_SECRETS_KEY", CANARY);
    command.env("ORDINARY", "ordinary");
    folder.finish(&mut command);
    let variables = variables(&folder).unwrap();
    assert!(variables.contains("ORDINARY=ordinary"), "{variables}");
    assert!(!variables.contains("canary"), "{variables}");
}

#[test]
fn a_missing_secret_is_a_warning_of_check_and_an_error_of_its_server() {
    let env = json!({ "A": "${secret:NO_SUCH}", "B": "${secret:NO_SUCH:-default}" });
    let folder = folder(&server(&json!({ "env": env })));
    insta::assert_snapshot!("check with a missing secret", run(&folder, &["check"]));
    let status = run(&folder, &["status", "--format", "json"]).json();
    let error = status["servers"][0].to_string();
    assert!(error.contains("there is no secret `NO_SUCH`"), "{error}");
    assert!(error.contains("trunkline secret set NO_SUCH"), "{error}");
    assert_eq!(variables(&folder), None);
}

#[test]
fn a_keychain_reference_does_not_read_files() {
    let folder = folder(&server(&json!({ "env": { "A": "${keychain:TOKEN:-default}" } })));
    set(&folder, "TOKEN", CANARY);
    let check = run(&folder, &["check"]);
    assert!(check.output.contains("the keychain cannot be read"), "{check}");
    assert!(!run(&folder, &["status"]).output.contains("default"));
    assert_eq!(variables(&folder), None);
}

#[test]
fn a_default_replaces_a_missing_secret_and_not_an_unreadable_one() {
    let folder = folder(&server(&json!({ "env": { "A": "${secret:TOKEN:-default}" } })));
    run(&folder, &["status"]);
    assert!(variables(&folder).unwrap().contains("A=default"));
    fs::remove_file(folder.project().join("variables.txt")).unwrap();
    write_own_config(&folder, r#"{ "secrets": { "store": 1 } }"#);
    let status = run(&folder, &["status"]);
    assert!(status.to_string().contains("the store for secrets is not known"), "{status}");
    assert_eq!(variables(&folder), None);
}

#[test]
fn a_found_file_uses_secrets_only_once_it_is_trusted() {
    let env = json!({ "A": "${secret:GITHUB_TOKEN}", "B": "${keychain:OTHER}" });
    let folder = folder(&server(&json!({ "env": env })));
    set(&Folder::new(), "GITHUB_TOKEN", CANARY);
    let status = folder.finish(&mut bare_command(&folder, &["status"]));
    assert!(status.to_string().contains("not trusted"), "{status}");
    assert_eq!(variables(&folder), None);
    let trust = folder.finish(&mut bare_command(&folder, &["trust"]));
    let shown = trust.to_string();
    assert!(shown.contains("reads   the secret GITHUB_TOKEN\n"), "{shown}");
    assert!(shown.contains("reads   the secret OTHER in the keychain\n"), "{shown}");
}

/// D-Bus messages are logged at the highest level; values in them are encrypted.
#[test]
fn values_from_a_keychain_are_in_no_log() {
    let references = json!({ "A": "${secret:TOKEN}", "B": "${keychain:TOKEN}" });
    let folder = folder(&server(&json!({ "env": references })));
    folder.trust();
    let program = env!("CARGO_BIN_EXE_trunkline");
    let script = format!(
        "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null
         printf canary-value | '{program}' secret set TOKEN
         '{program}' secret store; '{program}' secret list; '{program}' status"
    );
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", &script]).current_dir(folder.project()).env_clear();
    command
        .env("HOME", folder.project().join("../home"))
        .env("TRUNKLINE_LOG", "trunkline=trace,zbus=trace");
    command.env("XDG_RUNTIME_DIR", folder.project().join(".."));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let run = folder.finish(&mut command);
    assert!(run.output.contains("store   the keychain\n"), "{run}");
    assert!(run.messages.contains("zbus"), "{run}");
    assert!(!has_canary(&run), "{run}");
    let variables = variables(&folder).unwrap();
    assert!(variables.contains("A=canary-value") && variables.contains("B=canary-value"));
}
