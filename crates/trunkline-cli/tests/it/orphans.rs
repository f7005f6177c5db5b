//! However the program ends, nothing that it started is left running (CON-10).

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use trunkline_testkit::peers;

use crate::run::Folder;

/// How long starting may take on a machine that is busy.
const LONGEST_START: Duration = Duration::from_secs(60);

/// How long ending may take: a server that ignores requests to end gets five seconds.
const LONGEST_END: Duration = Duration::from_secs(15);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The program, in a call that is never answered, by a server with a child of its own.
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
        let mut command = folder.command(&["call", "hanging", "wait"]);
        let program = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        Self { folder, program, marker }
    }

    /// Waits until the server and its child run.
    fn started(self) -> Self {
        wait_until("the server starts", LONGEST_START, || marked(&self.marker).len() == 2);
        self
    }

    /// Waits until the server has been called.
    fn called(self) -> Self {
        let called = self.folder.project().join("called");
        wait_until("the tool is called", LONGEST_START, || called.exists());
        assert_eq!(marked(&self.marker).len(), 2, "the server and its child run");
        self
    }

    /// Sends the program a signal and returns what it said, once nothing is left of it.
    fn ended_by(mut self, signal: &str) -> String {
        send(signal, self.program.id());
        assert!(!self.program.wait().unwrap().success());
        wait_until("nothing is left", LONGEST_END, || marked(&self.marker).is_empty());
        io::read_to_string(self.program.stderr.take().unwrap()).unwrap()
    }
}

impl Drop for Hanging {
    /// A test that failed leaves no program behind.
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A number of seconds to sleep that no other process has on its command line.
fn marker() -> String {
    format!("{}{:04}", marker_of_tests(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How all markers of this run begin.
fn marker_of_tests() -> String {
    format!("1000.{}0", std::process::id())
}

/// The processes with an argument that begins with the marker. Those that have ended and were not asked
/// after have none.
fn marked(marker: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let command_lines =
        processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let has_marker =
        |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|it| it.starts_with(marker.as_bytes()));
    let shown = |line: Vec<u8>| String::from_utf8_lossy(&line).replace('\0', " ");
    command_lines.filter(has_marker).map(shown).collect()
}

fn send(signal: &str, process: u32) {
    let status =
        Command::new("/bin/sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(status.unwrap().success());
}

fn wait_until(what: &str, longest: Duration, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + longest;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {longest:?} in vain until {what}");
        thread::sleep(Duration::from_millis(20));
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

#[test]
fn nothing_piles_up_over_many_rounds() {
    let signals = ["INT", "KILL", "TERM"].iter().cycle().take(10);
    for (round, signal) in signals.enumerate() {
        let hanging = Hanging::start("hang").started();
        // Now and then in the call, otherwise somewhere in the handshake.
        let hanging = if round % 4 == 0 { hanging.called() } else { hanging };
        hanging.ended_by(signal);
    }
    assert_eq!(marked(&marker_of_tests()), Vec::<String>::new());
}
