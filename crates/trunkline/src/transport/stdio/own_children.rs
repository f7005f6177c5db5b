//! Tracks the child processes that this process started itself, as opposed to orphans that it
//! adopted.
//!
//! A subreaper is the parent of both, and has to reap the orphans. Reaping an own child would take
//! its exit status from the code that waits for it.

use std::io;

#[cfg(target_os = "linux")]
pub(in crate::transport) use linux::SpawnPause;

/// Starts a process, and registers it before it can be mistaken for an orphan.
#[cfg(target_os = "linux")]
pub(in crate::transport) fn spawn<T>(
    start: impl FnOnce() -> io::Result<T>,
    id: impl FnOnce(&T) -> Option<u32>,
) -> io::Result<T> {
    let _start = linux::StartInProgress::begin();
    let started = start()?;
    id(&started).inspect(|id| linux::register(*id));
    Ok(started)
}

#[cfg(not(target_os = "linux"))]
pub(in crate::transport) fn spawn<T>(
    start: impl FnOnce() -> io::Result<T>,
    _: impl FnOnce(&T) -> Option<u32>,
) -> io::Result<T> {
    start()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use crate::transport::stdio::procfs::{Process, ProcessIdentity};

    /// Starts in progress. Locked to change the number, and to inspect the children.
    static STARTS: Mutex<usize> = Mutex::new(0);
    static START_ENDED: Condvar = Condvar::new();

    static OWN: Mutex<Option<HashSet<ProcessIdentity>>> = Mutex::new(None);

    /// Registered children before those that have ended are removed.
    const MAX_REMEMBERED: usize = 256;

    /// How long an inspection waits for starts. They take a millisecond, or do not end because a disk does not respond.
    const START_PATIENCE: Duration = Duration::from_millis(100);

    fn starts() -> MutexGuard<'static, usize> {
        STARTS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process that is being created, and is not registered yet. The lock is not held meanwhile: one that hangs holds
    /// up no other.
    pub(in crate::transport) struct StartInProgress(());

    impl StartInProgress {
        pub(in crate::transport) fn begin() -> Self {
            *starts() += 1;
            Self(())
        }
    }

    impl Drop for StartInProgress {
        fn drop(&mut self) {
            *starts() -= 1;
            START_ENDED.notify_all();
        }
    }

    pub(in crate::transport) fn register(id: u32) {
        let Some(child) = i32::try_from(id).ok().and_then(Process::read) else { return };
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let own = own.get_or_insert_default();
        if own.len() >= own.capacity().max(MAX_REMEMBERED) {
            own.retain(|it| Process::read(it.id).is_some_and(|now| now.identity == *it));
        }
        own.insert(child.identity);
    }

    /// While it exists, every child of this process that it does not know as its own is an orphan.
    pub(crate) struct SpawnPause(#[expect(dead_code, reason = "held")] MutexGuard<'static, usize>);

    impl SpawnPause {
        /// Waits a moment for the starts in progress. `None` if one goes on: its process cannot be told from an orphan.
        pub(crate) fn begin() -> Option<Self> {
            let in_progress = |starts: &mut usize| *starts > 0;
            let (starts, waited) = START_ENDED
                .wait_timeout_while(starts(), START_PATIENCE, in_progress)
                .unwrap_or_else(PoisonError::into_inner);
            (!waited.timed_out()).then(|| Self(starts))
        }

        pub(crate) fn is_own(&self, child: ProcessIdentity) -> bool {
            let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
            own.as_ref().is_some_and(|own| own.contains(&child))
        }
    }
}
