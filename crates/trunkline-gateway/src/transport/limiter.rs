//! Requests of a client on its one stream take turns: whoever stops reading has so many answers kept
//! for it, and no more.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests of a kind that are worked on at a time. What servers say to each of them is kept until it is
/// read, wherever they were when the client stopped reading; fewer would keep busy clients waiting.
const MAX_BEGUN: usize = 256;

/// The turns of one client. Clones are the same.
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

    /// Waits until it is the turn of a request of this method, which it is for as long as what is
    /// returned is held.
    pub(crate) async fn next(&self, method: &str) -> Option<OwnedSemaphorePermit> {
        let turns = match method {
            // Short answers; and whoever listens does so for as long as it is there.
            "ping" | "initialize" | "subscriptions/listen" => return None,
            "server/discover" => &self.lists,
            _ if method.ends_with("/list") => &self.lists,
            _ => &self.calls,
        };
        Arc::clone(turns).acquire_owned().await.ok()
    }
}
