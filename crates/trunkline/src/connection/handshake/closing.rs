//! Closes sessions in the background: a process that ignores SIGTERM does not delay a caller beyond
//! the timeout of the start.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::config::Server;
use crate::connection::options::ConnectionOptions;
use crate::connection::published::PublishedState;
use crate::connection::session::Session;
use crate::error::{Error, ErrorKind};

/// Limit on processes of one server that are ending while another is started. A start has two at
/// most; more would accumulate where a server ignores SIGTERM and is restarted again and again.
const MAX_ENDING: usize = 4;

/// Sessions of one server that are closing. They end with their owner at the latest.
#[derive(Default)]
pub(in crate::connection) struct SessionClosings(Mutex<JoinSet<()>>);

impl SessionClosings {
    /// Closes a session, and waits at most until `until`.
    pub(in crate::connection) async fn end(
        &self,
        session: Session,
        (server, options): (&Server, &ConnectionOptions),
        published: &Arc<PublishedState>,
        until: Instant,
    ) {
        let (name, patience) = (server.name.clone(), server.behaviour.timeouts.shutdown);
        let (options, published) = (options.clone(), Arc::clone(published));
        let (done, ended) = oneshot::channel::<()>();
        self.lock().spawn(async move {
            let remaining = session.close(patience).await;
            published.record_orphans(&name, remaining, &options);
            drop(done);
        });
        let _ = timeout_at(until, ended).await;
    }

    /// Waits until earlier sessions have closed, at most until `until`.
    ///
    /// # Errors
    ///
    /// When too many have not closed by then.
    pub(in crate::connection) async fn make_room(&self, until: Instant) -> Result<(), Error> {
        let _ = timeout_at(until, self.wait_for_all()).await;
        let count = self.lock().len();
        if count < MAX_ENDING {
            return Ok(());
        }
        let message = format!("{count} earlier processes of it have not ended yet");
        let hint =
            "they do not end when they are told to; `timeouts.shutdown` is when they are killed";
        Err(Error::new(ErrorKind::Busy, message).with_hint(hint))
    }

    /// Waits until all have closed. Each has its own timeout.
    pub(in crate::connection) async fn wait_for_all(&self) {
        // If the future is dropped, they stay in the set.
        while poll_fn(|context| self.lock().poll_join_next(context)).await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
