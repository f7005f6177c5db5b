//! `status --watch`: prints every change, until it is interrupted.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::processes::{LONGEST_END, marked, marker, send, wait_until};
use crate::support::program::Folder;

/// A server that is ready, and one that ends and is restarted once. Both have the marker.
fn folder(marker: &str) -> Folder {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let restart = json!({ "policy": "on-failure", "limit": 1, "delay": "400ms" });
    let servers = json!({
        "words": { "command": program, "args": ["demo-server", "words"], "env": { "MARKER": marker } },
        "crashing": { "command": "/bin/sh", "args": ["-c", "exit 3"], "restart": restart },
    });
    Folder::new().file("trunkline.json", json!({ "mcpServers": servers }).to_string())
}

fn watch(folder: &Folder, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command = folder.command(&[&["status", "--watch"], arguments].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Reads lines until each of these has appeared.
fn read_until(output: &mut BufReader<ChildStdout>, mut wanted: Vec<&str>) -> String {
    let mut text = String::new();
    while !wanted.is_empty() {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "{wanted:?} did not come:\n{text}");
        wanted.retain(|wanted| !line.contains(wanted));
        text += &line;
    }
    text
}

#[test]
fn every_change_is_a_line_and_an_interrupt_is_the_end() {
    let marker = marker();
    let folder = folder(&marker);
    let (mut child, mut output) = watch(&folder, &[]);
    let text = read_until(&mut output, vec!["words  ready  3 tools", "and is not any more"]);
    for line in ["words  starting", "(exit status: 3)  it is started again in 0."] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!marked(&marker).is_empty());
    send("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(marked(&marker).is_empty());
}

#[test]
fn every_change_is_a_line_of_json_for_programs() {
    let folder = folder(&marker());
    let (mut child, mut output) = watch(&folder, &["--format", "json"]);
    let text = read_until(&mut output, vec![r#""state":"ready""#, r#""restarts":1"#]);
    for line in text.lines() {
        let change: Value = serde_json::from_str(line).unwrap();
        assert!(change["name"].is_string() && change["state"].is_string(), "{line}");
    }
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Regression: a server that was disabled, or had an invalid entry, had no line.
#[test]
fn servers_that_are_never_started_are_there_too() {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let servers = json!({
        "words": { "command": program, "args": ["demo-server", "words"] },
        "off": { "type": "http", "url": "http://127.0.0.1:1/mcp", "enabled": false },
        "broken": { "command": 7 },
    });
    let folder = Folder::new().file("trunkline.json", json!({ "mcpServers": servers }).to_string());
    let (mut child, mut output) = watch(&folder, &[]);
    let wanted = vec!["off  disabled  switched off", "broken  failed  its entry", "words  ready"];
    read_until(&mut output, wanted);
    send("INT", child.id());
    child.wait().unwrap();
    let (mut child, mut output) = watch(&folder, &["--format", "json"]);
    let text = read_until(&mut output, vec!["disabled", "its entry has errors", "ready"]);
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let off = lines.find(|line| line["name"] == "off").unwrap();
    assert_eq!((&off["state"], &off["transport"]), (&json!("disabled"), &json!("http")));
    send("INT", child.id());
    child.wait().unwrap();
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let marker = marker();
    let folder = folder(&marker);
    let (mut child, mut output) = watch(&folder, &[]);
    read_until(&mut output, vec!["words"]);
    drop(output);
    wait_until("it ends", LONGEST_END, || marked(&marker).is_empty());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
