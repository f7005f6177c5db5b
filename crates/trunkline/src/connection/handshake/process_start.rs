//! Starts the process of a stdio server on another thread: a program on a disk that does not respond holds up no other
//! server.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};

use super::ServerConnector;
use crate::config::ResolvedStdio;
use crate::connection::session::shutting_down;
use crate::error::Error;
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
        let (program, options) = (program.clone(), self.options.child().clone());
        let starters = Arc::clone(self.options.starters());
        let start = async move {
            let permit = starters.acquire_owned().await;
            let work = move || {
                let started = StdioTransport::start(&program, &options);
                drop(permit);
                started
            };
            // A runtime that ends does not accept it.
            spawn_blocking(work).await.unwrap_or_else(|_| Err(shutting_down()))
        };
        let mut start = pin!(start);
        tokio::select! {
            started = timeout_at(deadline, &mut start) => {
                return started.map_err(|_| self.timeout_error())?;
            }
            () = self.wait_for_stop() => {}
        }
        // The program may end with this connection, and must not do so while it creates a process.
        timeout(START_END, start).await.unwrap_or_else(|_| Err(shutting_down()))
    }
}
