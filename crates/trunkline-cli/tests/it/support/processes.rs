//! Finds processes that a test has marked, or that are its children.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::wait::is_met_within;
pub(crate) use super::wait::{LONGEST_END, LONGEST_START, wait_until};

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

/// Waits until no process with the marker is left.
pub(crate) fn wait_until_gone(marker: &str) {
    let mut left = Vec::new();
    let is_gone = || {
        left = marked(marker);
        left.is_empty()
    };
    if !is_met_within(LONGEST_END, is_gone) {
        panic!("left after {LONGEST_END:?}: {left:#?}");
    }
}
