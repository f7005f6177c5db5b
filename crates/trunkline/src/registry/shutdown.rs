//! Counts servers that are shutting down, so that a shutdown can be awaited after its future was
//! dropped.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::Connection;

/// Number of servers that are shutting down. Clones share the count.
#[derive(Clone)]
pub(crate) struct Shutdowns(watch::Sender<usize>);

impl Default for Shutdowns {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Shutdowns {
    /// Waits until all of them have ended.
    pub(crate) async fn wait_for_all(&self) {
        // The channel cannot close meanwhile: `self` holds the sender.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    fn begin(&self) -> ShutdownGuard {
        self.0.send_modify(|count| *count += 1);
        ShutdownGuard(self.0.clone())
    }
}

/// Counts one shutdown until it is dropped.
struct ShutdownGuard(watch::Sender<usize>);

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Shuts down servers concurrently, and waits for all of them. If the future is dropped, the
/// shutdowns continue, and can be awaited through any of `counts`.
pub(crate) async fn end(
    connections: impl IntoIterator<Item = Arc<Connection>>,
    counts: &[&Shutdowns],
) {
    let ends: Vec<_> = connections.into_iter().map(|it| start(it, counts)).collect();
    for end in ends {
        let _ = end.await;
    }
}

/// Shuts down a server in the background.
pub(crate) fn start(connection: Arc<Connection>, counts: &[&Shutdowns]) -> JoinHandle<()> {
    let counted: Vec<_> = counts.iter().map(|count| count.begin()).collect();
    tokio::spawn(async move {
        connection.shut_down().await;
        drop(counted);
    })
}
