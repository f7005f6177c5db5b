//! Writes of one server to the disk cache in progress.

use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Writes in progress, one after the other: each adds a list to the file that the one before it wrote.
#[derive(Default)]
pub(in crate::connection) struct CacheWrites {
    tasks: JoinSet<()>,
    /// Closed when the last write has ended.
    last: Option<oneshot::Receiver<()>>,
}

impl CacheWrites {
    /// Begins a write when those before it have ended.
    pub(in crate::connection) fn spawn(
        &mut self,
        write: impl Future<Output = ()> + Send + 'static,
    ) {
        while self.tasks.try_join_next().is_some() {}
        let (done, ended) = oneshot::channel::<()>();
        let before = self.last.replace(ended);
        self.tasks.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            write.await;
            drop(done);
        });
    }

    /// Waits until all writes have ended.
    pub(in crate::connection) async fn finish(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
