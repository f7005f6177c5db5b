//! All that goes on with one server at the same time, driven together and given up one by one.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::pin::Pin;

use futures_util::stream::{AbortHandle, Abortable, SelectAll};
use futures_util::{Stream, StreamExt};
use hyper::header::HeaderValue;

use crate::transport::{InboundEvent, MessageKind};

/// One thing an exchange has to say.
pub(in crate::transport) enum ExchangeEvent {
    /// Something came.
    Came(InboundEvent),
    /// The last word on a request came.
    Last(u64, InboundEvent),
    /// A request has been delivered; its answer comes another way.
    Posted(u64),
    /// A notification or response has been delivered, or could not be.
    Delivered,
    /// The server began a session.
    Session(HeaderValue),
}

type ExchangeEvents = Pin<Box<dyn Stream<Item = ExchangeEvent> + Send>>;

/// Messages without answers that are on their way to one server at the same time.
const MAX_DELIVERING: usize = 4;

/// Messages without answers that may wait.
const MAX_UNDELIVERED: usize = 1024;

/// Bytes of them: two of the longest messages. Answers to the server are short, and a server that works
/// takes them.
const MAX_UNDELIVERED_BYTES: usize = 32 * 1024 * 1024;

/// Exchanges, of which each is a lazy stream of steps: nothing moves unless [`next`](Self::next)
/// is waited for.
#[derive(Default)]
pub(in crate::transport) struct InFlight {
    running: SelectAll<Abortable<ExchangeEvents>>,
    /// What must not overtake a notification that is on its way.
    held: Option<Vec<Abortable<ExchangeEvents>>>,
    requests: HashMap<u64, AbortHandle>,
    /// How many messages that get no answer are on their way, and which wait for that.
    delivering: usize,
    undelivered: VecDeque<(ExchangeEvents, usize)>,
    undelivered_bytes: usize,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchanges").field("requests", &self.requests.len()).finish()
    }
}

impl InFlight {
    /// Begins the exchange of a request.
    pub(in crate::transport) fn start_request(
        &mut self,
        id: u64,
        steps: impl Stream<Item = ExchangeEvent> + Send + 'static,
    ) {
        let handle = self.start(steps);
        self.requests.insert(id, handle);
    }

    /// Delivers a notification or a response of so many bytes.
    pub(in crate::transport) fn send_notification(
        &mut self,
        steps: impl Stream<Item = ExchangeEvent> + Send + 'static,
        purpose: &MessageKind,
        bytes: usize,
    ) {
        self.deliver(Box::pin(steps), bytes);
        // Posts are on connections of their own. Servers that get a request before they were told
        // that they are initialized refuse it.
        let is_first = |method: &str| method == "notifications/initialized";
        if matches!(purpose, MessageKind::Notification { method } if is_first(method)) {
            self.hold();
        }
    }

    /// Delivers a message that gets no answer, after those before it. A server that causes more of
    /// them than it accepts misses some.
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

    /// Begins an exchange.
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

    /// Lets nothing begin that is started from now on, until something is [`ExchangeEvent::Delivered`].
    fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Gives a request up; dropping its exchange closes its connection.
    pub(in crate::transport) fn cancel(&mut self, id: u64) {
        if let Some(handle) = self.requests.remove(&id) {
            handle.abort();
        }
    }

    /// What happens next; waits forever when nothing goes on. Cancel-safe.
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
