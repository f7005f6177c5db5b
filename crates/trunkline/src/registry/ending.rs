//! Servers that are being ended, whether or not somebody waits for it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::Connection;

/// How many servers are being ended. Clones count the same.
#[derive(Clone)]
pub(crate) struct Endings(watch::Sender<usize>);

impl Default for Endings {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Endings {
    /// Waits until nothing of them is left running.
    pub(crate) async fn over(&self) {
        // It cannot end before us: we hold the other side.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    fn begun(&self) -> Ending {
        self.0.send_modify(|count| *count += 1);
        Ending(self.0.clone())
    }
}

/// A server that is being ended, for as long as this is there.
struct Ending(watch::Sender<usize>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Ends servers at the same time, and waits until all of them are gone. If nobody waits any more they
/// are ended all the same, and whoever asks one of the counts can wait for that.
pub(crate) async fn end(
    connections: impl IntoIterator<Item = Arc<Connection>>,
    counts: &[&Endings],
) {
    let ends: Vec<_> = connections.into_iter().map(|it| begin_to_end(it, counts)).collect();
    for end in ends {
        let _ = end.await;
    }
}

/// Ends a server while somebody goes on.
pub(crate) fn begin_to_end(connection: Arc<Connection>, counts: &[&Endings]) -> JoinHandle<()> {
    let counted: Vec<_> = counts.iter().map(|count| count.begun()).collect();
    tokio::spawn(async move {
        connection.end().await;
        drop(counted);
    })
}
