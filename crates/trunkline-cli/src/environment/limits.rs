//! Resource limits of this process.

/// Makes a write beyond the file size limit fail like one to a full disk. By default the system
/// ends the process with SIGXFSZ, before it can report anything or stop a server.
///
/// Installs a handler instead of ignoring the signal, because child processes would inherit that.
pub(crate) fn fail_writes_beyond_file_size() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // The handler outlives the runtime. If it cannot be installed, nothing gets worse.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
            return;
        };
        let _guard = runtime.enter();
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}
