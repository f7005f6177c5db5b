//! Waiting for a condition that has no signal of its own.

use std::thread;
use std::time::{Duration, Instant};

/// How long starting may take on a busy machine.
pub(crate) const LONGEST_START: Duration = Duration::from_secs(60);

/// How long ending may take: a server that ignores SIGTERM gets five seconds.
#[cfg(target_os = "linux")]
pub(crate) const LONGEST_END: Duration = Duration::from_secs(15);

/// Longer than the two seconds between the program's surveys of unmarked processes, which it needs on
/// systems without cgroups. No event can replace this wait: only the watchdog learns what a survey
/// has found, through a pipe.
#[cfg(target_os = "linux")]
pub(crate) const PROCESS_SURVEY: Duration = Duration::from_secs(5);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until a condition is met; fails with its name if it is not met in time.
pub(crate) fn wait_until(condition: &str, longest: Duration, is_so: impl FnMut() -> bool) {
    assert!(is_met_within(longest, is_so), "waited {longest:?} in vain until {condition}");
}

/// Polls a condition. Returns whether it is met in time.
pub(crate) fn is_met_within(longest: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + longest;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}
