//! Processes that leave the process group of their server end with it anyway (CON-10).

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::processes::{LONGEST_START, marked, marker, send, wait_until, wait_until_gone};
use crate::support::program::Folder;
use crate::support::wait::PROCESS_SURVEY;

/// Ways for a process to escape, with the number of processes that the server then has.
const WAYS: &[(&str, usize)] = &[
    ("group", 2),
    ("session", 2),
    ("session-bare", 2),
    ("daemon", 2),
    ("daemon-bare", 2),
    ("itself", 1),
    ("itself-bare", 1),
];

/// The program during a call to a server with an escaped process.
struct Escaping {
    program: Child,
    marker: String,
    _folder: Folder,
}

impl Escaping {
    fn start((way, count): (&str, usize), end: &str) -> Self {
        let marker = marker();
        let arguments =
            [json!("-I"), json!(peers::escaping_server()), json!(way), json!(end), json!(marker)];
        let server = json!({
            "command": peers::python(),
            "args": arguments,
            "timeouts": { "shutdown": "700ms" },
        });
        let content = json!({ "mcpServers": { "escaping": server } }).to_string();
        let folder = Folder::new().file("trunkline.json", content);
        let mut command = folder.command(&["call", "escaping_wait"]);
        // A group of its own, which a server may join.
        command.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let escaping = Self { program: command.spawn().unwrap(), marker, _folder: folder };
        let called = escaping._folder.project().join("called");
        wait_until("the tool is called", LONGEST_START, || called.exists());
        if end == "hang" {
            let is_there = || marked(&escaping.marker).len() >= count;
            wait_until("all processes run", LONGEST_START, is_there);
        }
        escaping
    }

    /// Returns the messages of the program, once no process is left.
    fn ended(mut self) -> String {
        assert!(!self.program.wait().unwrap().success());
        wait_until_gone(&self.marker);
        io::read_to_string(self.program.stderr.take().unwrap()).unwrap()
    }
}

impl Drop for Escaping {
    /// Leaves no program behind when a test fails.
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn interrupt_ends_processes_outside_the_group() {
    for way in WAYS {
        let escaping = Escaping::start(*way, "hang");
        send("INT", escaping.program.id());
        let said = escaping.ended();
        assert!(said.contains("interrupted; the servers have been stopped"), "{way:?}: {said}");
    }
}

#[test]
fn kill_ends_processes_outside_the_group() {
    let is_bare = |way: &&(&str, usize)| way.0.ends_with("-bare");
    for way in WAYS.iter().filter(|way| !is_bare(way)) {
        let escaping = Escaping::start(*way, "hang");
        send("KILL", escaping.program.id());
        escaping.ended();
    }
    let bare = WAYS.iter().filter(is_bare).map(|way| Escaping::start(*way, "hang"));
    let bare: Vec<_> = bare.collect();
    thread::sleep(PROCESS_SURVEY);
    for escaping in bare {
        send("KILL", escaping.program.id());
        escaping.ended();
    }
}

#[test]
fn server_exit_ends_processes_outside_its_group() {
    for way in WAYS {
        let said = Escaping::start(*way, "die").ended();
        assert!(said.contains("the process ended (exit status: 7)"), "{way:?}: {said}");
    }
}

/// Killing the group that such a server has joined would kill this program too.
#[test]
fn a_server_that_joins_our_group_does_not_take_us_with_it() {
    let escaping = Escaping::start(("joins-host", 1), "hang");
    send("INT", escaping.program.id());
    let said = escaping.ended();
    assert!(said.contains("interrupted; the servers have been stopped"), "{said}");
}

/// A cgroup v1 freezer, in which processes do not die until they are thawed.
struct Freezer(PathBuf);

impl Freezer {
    /// `None` if the machine has no freezer, or no permission for it.
    fn create(marker: &str) -> Option<Self> {
        let folder = PathBuf::from(format!("/sys/fs/cgroup/freezer/trunkline-test-{marker}"));
        fs::create_dir(&folder).ok()?;
        let freezer = Self(folder);
        freezer.0.join("freezer.state").exists().then_some(freezer)
    }

    fn freeze(&self, process: &str) {
        fs::write(self.0.join("cgroup.procs"), process).unwrap();
        fs::write(self.0.join("freezer.state"), "FROZEN").unwrap();
        let state = || fs::read_to_string(self.0.join("freezer.state")).unwrap();
        wait_until("the process is frozen", LONGEST_START, || state().trim() == "FROZEN");
    }

    fn thaw(&self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        // It can be removed once the process in it has ended.
        for _ in 0..500 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The process ID of the escaped shell.
fn escaped_shell(marker: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|it| it.file_name().into_string().ok());
    ids.find(|id| {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.starts_with("/bin/sh\0") && line.contains(marker)
    })
}

#[test]
fn a_process_that_cannot_be_ended_is_named_once() {
    for way in [("session", 2), ("daemon", 2)] {
        let mut escaping = Escaping::start(way, "hang");
        let Some(freezer) = Freezer::create(&escaping.marker) else { return };
        // It exists before it executes the shell.
        let is_shell = || escaped_shell(&escaping.marker).is_some();
        wait_until("the shell runs", LONGEST_START, is_shell);
        let shell = escaped_shell(&escaping.marker).unwrap();
        freezer.freeze(&shell);
        send("INT", escaping.program.id());
        assert!(!escaping.program.wait().unwrap().success());
        freezer.thaw();
        let said = escaping.ended();
        let expected = format!("its process {shell} (`sh`) could not be ended");
        assert_eq!(said.matches(&expected).count(), 1, "{way:?}: {said}");
    }
}
