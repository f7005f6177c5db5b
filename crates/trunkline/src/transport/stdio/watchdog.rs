//! A small process that outlives us by a moment, to stop our servers if we are killed.
//!
//! SIGKILL cannot be caught, so somebody else has to notice. The guard is a shell that reads how
//! the processes of our servers are found. Its input ends when we do, however we end; then it stops
//! what is left. A death signal set in the child would be simpler and does not do: it needs unsafe code,
//! follows the thread instead of the process, and does not reach grandchildren.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::own_children;
use super::process_group::{GroupSignal, ProcessGroup};

/// The program of the guard.
const SCRIPT: &str = include_str!("watchdog.sh");

/// The guard of this process. It starts with the first server and ends with us.
static GUARD: OnceLock<Option<Mutex<Watchdog>>> = OnceLock::new();

struct Watchdog {
    input: ChildStdin,
    slots: RecordSlots,
    /// Kept so that it is known to be ours; it ends when `input` closes, which is when we end.
    _process: Child,
}

/// The numbers of records, each used again when its server is gone, so that the guard never has more
/// to look through than there were servers at the same time.
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

/// What the guard knows about a server: how to find its processes. Dropping it says that the server
/// is gone, and that its numbers may be another's soon.
pub(in crate::transport) struct WatchdogRecord {
    slot: Option<u32>,
}

impl WatchdogRecord {
    /// An empty record. Without a guard nothing is recorded, and servers end when their input does.
    pub(in crate::transport) fn new() -> Self {
        let guard = GUARD.get_or_init(start).as_ref();
        Self { slot: guard.map(|guard| lock(guard).slots.take()) }
    }

    /// Replaces what the guard knows. Says whether there is a guard that can be told.
    pub(in crate::transport) fn write(&self, items: &[String]) -> bool {
        self.slot.is_some_and(|slot| send(&format!("+ {slot} {}\n", items.join(" "))))
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

/// A group that is watched before a server is in it.
///
/// A group is named after its first process, so one that a server leads can be watched only when the
/// server runs. If we were killed before that, nobody would know of it. The first process of this
/// group is a shell that does nothing, and ends once the server has joined. Until it is waited for,
/// which is when this is dropped, it counts as a process of the group.
///
/// It has to be a program of its own: nothing else makes a group before a server is in it, not even
/// job control, for which most shells want a terminal, and then take it from us.
pub(in crate::transport) struct ReservedGroup {
    group: ProcessGroup,
    first: Child,
}

/// A group for a server that is about to be started. There is none where there are no groups, or no
/// shell; then a server leads its own.
pub(in crate::transport) fn reserve() -> Option<ReservedGroup> {
    let first = shell("read -r line").ok()?;
    let group = ProcessGroup::led_by(first.id())?;
    Some(ReservedGroup { group, first })
}

impl ReservedGroup {
    pub(in crate::transport) fn group(&self) -> ProcessGroup {
        self.group
    }

    /// Makes the first process stand still: it is there to be there, and does not even load then,
    /// which is most of what it costs. Only for a group that the guard knows: paused, the process
    /// does not see our end by itself.
    pub(in crate::transport) fn pause(&self) {
        self.group.signal(GroupSignal::Pause);
    }

    /// Ends the first process, without waiting until it is gone: when many servers start, that takes
    /// as long as starting it did.
    pub(in crate::transport) fn release(&mut self) {
        let _ = self.first.kill();
    }
}

impl Drop for ReservedGroup {
    fn drop(&mut self) {
        self.release();
        let _ = self.first.wait();
    }
}

/// Writes a line in one piece, so that the guard never sees half of one.
fn send(line: &str) -> bool {
    let Some(Some(guard)) = GUARD.get() else { return false };
    lock(guard).input.write_all(line.as_bytes()).is_ok()
}

fn lock(guard: &Mutex<Watchdog>) -> MutexGuard<'_, Watchdog> {
    guard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> Option<Mutex<Watchdog>> {
    let mut process = shell(SCRIPT).ok()?;
    let input = process.stdin.take()?;
    Some(Mutex::new(Watchdog { input, slots: RecordSlots::default(), _process: process }))
}

/// A shell that knows nothing of our surroundings, in a group of its own.
#[cfg(unix)]
fn shell(script: &str) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Apart from us, so that what is sent to our group does not reach it.
        .process_group(0);
    own_children::spawn(|| command.spawn(), |child| Some(child.id()))
}

#[cfg(not(unix))]
fn shell(_: &str) -> io::Result<Child> {
    Err(io::ErrorKind::Unsupported.into())
}
