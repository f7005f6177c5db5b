//! All processes of a server: searches for them, signals them, and lists those that remain.

#[cfg(target_os = "linux")]
use std::thread;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

#[cfg(target_os = "linux")]
use rustix::process::Signal;

#[cfg(target_os = "linux")]
use super::cgroup_move::CgroupMove;
use super::spawn_id::SpawnId;
#[cfg(target_os = "linux")]
pub(super) use super::tracker::become_subreaper;
#[cfg(target_os = "linux")]
use super::tracker::{self, TrackerGuard};
use crate::transport::stdio::process_group::{GroupSignal, ProcessGroup};
#[cfg(target_os = "linux")]
use crate::transport::stdio::procfs::Process;
#[cfg(not(target_os = "linux"))]
use crate::transport::stdio::watchdog::WatchdogRecord;

/// Time for orphans of unknown servers between SIGTERM and SIGKILL.
#[cfg(target_os = "linux")]
const ORPHAN_TERMINATION: Duration = Duration::from_millis(500);

/// Time after SIGKILL for a process to disappear; the kernel needs a moment.
pub(super) const AFTER_KILL: Duration = Duration::from_secs(2);

/// Interval between searches for processes. They cannot be waited for: most are not child processes
/// of the host.
pub(super) const SEARCH_PAUSE: Duration = Duration::from_millis(20);

/// A process that could not be ended: one of another user, or one that waits for hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainingProcess {
    /// The process ID.
    pub id: u32,
    /// The name of its program, without arguments.
    pub program: Box<str>,
}

/// The processes of a server.
pub(super) struct ServerProcesses {
    group: ProcessGroup,
    #[cfg(target_os = "linux")]
    tracked: TrackerGuard,
    /// The result of the last search.
    #[cfg(target_os = "linux")]
    seen: Vec<Process>,
    /// The watchdog record, for as long as they exist.
    #[cfg(not(target_os = "linux"))]
    _record: WatchdogRecord,
}

/// Finds processes by spawn ID, ancestry, session and cgroup.
#[cfg(target_os = "linux")]
impl ServerProcesses {
    /// Tracks the processes of a server that is about to be started in a group.
    pub(super) fn begin(group: ProcessGroup, spawn_id: SpawnId, with_cgroup: bool) -> Self {
        let tracked = TrackerGuard::begin(spawn_id, group, with_cgroup);
        Self { group, tracked, seen: Vec::new() }
    }

    /// Registers the process that the server was started as, and begins to move it into its cgroup.
    pub(super) fn started(&self, id: u32) -> Option<CgroupMove> {
        self.tracked.started(id)
    }

    /// Searches for them. Returns whether there is none.
    pub(super) fn all_gone(&mut self) -> bool {
        self.seen = self.tracked.search(Instant::now());
        self.seen.is_empty()
    }

    /// Signals all of them.
    pub(super) fn signal(&mut self, order: GroupSignal) {
        if order == GroupSignal::Kill {
            self.tracked.kill_cgroup();
        }
        self.all_gone();
        let is_inside = |process: &Process| process.group == self.group.number();
        // The group as a whole, including processes that are just being started. An empty group may
        // have been reused.
        if self.seen.iter().any(is_inside) {
            self.group.signal(order);
        }
        self.seen.iter().filter(|it| !is_inside(it)).for_each(|it| it.signal(signal_of(order)));
    }

    /// The result of the last search.
    pub(super) fn seen(&self) -> Vec<RemainingProcess> {
        self.seen.iter().filter_map(remaining).collect()
    }
}

/// Ends orphans of unknown servers, unless a server still runs. Returns those that could not be
/// ended, after `tried`, for which an attempt has failed already; those are not waited for again.
#[cfg(target_os = "linux")]
pub(super) fn end_orphans(tried: &[RemainingProcess]) -> Vec<RemainingProcess> {
    let is_new = |it: &Process| remaining(it).is_none_or(|it| !tried.contains(&it));
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        let mut orphans = tracker::search_orphans(Instant::now());
        orphans.retain(is_new);
        let spent = begun.elapsed();
        if orphans.is_empty() || spent > ORPHAN_TERMINATION + AFTER_KILL {
            let orphans = orphans.iter().filter_map(remaining);
            return tried.iter().cloned().chain(orphans).collect();
        }
        if spent > ORPHAN_TERMINATION {
            orphans.iter().for_each(|orphan| orphan.signal(Signal::KILL));
        } else if !is_told {
            is_told = true;
            orphans.iter().for_each(|orphan| orphan.signal(Signal::TERM));
        }
        thread::sleep(SEARCH_PAUSE);
    }
}

/// Only Linux has subreapers.
#[cfg(not(target_os = "linux"))]
pub(super) fn become_subreaper() {}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_orphans(tried: &[RemainingProcess]) -> Vec<RemainingProcess> {
    tried.to_vec()
}

#[cfg(target_os = "linux")]
fn signal_of(order: GroupSignal) -> Signal {
    match order {
        GroupSignal::Terminate => Signal::TERM,
        GroupSignal::Kill => Signal::KILL,
    }
}

#[cfg(target_os = "linux")]
fn remaining(process: &Process) -> Option<RemainingProcess> {
    let id = u32::try_from(process.identity.id).ok()?;
    Some(RemainingProcess { id, program: process.name().into() })
}

/// On other systems only the group is known.
#[cfg(not(target_os = "linux"))]
impl ServerProcesses {
    #[expect(clippy::needless_pass_by_value, reason = "the tracker on Linux keeps it")]
    pub(super) fn begin(group: ProcessGroup, spawn_id: SpawnId, _: bool) -> Self {
        let record = WatchdogRecord::new();
        record.write(&[format!("g{}", group.number()), format!("t{}", spawn_id.as_str())]);
        Self { group, _record: record }
    }

    pub(super) fn all_gone(&mut self) -> bool {
        !self.group.is_alive()
    }

    pub(super) fn signal(&mut self, order: GroupSignal) {
        self.group.signal(order);
    }

    pub(super) fn seen(&self) -> Vec<RemainingProcess> {
        Vec::new()
    }
}
