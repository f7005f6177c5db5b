//! Servers that do not end properly: no process is left when the program ends.

use serde_json::{Value, json};
use trunkline_testkit::peers;

use super::{assert_call_fails, assert_ready, shell_then_words};
use crate::support::processes::{marked, marker};

/// The server with a short shutdown timeout.
fn impatiently(mut server: Value) -> Value {
    server["timeouts"] = json!({ "shutdown": "1s" });
    server
}

/// Asserts that the server works, and that none of its processes is left after each command.
fn assert_used_and_gone(server: Value, marker: &str) {
    let folder = assert_ready(&impatiently(server));
    assert_eq!(marked(marker), Vec::<String>::new());
    let run = folder.run(&["call", "faulty_shout", "--arg", "text=hello"]);
    assert_eq!((run.code, run.output.trim()), (0, "HELLO"), "{run}");
    assert_eq!(marked(marker), Vec::<String>::new());
}

#[test]
fn a_server_that_ignores_requests_to_end() {
    let marker = marker();
    // The shell and its child ignore the signal, and stay when the server has ended.
    let script = format!(
        "trap '' TERM; sleep {marker} & \"$PROGRAM\" demo-server words; sleep {marker}; exit"
    );
    assert_used_and_gone(shell_then_words(&script), &marker);
}

#[test]
fn a_server_whose_children_outlive_it() {
    let marker = marker();
    let script = format!("sleep {marker} & sh -c 'sleep {marker} & sleep {marker}' &");
    assert_used_and_gone(shell_then_words(&format!("{script} true")), &marker);
}

#[test]
fn a_server_that_dies_in_a_call_while_children_hold_its_stdout() {
    let marker = marker();
    let script = format!("sleep {marker} & exec \"$PYTHON\" -I \"$SERVER\" die {marker}");
    let server = json!({
        "command": "/bin/sh",
        "args": ["-c", script],
        "env": { "PYTHON": peers::python(), "SERVER": peers::scripted_server() },
    });
    assert_call_fails(&impatiently(server), "the process ended (exit status: 7)");
    assert_eq!(marked(&marker), Vec::<String>::new());
}
