//! Starts the process of a stdio server on another thread.

use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::ServerConnector;
use crate::config::ResolvedStdio;
use crate::connection::session::shutting_down;
use crate::connection::start_threads::{QUEUE_PATIENCE, START_THREADS};
use crate::error::{Error, ErrorKind};
use crate::transport::ChildOptions;
use crate::transport::stdio::StdioTransport;

/// How long a start may take that is not needed any more.
const START_END: Duration = Duration::from_secs(2);

impl ServerConnector<'_> {
    /// Starts a process. One that starts after the deadline is ended.
    pub(super) async fn start_process(
        &self,
        program: &ResolvedStdio,
        deadline: Instant,
    ) -> Result<StdioTransport, Error> {
        let start = start_on_thread(program.clone(), self.options.child().clone());
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
) -> Result<StdioTransport, Error> {
    let (done, started) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        // The pipes belong to the runtime.
        let _inside = runtime.enter();
        // A process that is not needed any more is ended.
        drop(done.send(StdioTransport::start(&program, &options)));
    };
    let job = START_THREADS.run(work).map_err(|error| {
        Error::new(ErrorKind::StartFailed, format!("no thread can be started for it: {error}"))
    })?;
    let mut started = pin!(started);
    let started = loop {
        match timeout(QUEUE_PATIENCE, &mut started).await {
            Ok(started) => break started,
            Err(_) => START_THREADS.add_thread_if_queued(),
        }
    };
    job.forget();
    // Nothing is sent if its work panicked.
    started.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::StartFailed, "starting it failed unexpectedly"))
    })
}
