//! The program's own output contains no secrets; responses of servers are unchanged (SEC-2).

use std::fs;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::program::{Folder, Run};

/// Escaped in JSON.
const TOKEN: &str = "hunter22/\"correct\"-horse";

/// An argument that is not a secret.
const PATH: &str = "/srv/some data";

fn folder(more: &Value) -> Folder {
    let mut server = json!({
        "command": peers::python(),
        "args": ["-I", peers::repeating_server(), PATH],
        "env": { "TOKEN": "${SECRET_TOKEN}" },
    });
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let content = json!({ "mcpServers": { "repeating": server } }).to_string();
    Folder::new().file("trunkline.json", content)
}

fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command(arguments);
    command.env("SECRET_TOKEN", TOKEN).env("TRUNKLINE_CACHE", folder.project().join("cache"));
    folder.finish(&mut command)
}

/// Whether a text contains the secret, plain or escaped as in JSON.
fn holds(text: &str) -> bool {
    text.contains("hunter22")
}

#[test]
fn status_holds_no_secret_and_paths_are_legible() {
    let folder = folder(&json!({}));
    for arguments in [&["status"][..], &["status", "--format", "json"]] {
        let run = run(&folder, arguments);
        assert!(!holds(&run.output) && !holds(&run.messages), "{run}");
    }
    let status = run(&folder, &["status", "--format", "json"]).json();
    let server = &status["servers"][0];
    assert_eq!(server["serverInfo"]["name"], "repeating ***", "{status}");
    assert_eq!(server["stderr"][0], format!("{{\"token\": \"***\"}} from {PATH}"), "{status}");
    let reason = server["notRemembered"].as_str().unwrap();
    assert!(reason.contains("secret of the configuration"), "{reason}");
}

#[test]
fn no_secret_is_written_to_the_cache() {
    let folder = folder(&json!({}));
    assert_eq!(run(&folder, &["tools"]).code, 0);
    let cache = fs::read_dir(folder.project().join("cache")).into_iter().flatten().flatten();
    for file in cache {
        assert!(!holds(&fs::read_to_string(file.path()).unwrap()), "{:?}", file.path());
    }
}

#[test]
fn lines_of_a_log_hold_no_secret() {
    let run = run(&folder(&json!({})), &["-v", "call", "repeating_log"]);
    assert!(run.output.contains("done") && run.messages.contains("using ***"), "{run}");
    assert!(!holds(&run.output) && !holds(&run.messages), "{run}");
}

#[test]
fn answers_pass_as_they_are() {
    let folder = folder(&json!({}));
    let said = run(&folder, &["call", "repeating_say"]);
    assert!(said.output.contains(TOKEN), "{said}");
    // The message that the command builds from an error is its own.
    let failed = run(&folder, &["call", "repeating_fail"]);
    assert!(!failed.messages.contains(TOKEN) && failed.messages.contains("***"), "{failed}");
}

#[test]
fn responses_are_masked_if_configured() {
    let folder = folder(&json!({ "redact": true }));
    let said = run(&folder, &["call", "repeating_say"]);
    assert!(said.output.contains("it is ***"), "{said}");
    let failed = run(&folder, &["call", "repeating_fail"]);
    assert!(failed.messages.contains("no tools/call, ***"), "{failed}");
    let listed = run(&folder, &["tools", "--format", "json"]);
    for run in [&said, &failed, &listed] {
        assert!(!holds(&run.output) && !holds(&run.messages), "{run}");
    }
}
