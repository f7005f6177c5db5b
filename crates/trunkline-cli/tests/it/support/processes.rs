//! Finds processes that a test has marked, or that are its children.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long starting may take on a busy machine.
pub(crate) const LONGEST_START: Duration = Duration::from_secs(60);

/// How long ending may take: a server that ignores SIGTERM gets five seconds.
pub(crate) const LONGEST_END: Duration = Duration::from_secs(15);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A number of seconds to sleep that is on no other command line.
pub(crate) fn marker() -> String {
    format!("1000.{}0{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The command lines of processes with an argument that starts with the marker, or a variable
/// `MARKER` that does. Zombies have neither.
pub(crate) fn marked(marker: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|process| marked_process(&process.path(), marker));
    found.collect()
}

fn marked_process(process: &Path, marker: &str) -> Option<String> {
    let has_marker = |line: &[u8]| {
        let mut words = line.split(|byte| *byte == 0);
        words.any(|it| it.strip_prefix(b"MARKER=").unwrap_or(it).starts_with(marker.as_bytes()))
    };
    let line = fs::read(process.join("cmdline")).ok()?;
    let is_marked = has_marker(&line)
        || fs::read(process.join("environ")).is_ok_and(|variables| has_marker(&variables));
    is_marked.then(|| String::from_utf8_lossy(&line).replace('\0', " "))
}

/// A process, distinguished from later ones with the same ID by its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
    started: u64,
    name: String,
    state: String,
    parent: u32,
}

impl Process {
    fn of(id: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name is in parentheses, and may contain anything.
        let (front, back) = text.rsplit_once(')')?;
        let name = front.split_once('(')?.1.to_owned();
        let fields: Vec<_> = back.split_whitespace().collect();
        let (state, parent) = (fields[0].to_owned(), fields[1].parse().ok()?);
        Some(Self { id, started: fields[19].parse().ok()?, name, state, parent })
    }

    /// Whether it has ended and has not been reaped.
    pub(crate) fn is_zombie(&self) -> bool {
        self.state == "Z"
    }

    /// Whether it still runs.
    pub(crate) fn runs(&self) -> bool {
        Self::of(self.id).is_some_and(|now| now.started == self.started && !now.is_zombie())
    }
}

/// The children of a process.
pub(crate) fn children(parent: u32) -> Vec<Process> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Process::of).filter(|process| process.parent == parent).collect()
}

pub(crate) fn send(signal: &str, process: u32) {
    let status =
        Command::new("/bin/sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(status.unwrap().success());
}

pub(crate) fn wait_until(what: &str, longest: Duration, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + longest;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {longest:?} in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until no process with the marker is left.
pub(crate) fn wait_until_gone(marker: &str) {
    let deadline = Instant::now() + LONGEST_END;
    loop {
        let left = marked(marker);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left after {LONGEST_END:?}: {left:#?}");
        thread::sleep(Duration::from_millis(20));
    }
}
