//! Servers that are being ended, whether or not somebody waits for it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::Connection;

/// How many servers are being ended. Clones count the same.
#[derive(Clone)]
pub(crate) struct Shutdowns(watch::Sender<usize>);

impl Default for Shutdowns {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Shutdowns {
    /// Waits until nothing of them is left running.
    pub(crate) async fn wait_for_all(&self) {
        // It cannot end before us: we hold the other side.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    fn is_started(&self) -> ShutdownGuard {
        self.0.send_modify(|count| *count += 1);
        ShutdownGuard(self.0.clone())
    }
}

/// A server that is being ended, for as long as this is there.
struct ShutdownGuard(watch::Sender<usize>);

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Ends servers at the same time, and waits until all of them are gone. If nobody waits any more they
/// are ended all the same, and whoever asks one of the counts can wait for that.
pub(crate) async fn end(
    connections: impl IntoIterator<Item = Arc<Connection>>,
    counts: &[&Shutdowns],
) {
    let ends: Vec<_> = connections.into_iter().map(|it| start(it, counts)).collect();
    for end in ends {
        let _ = end.await;
    }
}

/// Ends a server while somebody goes on.
pub(crate) fn start(connection: Arc<Connection>, counts: &[&Shutdowns]) -> JoinHandle<()> {
    let counted: Vec<_> = counts.iter().map(|count| count.is_started()).collect();
    tokio::spawn(async move {
        connection.shut_down().await;
        drop(counted);
    })
}
