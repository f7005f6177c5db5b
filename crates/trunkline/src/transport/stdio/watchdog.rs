//! A watchdog process that ends the servers if this process is killed.
//!
//! SIGKILL cannot be caught, so another process has to detect it. The watchdog is a shell that
//! reads records of how to find the processes of the servers. Its input ends with this process, for
//! any reason; then it stops the remaining ones. A parent-death signal in the child would be
//! simpler and is not sufficient: it needs unsafe code, follows the thread instead of the process,
//! and does not reach grandchildren.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::process::{Child, ChildStdin};
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
#[cfg(unix)]
use std::thread;

#[cfg(unix)]
use rustix::process::{Pid, setpriority_process};
use trunkline_process_group::create_ended_leader;

use super::own_children;
use super::process_group::ProcessGroup;

/// The nice value of the watchdog.
#[cfg(unix)]
const NICE: i32 = 10;

/// The script of the watchdog.
#[cfg(unix)]
const SCRIPT: &str = include_str!("watchdog.sh");

/// The watchdog of this process. It starts with the first server or before, and ends with this process.
static GUARD: OnceLock<Option<Mutex<Watchdog>>> = OnceLock::new();

struct Watchdog {
    input: ChildStdin,
    slots: RecordSlots,
    /// Keeps the child handle; the watchdog ends when `input` closes, which is when this process
    /// ends.
    _process: Child,
}

/// Slot numbers of records. A slot is reused when its server is gone, so that the watchdog never
/// has more records than there were servers at the same time.
#[derive(Default)]
struct RecordSlots {
    free: BTreeSet<u32>,
    next: u32,
}

impl RecordSlots {
    fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

/// The record of a server in the watchdog: how to find its processes. Dropping it reports that the
/// server is gone and that its process IDs may be reused.
pub(in crate::transport) struct WatchdogRecord {
    slot: Option<u32>,
}

impl WatchdogRecord {
    /// An empty record. Without a watchdog nothing is recorded, and servers end when their input
    /// does.
    pub(in crate::transport) fn new() -> Self {
        let guard = GUARD.get_or_init(start).as_ref();
        Self { slot: guard.map(|guard| lock(guard).slots.take()) }
    }

    /// Replaces the record.
    pub(in crate::transport) fn write(&self, items: &[String]) {
        if let Some(slot) = self.slot {
            send(&format!("+ {slot} {}\n", items.join(" ")));
        }
    }

    /// Adds an item to the record.
    #[cfg(target_os = "linux")]
    pub(in crate::transport) fn add(&self, item: &str) {
        if let Some(slot) = self.slot {
            send(&format!("a {slot} {item}\n"));
        }
    }
}

impl Drop for WatchdogRecord {
    fn drop(&mut self) {
        if let (Some(slot), Some(Some(guard))) = (self.slot, GUARD.get()) {
            send(&format!("- {slot}\n"));
            lock(guard).slots.free.insert(slot);
        }
    }
}

/// A process group that the watchdog knows before a server is in it.
///
/// A group is identified by its first process, so the group of a server that leads its own can be
/// recorded only once the server runs. If this process were killed before that, the server would
/// remain. A server that leads its group could not create a session either.
///
/// The first process of a reserved group has ended. It belongs to its group until it is reaped, when this is dropped; by
/// then the server has joined.
pub(in crate::transport) struct ReservedGroup(ProcessGroup);

/// Reserves a group for a server that is about to be started. `None` without process groups or if the
/// system permits no process for it; then the server leads its own group.
pub(in crate::transport) fn reserve() -> Option<ReservedGroup> {
    let start = || create_ended_leader().or_else(|_| start_first());
    let leader = own_children::spawn(start, |id| Some(id.cast_unsigned())).ok()?;
    ProcessGroup::led_by(leader.cast_unsigned()).map(ReservedGroup)
}

impl ReservedGroup {
    pub(in crate::transport) fn group(&self) -> ProcessGroup {
        self.0
    }
}

impl Drop for ReservedGroup {
    fn drop(&mut self) {
        self.0.reap_leader();
    }
}

/// Starts the watchdog before the first server, on a thread: the server need not wait for it.
#[cfg(unix)]
pub(in crate::transport) fn start_early() {
    let thread = thread::Builder::new().name("trunkline-watchdog".to_owned());
    // Without a thread, the first server starts it.
    let _ = thread.spawn(|| {
        #[cfg(target_os = "linux")]
        trunkline_process_group::keep_exit_status();
        GUARD.get_or_init(start);
    });
}

#[cfg(not(unix))]
pub(in crate::transport) fn start_early() {}

/// Writes a line in one piece, so that the watchdog never reads half of one.
fn send(line: &str) {
    if let Some(Some(guard)) = GUARD.get() {
        // A watchdog that was killed cannot be replaced; servers end when their input does.
        let _ = lock(guard).input.write_all(line.as_bytes());
    }
}

fn lock(guard: &Mutex<Watchdog>) -> MutexGuard<'_, Watchdog> {
    guard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> Option<Mutex<Watchdog>> {
    let mut process = start_watchdog().ok()?;
    let input = process.stdin.take()?;
    Some(Mutex::new(Watchdog { input, slots: RecordSlots::default(), _process: process }))
}

/// A shell with a minimal environment, in its own process group.
#[cfg(unix)]
fn shell(script: &str) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        // In its own group, so that signals to the group of this process do not reach it.
        .process_group(0);
    command
}

#[cfg(unix)]
fn start_watchdog() -> io::Result<Child> {
    let mut command = shell(SCRIPT);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    let watchdog = own_children::spawn(|| command.spawn(), |child| Some(child.id()))?;
    // Reading records can wait while servers start: it reads what is left when this process has ended.
    let _ = setpriority_process(Some(Pid::from_child(&watchdog)), NICE);
    Ok(watchdog)
}

/// Starts the first process of a group as a program, on systems without a cheaper way: a shell that does nothing. It is
/// killed at once, so that it does not even load, which is most of its cost. Returns its ID.
///
/// It has to be a program: nothing else creates a group before a server is in it, not even job control, for which most
/// shells require a terminal and then take it over.
#[cfg(unix)]
fn start_first() -> io::Result<i32> {
    let mut first = shell(":").spawn()?;
    // If it ends by itself before, it belongs to its group as well.
    let _ = first.kill();
    // It is reaped by its ID.
    i32::try_from(first.id()).map_err(io::Error::other)
}

#[cfg(not(unix))]
fn start_watchdog() -> io::Result<Child> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn start_first() -> io::Result<i32> {
    Err(io::ErrorKind::Unsupported.into())
}
