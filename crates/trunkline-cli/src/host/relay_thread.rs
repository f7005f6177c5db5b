//! The thread of a gateway that relays messages: clients and servers are on one runtime of one thread, so that a call
//! wakes no other thread. Everything that may take long, such as configuration files, the terminal and lists of many
//! tools, is on the runtime of the command.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

/// How long work on other threads may take when the runtime ends.
const LAST_WORK: Duration = Duration::from_secs(1);

/// A thread with its runtime. All tasks on it end when this is dropped.
pub(crate) struct RelayThread {
    handle: Handle,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RelayThread {
    pub(crate) fn start() -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start")?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let relay = move || {
            let _ = runtime.block_on(stopped);
            // A thread of it may be creating a process, or wait for a file that never responds.
            runtime.shutdown_timeout(LAST_WORK);
        };
        let thread = thread::Builder::new().name("trunkline-relay".to_owned());
        let thread = thread.spawn(relay).context("cannot start")?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for RelayThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
