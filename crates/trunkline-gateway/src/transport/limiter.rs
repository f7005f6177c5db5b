//! Limits concurrent requests per stdio client, so that a client that stops reading cannot make the
//! gateway buffer without limit.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent requests of a kind. Messages for each of them are buffered when the client stops
/// reading, so more would cost memory; fewer would delay busy clients.
const MAX_BEGUN: usize = 256;

/// The concurrency limit of one client. Clones share it.
#[derive(Clone)]
pub(crate) struct ConcurrencyLimit {
    calls: Arc<Semaphore>,
    /// Lists do not wait for calls, which may take long.
    lists: Arc<Semaphore>,
}

impl ConcurrencyLimit {
    pub(crate) fn new() -> Self {
        let [calls, lists] = [(), ()].map(|()| Arc::new(Semaphore::new(MAX_BEGUN)));
        Self { calls, lists }
    }

    /// Waits for a slot for a request of this method. Dropping the permit frees the slot.
    pub(crate) async fn next(&self, method: &str) -> Option<OwnedSemaphorePermit> {
        let turns = match method {
            // Their results are small; and a subscription stays open as long as the client.
            "ping" | "initialize" | "subscriptions/listen" => return None,
            "server/discover" => &self.lists,
            _ if method.ends_with("/list") => &self.lists,
            _ => &self.calls,
        };
        Arc::clone(turns).acquire_owned().await.ok()
    }
}
