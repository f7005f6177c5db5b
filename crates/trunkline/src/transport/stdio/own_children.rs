//! Tracks the child processes that this process started itself, as opposed to orphans that it
//! adopted.
//!
//! A subreaper is the parent of both, and has to reap the orphans. Reaping an own child would take
//! its exit status from the code that waits for it.

use std::io;

#[cfg(target_os = "linux")]
pub(in crate::transport) use linux::{SpawnPause, is_own};

/// Starts a process, and registers it before it can be mistaken for an orphan.
#[cfg(target_os = "linux")]
pub(in crate::transport) fn spawn<T>(
    start: impl FnOnce() -> io::Result<T>,
    id: impl FnOnce(&T) -> Option<u32>,
) -> io::Result<T> {
    let _starting = linux::starting();
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
    use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

    use crate::transport::stdio::procfs::{Process, ProcessIdentity};

    /// Locked shared to start a process, exclusively to inspect the children.
    static STARTING: RwLock<()> = RwLock::new(());

    static OWN: Mutex<Option<HashSet<ProcessIdentity>>> = Mutex::new(None);

    /// Registered children before those that have ended are removed.
    const MAX_REMEMBERED: usize = 256;

    pub(in crate::transport) fn starting() -> RwLockReadGuard<'static, ()> {
        STARTING.read().unwrap_or_else(PoisonError::into_inner)
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

    /// While it exists, every child of this process that is not [`is_own`] is an orphan.
    pub(crate) struct SpawnPause(
        #[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>,
    );

    impl SpawnPause {
        pub(crate) fn begin() -> Self {
            Self(STARTING.write().unwrap_or_else(PoisonError::into_inner))
        }
    }

    pub(crate) fn is_own(child: ProcessIdentity) -> bool {
        let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        own.as_ref().is_some_and(|own| own.contains(&child))
    }
}
