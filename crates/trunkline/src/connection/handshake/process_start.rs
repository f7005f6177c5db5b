//! Starts the process of a stdio server on another thread: a program on a disk that does not respond holds up no other
//! server. It is a thread of its own, because those of the runtime may be busy, and the runtime would wait for it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::ServerConnector;
use crate::config::ResolvedStdio;
use crate::connection::session::shutting_down;
use crate::error::{Error, ErrorKind};
use crate::transport::ChildOptions;
use crate::transport::stdio::StdioTransport;

/// How long a start may take that is not needed any more.
const START_END: Duration = Duration::from_secs(2);

/// The same if the runtime ends, and the interval of looking.
const LAST_START_END: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(2);

impl ServerConnector<'_> {
    /// Starts a process. One that starts after the deadline is ended.
    pub(super) async fn start_process(
        &self,
        program: &ResolvedStdio,
        deadline: Instant,
    ) -> Result<StdioTransport, Error> {
        let starters = Arc::clone(self.options.starters());
        let start = start_on_thread(program.clone(), self.options.child().clone(), starters);
        let mut start = Box::pin(start);
        let started = tokio::select! {
            started = timeout_at(deadline, &mut start) => started.map_err(|_| self.timeout_error()),
            // The program may end with this connection, and must not do so while it creates a process.
            () = self.wait_for_stop() => {
                timeout(START_END, &mut start).await.map_err(|_| shutting_down())
            }
        };
        if started.is_err() {
            // When the process is there at last, it is ended.
            tokio::spawn(start);
        }
        started?
    }
}

async fn start_on_thread(
    program: ResolvedStdio,
    options: ChildOptions,
    starters: Arc<Semaphore>,
) -> Result<StdioTransport, Error> {
    let permit = starters.acquire_owned().await;
    let (done, started) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        // The pipes belong to the runtime.
        let _inside = runtime.enter();
        let started = StdioTransport::start(&program, &options);
        drop(permit);
        // A process that is not needed any more is ended.
        drop(done.send(started));
    };
    let thread = thread::Builder::new().name("trunkline-start".to_owned()).spawn(work);
    let thread = thread.map_err(|error| {
        Error::new(ErrorKind::StartFailed, format!("no thread can be started for it: {error}"))
    })?;
    let mut thread = StartThread(Some(thread));
    let started = started.await;
    thread.0 = None;
    started.unwrap_or_else(|_| Err(shutting_down()))
}

/// A thread while it creates a process. If this is dropped, the runtime ends, and perhaps the program: a process that is
/// just being created would outlive it.
struct StartThread(Option<JoinHandle<()>>);

impl Drop for StartThread {
    fn drop(&mut self) {
        let Some(thread) = &self.0 else { return };
        let begun = std::time::Instant::now();
        while !thread.is_finished() && begun.elapsed() < LAST_START_END {
            thread::sleep(LOOK);
        }
    }
}
