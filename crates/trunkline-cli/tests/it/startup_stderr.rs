//! Stderr of real servers that do not start: the reason is shown legibly.

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::program::{Folder, Run};

fn failed(server: &Value) -> Run {
    let config = json!({ "mcpServers": { "s": server } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    let mut command = folder.command(&["tools", "--config", "mcp.json"]);
    let command = command.env("PATH", std::env::var_os("PATH").unwrap());
    folder.finish(command.env("DATA_FOLDER", "/no/such/data").env("API_TOKEN", "hunter2hunter2"))
}

fn assert_said(server: &Value, words: &[&str]) {
    let run = failed(server);
    for word in words {
        assert!(run.messages.contains(word), "{word}: {run}");
    }
    assert!(!run.messages.contains("***"), "{run}");
}

fn python(arguments: &[&str]) -> Value {
    json!({ "command": peers::python(), "args": arguments })
}

#[test]
fn the_folder_that_the_filesystem_server_misses_is_legible() {
    let script =
        peers::node_modules().join("@modelcontextprotocol/server-filesystem/dist/index.js");
    let server = json!({ "command": "node", "args": [script, "/no/such/folder"] });
    assert_said(&server, &["Cannot access directory /no/such/folder"]);
    let server = json!({ "command": "node", "args": [script, "${DATA_FOLDER}"] });
    assert_said(&server, &["Cannot access directory /no/such/data"]);
}

#[test]
fn the_repository_that_the_git_server_misses_is_legible() {
    let server = python(&["-m", "mcp_server_git", "--repository", "/no/such/repository"]);
    assert_said(&server, &["/no/such/repository"]);
}

#[test]
fn the_module_that_is_missing_is_legible() {
    let server = json!({ "command": "node", "args": ["/no/such/server.js"] });
    assert_said(&server, &["it said: Error: Cannot find module '/no/such/server.js'"]);
    assert_said(&python(&["-c", "import no_such_module"]), &["No module named 'no_such_module'"]);
}

#[test]
fn secrets_in_the_reason_are_not() {
    let script = "import os, sys; sys.exit('invalid token ' + os.environ['T'] + ' ' + sys.argv[1])";
    let mut server = python(&["-c", script, "API_KEY=swordfish1 run"]);
    server["env"] = json!({ "T": "${API_TOKEN}" });
    let run = failed(&server);
    assert!(run.messages.contains("it said: invalid token *** "), "{run}");
    assert!(!run.messages.contains("hunter2") && !run.messages.contains("swordfish"), "{run}");
}
