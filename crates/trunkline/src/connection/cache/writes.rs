//! Writes of one server to the disk cache in progress.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time before a write. When many servers start at once, the processors are left to those that still do; a file costs as
/// much as a tenth of the start of its server.
const WRITE_DELAY: Duration = Duration::from_secs(1);

/// Writes in progress, one after the other: each adds a list to the file that the one before it wrote.
#[derive(Default)]
pub(in crate::connection) struct CacheWrites {
    tasks: JoinSet<()>,
    /// Closed when the last write has ended.
    last: Option<oneshot::Receiver<()>>,
    /// Turns true when nothing is delayed any more.
    is_finishing: watch::Sender<bool>,
}

impl CacheWrites {
    /// Begins a write after a moment, when those before it have ended.
    pub(in crate::connection) fn spawn(
        &mut self,
        write: impl Future<Output = ()> + Send + 'static,
    ) {
        while self.tasks.try_join_next().is_some() {}
        let (done, ended) = oneshot::channel::<()>();
        let before = self.last.replace(ended);
        let mut is_finishing = self.is_finishing.subscribe();
        self.tasks.spawn(async move {
            let _ = timeout(WRITE_DELAY, is_finishing.wait_for(|it| *it)).await;
            if let Some(before) = before {
                let _ = before.await;
            }
            write.await;
            drop(done);
        });
    }

    /// Waits until all writes have ended.
    pub(in crate::connection) async fn finish(&mut self) {
        self.is_finishing.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}
