//! Requests of one client in flight, by their IDs: rejects a second one with the same ID, and cancels
//! them.
//!
//! Each session over HTTP and each stdio connection has such a table. It holds only requests that the
//! client sent; requests to the client are in [`ServerRequests`](super::channel::ServerRequests), and
//! calls that server messages are routed to in [`routing`](crate::routing).

use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use foldhash::HashMap;
use tokio::time::Instant;
use trunkline::message::{Id, Raw};

use super::cancellation::Cancellation;

/// The requests of one client in flight.
#[derive(Default)]
pub(crate) struct InFlightRequests {
    table: Mutex<RequestTable>,
}

#[derive(Default)]
struct RequestTable {
    running: HashMap<Id, Cancellation>,
    /// Time at which the last one ended.
    ended: Option<Instant>,
}

/// A request in flight. Dropping it removes it from the table.
pub(crate) struct InFlightRequest {
    requests: Arc<InFlightRequests>,
    id: Id,
    cancellation: Cancellation,
}

impl InFlightRequests {
    /// Registers a request, unless one with the same ID is in flight.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Option<InFlightRequest> {
        let (id, mut table) = (id.normalized(), self.lock());
        let Entry::Vacant(place) = table.running.entry(id.clone()) else { return None };
        let cancellation = place.insert(Cancellation::default()).clone();
        Some(InFlightRequest { requests: Arc::clone(self), id, cancellation })
    }

    /// Cancels a request, with the parameters of `notifications/cancelled`. Its ID can be used again
    /// at once.
    pub(crate) fn cancel(&self, id: &Id, params: Option<&Raw>) {
        let mut table = self.lock();
        if let Some(cancellation) = table.running.remove(id) {
            table.ended = Some(Instant::now());
            cancellation.request(params);
        }
    }

    /// Cancels every request, because no response can be delivered any more.
    pub(crate) fn cancel_all(&self) {
        self.lock().running.values().for_each(|it| it.request(None));
    }

    /// Whether a request is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !self.lock().running.is_empty()
    }

    /// Time at which the last request ended, if any.
    pub(crate) fn last_end(&self) -> Option<Instant> {
        self.lock().ended
    }

    fn lock(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlightRequest {
    /// Its cancellation by the client.
    pub(crate) fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Runs the handler until the client cancels the request; `None` then. The request stays
    /// registered until the handler is dropped.
    pub(crate) async fn run<T>(self, handling: impl Future<Output = T>) -> Option<T> {
        let mut handling = pin!(handling);
        poll_fn(|context| match self.cancellation.poll_requested(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => handling.as_mut().poll(context).map(Some),
        })
        .await
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let mut table = self.requests.lock();
        // After a cancellation, another request may have the ID.
        if table.running.get(&self.id).is_some_and(|it| it.is_same(&self.cancellation)) {
            table.running.remove(&self.id);
        }
        table.ended = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn an_id_is_in_use_until_its_request_ends() {
        let requests = Arc::new(InFlightRequests::default());
        let request = requests.begin(&Id::number(1)).unwrap();
        assert!(requests.begin(&Id::number(1)).is_none());
        assert!(requests.begin(&Id::number(2)).is_some());
        assert_eq!(request.run(ready(7)).await, Some(7));
        assert!(!requests.is_busy() && requests.last_end().is_some());
        assert!(requests.begin(&Id::number(1)).is_some());
    }

    #[tokio::test]
    async fn the_end_of_a_cancelled_request_does_not_remove_a_later_one_with_its_id() {
        let requests = Arc::new(InFlightRequests::default());
        let cancelled = requests.begin(&Id::number(1)).unwrap();
        requests.cancel(&Id::number(1), None);
        let later = requests.begin(&Id::number(1)).unwrap();
        assert_eq!(cancelled.run(pending::<()>()).await, None);
        assert!(requests.begin(&Id::number(1)).is_none(), "it is in flight");
        drop(later);
        assert!(!requests.is_busy());
    }
}
