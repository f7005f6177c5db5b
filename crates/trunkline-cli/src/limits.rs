//! Limits that the system sets for this process, and what it does when one is reached.

/// Lets a write beyond the limit for the size of files fail like one to a full disk. Otherwise the
/// system ends the process with SIGXFSZ, before anything can be said or any server stopped.
///
/// A handler, not an ignored signal: servers would inherit that.
pub(crate) fn fail_writes_beyond_file_size() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // The handler stays when the runtime is gone. Without one, nothing is worse than before.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
            return;
        };
        let _guard = runtime.enter();
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}
