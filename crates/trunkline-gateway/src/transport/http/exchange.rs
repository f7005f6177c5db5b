//! A request in flight: the messages sent before its response, then the response.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use tokio::task::JoinSet;
use trunkline::channel::Receiver;

/// The response to a request; `None` if the request was cancelled.
pub(super) type ResponseFuture<T> = Pin<Box<dyn Future<Output = Option<T>> + Send>>;

/// A request in flight. Dropping it drops the future of its response.
pub(super) struct Exchange<T> {
    /// `None` once it has completed.
    running: Option<ResponseFuture<T>>,
    inbox: Receiver<Bytes>,
    /// The response, until the messages before it are delivered.
    response: Option<T>,
    /// Whether the last event was delivered.
    is_over: bool,
}

/// A part of an exchange.
pub(super) enum ExchangeEvent<T> {
    /// A notification or server request.
    Message(Bytes),
    /// The response, which is the last event.
    Response(T),
}

impl ExchangeEvent<Bytes> {
    /// The bytes to send.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Message(bytes) | Self::Response(bytes) => bytes,
        }
    }
}

impl<T: Send + 'static> Exchange<T> {
    /// An exchange whose messages arrive in an inbox.
    pub(super) fn new(running: ResponseFuture<T>, inbox: Receiver<Bytes>) -> Self {
        Self { running: Some(running), inbox, response: None, is_over: false }
    }

    /// The next event; `None` after the response, or if the request was cancelled. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<ExchangeEvent<T>> {
        if let Some(running) = &mut self.running {
            tokio::select! {
                biased;
                message = self.inbox.recv() => return Some(ExchangeEvent::Message(message)),
                response = running => self.response = response,
            }
            self.running = None;
        }
        if self.is_over {
            return None;
        }
        // Messages sent before the response are delivered before it.
        match self.inbox.try_recv() {
            Some(message) => Some(ExchangeEvent::Message(message)),
            None => {
                self.is_over = true;
                self.response.take().map(ExchangeEvent::Response)
            }
        }
    }

    /// Continues the request in a task, which ends with the exchange, and maps its response as soon
    /// as it exists: also while no event is read.
    pub(super) fn spawn<U: Send + 'static>(
        self,
        map: impl FnOnce(T) -> U + Send + 'static,
    ) -> Exchange<U> {
        let Self { running, inbox, response, .. } = self;
        let running: ResponseFuture<T> = match response {
            Some(response) => Box::pin(ready(Some(response))),
            None => running.unwrap_or_else(|| Box::pin(ready(None))),
        };
        let mut task = JoinSet::new();
        task.spawn(async move { running.await.map(map) });
        let response = async move { task.join_next().await.and_then(Result::ok).flatten() };
        Exchange::new(Box::pin(response), inbox)
    }
}

/// A future that continues in a task if it is dropped before it completes.
pub(super) struct DetachOnDrop<T: Send + 'static>(Option<ResponseFuture<T>>);

impl<T: Send + 'static> DetachOnDrop<T> {
    pub(super) fn new(future: impl Future<Output = Option<T>> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Ready(None) };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some(future) = self.0.take() {
            tokio::spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use trunkline::channel::bounded;

    use super::*;

    #[tokio::test]
    async fn messages_come_before_the_response_that_was_sent_after_them() {
        let (outlet, inbox) = bounded(4);
        let late = outlet.clone();
        let running = async move {
            outlet.send(Bytes::from_static(b"one")).unwrap();
            tokio::task::yield_now().await;
            outlet.send(Bytes::from_static(b"two")).unwrap();
            Some("response")
        };
        let mut exchange = Exchange::new(Box::pin(running), inbox);
        let mut seen = Vec::new();
        while let Some(event) = exchange.next().await {
            seen.push(match event {
                ExchangeEvent::Message(message) => String::from_utf8(message.to_vec()).unwrap(),
                ExchangeEvent::Response(response) => response.to_owned(),
            });
        }
        assert_eq!(seen, ["one", "two", "response"]);
        late.send(Bytes::from_static(b"three")).unwrap();
        assert!(exchange.next().await.is_none());
    }

    #[tokio::test]
    async fn only_a_detached_request_outlives_its_exchange() {
        for is_detached in [false, true] {
            let (done, is_done) = oneshot::channel();
            let running = async move {
                tokio::task::yield_now().await;
                done.send(()).ok()
            };
            let running: ResponseFuture<()> = match is_detached {
                true => Box::pin(DetachOnDrop::new(running)),
                false => Box::pin(running),
            };
            let (_, inbox) = bounded(1);
            drop(Exchange::new(running, inbox));
            assert_eq!(is_done.await.is_ok(), is_detached);
        }
    }

    #[tokio::test]
    async fn a_spawned_request_continues_while_nothing_is_read_and_ends_with_the_exchange() {
        let (outlet, inbox) = bounded(1);
        let (begun, is_begun) = oneshot::channel();
        let running = async move {
            let _outlet = outlet;
            begun.send(()).ok();
            std::future::pending::<Option<u8>>().await
        };
        let exchange = Exchange::new(Box::pin(running), inbox).spawn(u32::from);
        is_begun.await.unwrap();
        drop(exchange);
        let (_, inbox) = bounded(1);
        let over = Exchange::new(Box::pin(async { Some(7_u8) }), inbox);
        let mut over = over.spawn(u32::from);
        assert!(matches!(over.next().await, Some(ExchangeEvent::Response(7))));
        assert!(over.next().await.is_none());
    }
}
