//! Messages to a client beside the response to its request: notifications and server requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use trunkline::channel;
use trunkline::connection::ServerRequest;
use trunkline::message::{Id, Message, Notification, Raw, Request, Response, RpcError};

use super::cancellation::Cancellation;
use crate::access::budget::UnreadMessages;
use crate::request::errors::no_client_response;
use crate::request::response::ResponseLine;

/// Messages that may wait for one stream. A slower reader misses notifications.
pub(crate) const MAX_UNREAD: usize = 256;

/// Limit of these messages in bytes: above it, nothing is added.
pub(crate) const MAX_UNREAD_BYTES: usize = 8 * 1024 * 1024;

/// The reason in the cancellation of a server request that is not needed any more.
const NOT_WANTED: &str = "the response is not needed any more";

/// Sends a later message on the channel of a server request, for its cancellation.
pub(crate) type FollowUpSender = Box<dyn FnOnce(Bytes) + Send>;

/// The destination of messages to a client.
#[derive(Clone)]
pub(crate) enum OutboundChannel {
    /// The stream of one request, before its response.
    Request(channel::Sender<Bytes>),
    /// The same, with a limit on the bytes that wait to be read.
    CountedRequest(channel::Sender<Bytes>, UnreadMessages),
    /// The one stream for everything the client is sent.
    Stream(StreamSender),
}

/// The sending side of a client's only stream. Clones share it.
#[derive(Clone)]
pub(crate) struct StreamSender {
    sender: mpsc::Sender<ResponseLine>,
    unread: Arc<UnreadQueue>,
}

/// Bytes that wait to be written.
#[derive(Default)]
struct UnreadQueue {
    bytes: AtomicUsize,
    /// Notified whenever bytes have been read.
    less: Notify,
}

/// The receiving side of a client's only stream.
pub(crate) struct StreamReceiver {
    receiver: mpsc::Receiver<ResponseLine>,
    unread: Arc<UnreadQueue>,
}

impl StreamSender {
    pub(crate) fn new() -> (Self, StreamReceiver) {
        let (sender, receiver) = mpsc::channel(MAX_UNREAD);
        let unread = Arc::<UnreadQueue>::default();
        (Self { sender, unread: Arc::clone(&unread) }, StreamReceiver { receiver, unread })
    }

    /// Sends a message, or returns it if too much is queued.
    pub(crate) fn offer(&self, message: ResponseLine) -> Result<(), ResponseLine> {
        if !self.unread.has_room() {
            return Err(message);
        }
        let length = message.len();
        self.unread.bytes.fetch_add(length, Ordering::Relaxed);
        self.sender.try_send(message).map_err(|unsent| {
            self.unread.bytes.fetch_sub(length, Ordering::Relaxed);
            unsent.into_inner()
        })
    }

    /// Sends a message as soon as the queue has room for one.
    pub(crate) async fn send(&self, message: ResponseLine) {
        // If the writer has ended, so will this connection.
        if let Ok(room) = self.sender.reserve().await {
            self.unread.bytes.fetch_add(message.len(), Ordering::Relaxed);
            room.send(message);
        }
    }

    /// Waits until the queued bytes are below the limit.
    pub(crate) async fn room(&self) {
        loop {
            let less = self.unread.less.notified();
            if self.unread.has_room() {
                return;
            }
            less.await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sender.capacity() == MAX_UNREAD
    }

    /// Whether the queue has room for another message.
    pub(crate) fn has_room(&self) -> bool {
        self.sender.capacity() > 0 && self.unread.has_room()
    }
}

impl UnreadQueue {
    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < MAX_UNREAD_BYTES
    }
}

impl StreamReceiver {
    /// The next message; `None` once all senders are dropped.
    pub(crate) async fn next(&mut self) -> Option<ResponseLine> {
        let message = self.receiver.recv().await;
        message.inspect(|message| self.on_read(message))
    }

    /// The next message if one is queued.
    pub(crate) fn try_next(&mut self) -> Option<ResponseLine> {
        let message = self.receiver.try_recv().ok();
        message.inspect(|message| self.on_read(message))
    }

    fn on_read(&self, message: &ResponseLine) {
        self.unread.bytes.fetch_sub(message.len(), Ordering::Relaxed);
        if self.unread.has_room() {
            self.unread.less.notify_waiters();
        }
    }
}

/// The channel to a client during one of its requests.
#[derive(Clone)]
pub(crate) struct ClientChannel {
    outlet: OutboundChannel,
    /// The pending server requests, if the client can receive any.
    server_requests: Option<Arc<ServerRequests>>,
    /// The cancellation of the request by the client, if it can cancel it with a message.
    cancellation: Option<Cancellation>,
}

impl ClientChannel {
    /// A channel for notifications only.
    pub(crate) fn new(outlet: OutboundChannel) -> Self {
        Self { outlet, server_requests: None, cancellation: None }
    }

    /// Allows server requests on this channel too.
    pub(crate) fn with_server_requests(self, server_requests: Arc<ServerRequests>) -> Self {
        Self { server_requests: Some(server_requests), ..self }
    }

    /// Adds the cancellation of the request by the client.
    pub(crate) fn with_cancellation(self, cancellation: Cancellation) -> Self {
        Self { cancellation: Some(cancellation), ..self }
    }

    /// The parameters of the client's cancellation of the request.
    pub(crate) fn cancel_params(&self) -> Option<Raw> {
        self.cancellation.as_ref()?.params()
    }

    /// Sends a notification. Never waits: a client that reads too slowly misses it.
    pub(crate) fn notify(&self, notification: Notification) {
        self.send(Message::Notification(notification).write());
    }

    /// Sends a server request to the client, and waits for the response.
    pub(crate) async fn ask(&self, request: ServerRequest) -> Result<Raw, RpcError> {
        let Some(server_requests) = &self.server_requests else {
            return Err(no_client_response("the client cannot be asked"));
        };
        server_requests.ask(request, |message| self.send_first(message)).await
    }

    /// Sends a message, and returns a sender for a later one; `None` if the message could not be
    /// sent.
    pub(crate) fn send_first(&self, message: Bytes) -> Option<FollowUpSender> {
        let channel = self.clone();
        let after = move |message| {
            channel.send(message);
        };
        self.send(message).then(|| Box::new(after) as FollowUpSender)
    }

    /// Sends a message without waiting. Returns whether it was queued.
    pub(crate) fn send(&self, message: Bytes) -> bool {
        match &self.outlet {
            OutboundChannel::Request(outlet) => {
                let weight = message.len();
                outlet.try_send_sized(message, weight).is_ok()
            }
            OutboundChannel::CountedRequest(outlet, unread) => {
                let weight = message.len();
                let counted = unread.count(message);
                counted.is_ok_and(|message| outlet.try_send_sized(message, weight).is_ok())
            }
            OutboundChannel::Stream(outlet) => outlet.offer(message.into()).is_ok(),
        }
    }
}

/// Server requests that a client has not responded to yet.
#[derive(Default)]
pub(crate) struct ServerRequests {
    next: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>>,
}

/// A pending server request. Dropping it removes it, and sends a cancellation if it was sent and
/// has no response yet.
struct OpenRequest {
    number: u64,
    answer: oneshot::Receiver<Result<Raw, RpcError>>,
    server_requests: Arc<ServerRequests>,
    /// `None` until the request is sent.
    follow_up: Option<FollowUpSender>,
}

impl ServerRequests {
    /// Sends a server request, if that is possible, and waits for the response of the client.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        request: ServerRequest,
        send: impl FnOnce(Bytes) -> Option<FollowUpSender>,
    ) -> Result<Raw, RpcError> {
        let mut open = self.open();
        let (id, ServerRequest { method, params, .. }) = (Id::number(open.number), request);
        open.follow_up = send(Message::Request(Request { id, method, params }).write());
        if open.follow_up.is_none() {
            let message =
                "the client cannot be asked: no stream to it is open, or it does not read it";
            return Err(no_client_response(message));
        }
        // The caller sets the timeout.
        let gone = |_| Err(no_client_response("the client did not answer"));
        (&mut open.answer).await.unwrap_or_else(gone)
    }

    fn open(self: &Arc<Self>) -> OpenRequest {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, answer) = oneshot::channel();
        self.lock().insert(number, reply);
        OpenRequest { number, answer, server_requests: Arc::clone(self), follow_up: None }
    }

    /// Delivers a response of the client. One without a pending request is ignored.
    pub(crate) fn on_response(&self, response: Response) {
        let open = response.id.as_number().and_then(|number| self.lock().remove(&number));
        if let Some(reply) = open {
            let _ = reply.send(response.outcome);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, ResponseSender>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type ResponseSender = oneshot::Sender<Result<Raw, RpcError>>;

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let is_open = self.server_requests.lock().remove(&self.number).is_some();
        if let Some(follow_up) = self.follow_up.take().filter(|_| is_open) {
            let words = json!({ "requestId": self.number, "reason": NOT_WANTED });
            let params = Some(Raw::from_value(&words));
            let method = "notifications/cancelled".into();
            follow_up(Message::Notification(Notification { method, params }).write());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// A client that stops reading gets no more responses: its requests wait until it reads again.
    #[tokio::test]
    async fn there_is_room_again_when_something_was_read() {
        let (outlet, mut inbox) = StreamSender::new();
        let long = || ResponseLine::from(Bytes::from(vec![b' '; MAX_UNREAD_BYTES / 2]));
        outlet.send(long()).await;
        assert!(outlet.room().now_or_never().is_some());
        outlet.send(long()).await;
        let mut waiting = std::pin::pin!(outlet.room());
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(outlet.offer(Bytes::new().into()).is_err(), "notifications are missed");
        inbox.next().await.unwrap();
        assert!(waiting.now_or_never().is_some());
        assert!(outlet.offer(Bytes::new().into()).is_ok());
    }
}
