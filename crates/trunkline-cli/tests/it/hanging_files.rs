//! Files that never respond: a named pipe in the place of a file blocks nothing.

use std::cell::RefCell;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::serve_http::demo;
use crate::support::gateway::Serving;
use crate::support::processes::{LONGEST_START, marker, wait_until};
use crate::support::program::Folder;

/// A directory with a named pipe that has no writer.
fn with_pipe() -> Folder {
    let folder = Folder::new();
    let made = Command::new("mkfifo").arg(folder.project().join("pipe")).status().unwrap();
    assert!(made.success());
    folder
}

/// Runs a command, and returns all its output. Fails if it blocks on the pipe.
fn said(folder: &Folder, config: &Value, arguments: &[&str]) -> String {
    fs::write(folder.project().join("mcp.json"), config.to_string()).unwrap();
    let mut command = folder.bare_command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let is_over = RefCell::new(&mut process);
    wait_until("it ends", LONGEST_START, || is_over.borrow_mut().try_wait().unwrap().is_some());
    let output = process.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Regression: each of these blocked forever, and SIGTERM did not end it.
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused() {
    let folder = with_pipe();
    let server = |key: &str, value: &str| json!({ "mcpServers": { "s": { "command": "true", key: value } } });
    let nothing = json!({ "mcpServers": {} });
    let with_agents = json!({ "mcpServers": {}, "agents": "pipe" });
    let listed = &["tools", "--config", "mcp.json"][..];
    for (config, arguments) in [
        (&server("cwd", "${file:pipe}"), listed),
        (&server("envFile", "pipe"), listed),
        (&with_agents, listed),
        (&nothing, &["check", "pipe"]),
        (&nothing, &["tools", "--config", "pipe"]),
        (&nothing, &["tools", "--config", "mcp.json", "--toggles", "pipe"]),
        (&nothing, &["serve", "--config", "mcp.json", "--tokens", "pipe"]),
    ] {
        let said = said(&folder, config, arguments);
        assert!(said.contains("not a regular file"), "{config} {arguments:?}: {said}");
    }
}

/// A watched file that becomes a pipe blocks nothing, in particular not shutdown.
#[test]
fn a_gateway_whose_files_become_pipes_goes_on_and_ends() {
    let folder = with_pipe();
    let config = json!({ "mcpServers": { "words": demo("words", &marker()) } });
    fs::write(folder.project().join("trunkline.json"), config.to_string()).unwrap();
    let serving = Serving::start(&folder, &["--config", "trunkline.json"]);
    fs::rename(folder.project().join("pipe"), folder.project().join("trunkline.json")).unwrap();
    serving.wait_for("what was loaded before stays in use");
    let (code, all) = serving.ended_by("TERM");
    assert_eq!(code, Some(0), "{all}");
}
