//! Writes of one server to the disk cache in progress.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Writes in progress, one after the other: each adds a list to the file that the one before it wrote.
pub(in crate::connection) struct CacheWrites {
    tasks: JoinSet<()>,
    /// Closed when the last write has ended.
    last: Option<oneshot::Receiver<()>>,
    /// Time before a write.
    delay: Duration,
    /// Turns true when nothing is delayed any more.
    is_finishing: watch::Sender<bool>,
    /// The number of writes that have not ended.
    pending: watch::Sender<usize>,
}

/// A write that has not ended. It ends with its task, for whatever reason.
struct PendingWrite(watch::Sender<usize>);

impl PendingWrite {
    fn new(pending: &watch::Sender<usize>) -> Self {
        pending.send_modify(|count| *count += 1);
        Self(pending.clone())
    }
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl CacheWrites {
    pub(in crate::connection) fn new(delay: Duration) -> Self {
        let (is_finishing, pending) = (watch::Sender::default(), watch::Sender::default());
        Self { tasks: JoinSet::new(), last: None, delay, is_finishing, pending }
    }

    /// The number of writes that have not ended, from now on.
    pub(in crate::connection) fn pending(&self) -> watch::Receiver<usize> {
        self.pending.subscribe()
    }

    /// Begins a write after the delay, when those before it have ended.
    pub(in crate::connection) fn spawn(
        &mut self,
        write: impl Future<Output = ()> + Send + 'static,
    ) {
        while self.tasks.try_join_next().is_some() {}
        let (done, ended) = oneshot::channel::<()>();
        let before = self.last.replace(ended);
        let (delay, mut is_finishing) = (self.delay, self.is_finishing.subscribe());
        let pending = PendingWrite::new(&self.pending);
        self.tasks.spawn(async move {
            if !delay.is_zero() {
                let _ = timeout(delay, is_finishing.wait_for(|it| *it)).await;
            }
            if let Some(before) = before {
                let _ = before.await;
            }
            write.await;
            drop((done, pending));
        });
    }

    /// Waits until all writes have ended.
    pub(in crate::connection) async fn finish(&mut self) {
        self.is_finishing.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        self.is_finishing.send_replace(false);
    }
}
