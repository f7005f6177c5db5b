//! However the program ends, no process that it started is left running (CON-10).

use std::io;
use std::process::{Child, Stdio};

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::processes::{
    LONGEST_END, LONGEST_START, Process, children, marked, marker, send, wait_until,
    wait_until_gone,
};
use crate::support::program::Folder;

/// Servers that are started at the same time.
const MANY: usize = 20;

/// The program is killed when it has one child, then with so many more in each round.
const KILLED_EVERY: usize = 2;

/// The program, during a call without a response to a server with a child process; or waiting for
/// servers that are never ready.
struct Hanging {
    folder: Folder,
    program: Child,
    marker: String,
}

impl Hanging {
    fn start(mode: &str) -> Self {
        let marker = marker();
        let script = format!("sleep {marker} & exec \"$PYTHON\" -I \"$SERVER\" {mode} {marker}");
        let server = json!({
            "command": "/bin/sh",
            "args": ["-c", script],
            "env": { "PYTHON": peers::python(), "SERVER": peers::scripted_server() },
        });
        let content = json!({ "mcpServers": { "hanging": server } }).to_string();
        let folder = Folder::new().file("trunkline.json", content);
        let mut command = folder.command(&["call", "hanging_wait"]);
        let program = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        Self { folder, program, marker }
    }

    /// The program while it starts servers that are never ready, ignore the end of their input and
    /// SIGTERM, and have child processes.
    fn starting_many(words: &[&str], marker: &str) -> Self {
        let script = format!("trap '' HUP TERM; sleep {marker} & sleep {marker}; :");
        let server = json!({ "command": "/bin/sh", "args": ["-c", script], "connect": "eager" });
        let servers: serde_json::Map<_, _> =
            (0..MANY).map(|number| (format!("s{number}"), server.clone())).collect();
        let content = json!({ "mcpServers": servers }).to_string();
        let folder = Folder::new().file("trunkline.json", content);
        let mut command = folder.command(words);
        command.env("PATH", "/usr/bin:/bin");
        let program = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { folder, program, marker: marker.to_owned() }
    }

    /// Waits until the server has been called.
    fn called(self) -> Self {
        let called = self.folder.project().join("called");
        wait_until("the tool is called", LONGEST_START, || called.exists());
        assert_eq!(marked(&self.marker).len(), 2, "the server and its child run");
        self
    }

    /// Sends a signal and returns the messages of the program, once no process is left.
    fn ended_by(mut self, signal: &str) -> String {
        send(signal, self.program.id());
        assert!(!self.program.wait().unwrap().success());
        wait_until_gone(&self.marker);
        io::read_to_string(self.program.stderr.take().unwrap()).unwrap()
    }
}

impl Drop for Hanging {
    /// Leaves no program behind when a test fails.
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn an_interrupt_ends_everything() {
    let said = Hanging::start("hang").called().ended_by("INT");
    assert!(said.contains("interrupted; the servers have been stopped"), "{said}");
}

#[test]
fn a_request_to_terminate_ends_everything() {
    let said = Hanging::start("hang").called().ended_by("TERM");
    assert!(said.contains("interrupted; the servers have been stopped"), "{said}");
}

#[test]
fn a_kill_ends_everything() {
    Hanging::start("hang").called().ended_by("KILL");
}

#[test]
fn servers_that_ignore_requests_to_end_are_ended() {
    for signal in ["INT", "TERM", "KILL"] {
        Hanging::start("stubborn").called().ended_by(signal);
    }
}

/// Includes the unmarked process that holds a group for a server that is about to start.
#[test]
fn a_kill_while_many_servers_start_ends_everything() {
    kill_while_many_start(&["status"]);
}

/// A gateway starts the watchdog while it does something else.
#[test]
fn a_kill_while_a_gateway_starts_many_servers_ends_everything() {
    kill_while_many_start(&["serve", "--listen", "127.0.0.1:0"]);
}

fn kill_while_many_start(words: &[&str]) {
    let marker = marker();
    let mut started = Vec::new();
    for count in (1..MANY).step_by(KILLED_EVERY) {
        let mut starting = Hanging::starting_many(words, &marker);
        let id = starting.program.id();
        wait_until("servers start", LONGEST_START, || children(id).len() >= count);
        // Stopped, so that no further processes are started before it is killed.
        send("STOP", id);
        started.extend(children(id));
        send("KILL", id);
        starting.program.wait().unwrap();
    }
    wait_until_gone(&marker);
    wait_until("nothing is left", LONGEST_END, || !started.iter().any(Process::runs));
}
