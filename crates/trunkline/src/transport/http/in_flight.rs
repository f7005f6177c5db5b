//! The in-flight HTTP exchanges of one server, polled together and cancelled one by one.
//!
//! Callers and deadlines are in `PendingRequests` of the session, for all transports. This table holds
//! the streams of HTTP, which also carry notifications and responses.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::pin::Pin;

use futures_util::stream::{AbortHandle, Abortable, SelectAll};
use futures_util::{Stream, StreamExt};
use hyper::header::HeaderValue;

use crate::transport::{InboundEvent, MessageKind};

/// An event of an exchange.
pub(in crate::transport) enum ExchangeEvent {
    /// A message was received.
    Came(InboundEvent),
    /// The final event of a request.
    Last(u64, InboundEvent),
    /// A request was posted; its response arrives on another stream.
    Posted(u64),
    /// A notification or response was delivered, or its delivery failed.
    Delivered,
    /// The server started a session.
    Session(HeaderValue),
}

type ExchangeEvents = Pin<Box<dyn Stream<Item = ExchangeEvent> + Send>>;

/// Notifications and responses that are sent to one server concurrently.
const MAX_DELIVERING: usize = 4;

/// Queued notifications and responses.
const MAX_UNDELIVERED: usize = 1024;

/// Bytes of the queue: two messages of maximum size. Responses to a server are short, and a working
/// server accepts them.
const MAX_UNDELIVERED_BYTES: usize = 32 * 1024 * 1024;

/// Exchanges, each a lazy stream of events: nothing moves unless [`next`](Self::next) is polled.
#[derive(Default)]
pub(in crate::transport) struct InFlight {
    running: SelectAll<Abortable<ExchangeEvents>>,
    /// Exchanges that must not overtake a notification in flight.
    held: Option<Vec<Abortable<ExchangeEvents>>>,
    requests: HashMap<u64, AbortHandle>,
    /// Notifications and responses in flight; the next field is the queue behind them.
    delivering: usize,
    undelivered: VecDeque<(ExchangeEvents, usize)>,
    undelivered_bytes: usize,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("requests", &self.requests.len()).finish()
    }
}

impl InFlight {
    /// Starts the exchange of a request.
    pub(in crate::transport) fn start_request(
        &mut self,
        id: u64,
        steps: impl Stream<Item = ExchangeEvent> + Send + 'static,
    ) {
        let handle = self.start(steps);
        self.requests.insert(id, handle);
    }

    /// Delivers a notification or a response of `bytes` bytes.
    pub(in crate::transport) fn send_notification(
        &mut self,
        steps: impl Stream<Item = ExchangeEvent> + Send + 'static,
        purpose: &MessageKind,
        bytes: usize,
    ) {
        self.deliver(Box::pin(steps), bytes);
        // Concurrent POSTs use separate connections. A server that receives a request before
        // `notifications/initialized` rejects it.
        let is_first = |method: &str| method == "notifications/initialized";
        if matches!(purpose, MessageKind::Notification { method } if is_first(method)) {
            self.hold();
        }
    }

    /// Delivers a notification or response, after those before it. If the server causes more of
    /// them than it accepts, some are dropped.
    fn deliver(&mut self, steps: ExchangeEvents, bytes: usize) {
        if self.delivering < MAX_DELIVERING {
            self.delivering += 1;
            self.start(steps);
        } else if self.undelivered.len() < MAX_UNDELIVERED
            && self.undelivered_bytes + bytes <= MAX_UNDELIVERED_BYTES
        {
            self.undelivered_bytes += bytes;
            self.undelivered.push_back((steps, bytes));
        }
    }

    /// Starts an exchange.
    pub(in crate::transport) fn start(
        &mut self,
        steps: impl Stream<Item = ExchangeEvent> + Send + 'static,
    ) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        let steps: ExchangeEvents = Box::pin(steps);
        let exchange = Abortable::new(steps, registration);
        match &mut self.held {
            Some(held) => held.push(exchange),
            None => self.running.push(exchange),
        }
        handle
    }

    /// Holds back exchanges that are started from now on, until an [`ExchangeEvent::Delivered`].
    fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Cancels a request. Dropping its exchange closes its connection.
    pub(in crate::transport) fn cancel(&mut self, id: u64) {
        if let Some(handle) = self.requests.remove(&id) {
            handle.abort();
        }
    }

    /// The next event; waits for ever when nothing is in flight. Cancel safe.
    pub(in crate::transport) async fn next(&mut self) -> ExchangeEvent {
        let Some(step) = self.running.next().await else { return pending().await };
        match &step {
            ExchangeEvent::Last(id, _) | ExchangeEvent::Posted(id) => {
                self.requests.remove(id);
            }
            ExchangeEvent::Delivered => {
                self.running.extend(self.held.take().into_iter().flatten());
                self.delivering -= 1;
                if let Some((next, bytes)) = self.undelivered.pop_front() {
                    self.undelivered_bytes -= bytes;
                    self.deliver(next, bytes);
                }
            }
            ExchangeEvent::Came(_) | ExchangeEvent::Session(_) => {}
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[test]
    fn no_more_bytes_wait_than_may() {
        let mut exchanges = InFlight::default();
        for _ in 0..100 {
            exchanges.send_notification(
                stream::pending(),
                &MessageKind::Response,
                MAX_UNDELIVERED_BYTES / 10,
            );
        }
        assert_eq!((exchanges.delivering, exchanges.undelivered.len()), (MAX_DELIVERING, 10));
        exchanges.send_notification(stream::pending(), &MessageKind::Response, 10);
        assert!(exchanges.undelivered_bytes <= MAX_UNDELIVERED_BYTES);
    }
}
