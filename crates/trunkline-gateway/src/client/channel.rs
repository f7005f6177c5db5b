//! What goes to a client beside the answer to its request: notifications, and questions to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use trunkline::channel;
use trunkline::connection::ServerRequest;
use trunkline::message::{Id, Message, Notification, Raw, Request, Response, RpcError};
use trunkline::protocol::code;

use crate::access::budget::UnreadMessages;
use crate::request::response::ResponseLine;

/// Messages that may wait for one stream. A reader that is slower misses notifications.
pub(crate) const MAX_UNREAD: usize = 256;

/// Bytes of them: as soon as there are more, nothing is added.
pub(crate) const MAX_UNREAD_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of what a client says when it cancels a request. A reason is a sentence; of a longer one the
/// server hears nothing but that the request is cancelled.
const MAX_LAST_WORDS_BYTES: usize = 4 * 1024;

/// What a client hears of a question that is over before it has answered.
const NOT_WANTED: &str = "nobody waits for the answer any more";

/// What a client says when it cancels a request, if it says anything. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct CancelParams(Arc<OnceLock<Raw>>);

impl CancelParams {
    /// Takes what came with a cancellation.
    pub(crate) fn send(&self, params: Option<&Raw>) {
        if let Some(params) = params.filter(|it| it.bytes().len() <= MAX_LAST_WORDS_BYTES) {
            let _ = self.0.set(params.detached());
        }
    }
}

/// The way on which a question went, for saying that it is over.
pub(crate) type FollowUpSender = Box<dyn FnOnce(Bytes) + Send>;

/// Where messages to a client go in.
#[derive(Clone)]
pub(crate) enum OutboundChannel {
    /// Those of one request, beside its answer.
    Request(channel::Sender<Bytes>),
    /// The same, where they may wait for their reader for long.
    CountedRequest(channel::Sender<Bytes>, UnreadMessages),
    /// All that the client is sent.
    Stream(StreamSender),
}

/// Where everything goes in that a client is sent on its one stream. Clones are the same.
#[derive(Clone)]
pub(crate) struct StreamSender {
    sender: mpsc::Sender<ResponseLine>,
    unread: Arc<UnreadQueue>,
}

/// What waits to be written.
#[derive(Default)]
struct UnreadQueue {
    bytes: AtomicUsize,
    /// Told whenever there is less of it.
    less: Notify,
}

/// Where it comes out.
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

    /// Sends a message, or gives it back if too much waits already.
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

    /// Sends a message as soon as there is room for another one.
    pub(crate) async fn send(&self, message: ResponseLine) {
        // If nobody writes any more, this ends soon.
        if let Ok(room) = self.sender.reserve().await {
            self.unread.bytes.fetch_add(message.len(), Ordering::Relaxed);
            room.send(message);
        }
    }

    /// Waits until there is not too much to be read already.
    pub(crate) async fn room(&self) {
        loop {
            let less = self.unread.less.notified();
            if self.unread.has_room() {
                return;
            }
            less.await;
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.sender.capacity() == MAX_UNREAD
    }

    /// Whether there is room for another message.
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
    /// The next message; nothing, once nobody can send one.
    pub(crate) async fn next(&mut self) -> Option<ResponseLine> {
        let message = self.receiver.recv().await;
        message.inspect(|message| self.on_read(message))
    }

    /// A message that is there.
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

/// The way to a client while one of its requests is worked on.
#[derive(Clone)]
pub(crate) struct ClientChannel {
    outlet: OutboundChannel,
    /// Where answers of the client arrive, if it can be asked.
    questions: Option<Arc<ServerRequests>>,
    last_words: CancelParams,
}

impl ClientChannel {
    /// A way on which a client can be told things.
    pub(crate) fn new(outlet: OutboundChannel) -> Self {
        Self { outlet, questions: None, last_words: CancelParams::default() }
    }

    /// A way on which a client can be asked as well.
    pub(crate) fn with_server_requests(self, questions: Arc<ServerRequests>) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// A way on which a client may say why it cancels the request.
    pub(crate) fn with_cancel_params(self, last_words: CancelParams) -> Self {
        Self { last_words, ..self }
    }

    /// What the client said when it cancelled the request.
    pub(crate) fn cancel_params(&self) -> Option<Raw> {
        self.last_words.0.get().cloned()
    }

    /// Tells the client something. One that does not keep up misses it; nobody waits for it.
    pub(crate) fn notify(&self, notification: Notification) {
        self.send(Message::Notification(notification).write());
    }

    /// Asks the client something, and waits for what it says.
    pub(crate) async fn ask(&self, question: ServerRequest) -> Result<Raw, RpcError> {
        let Some(questions) = &self.questions else {
            return Err(RpcError::new(code::INTERNAL_ERROR, "the client cannot be asked"));
        };
        questions.ask(question, |message| self.send_first(message)).await
    }

    /// Sends a message, if there is a stream for it, and returns the way for another one.
    pub(crate) fn send_first(&self, message: Bytes) -> Option<FollowUpSender> {
        let channel = self.clone();
        let after = move |message| {
            channel.send(message);
        };
        self.send(message).then(|| Box::new(after) as FollowUpSender)
    }

    /// Sends a message, and says whether there is a stream for it.
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

/// The questions a client has been asked and has not answered.
#[derive(Default)]
pub(crate) struct ServerRequests {
    next: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>>,
}

/// A question that waits. Dropping it forgets the question, and tells whoever was asked and has not
/// answered.
struct OpenRequest {
    number: u64,
    answer: oneshot::Receiver<Result<Raw, RpcError>>,
    questions: Arc<ServerRequests>,
    /// Nothing before it was asked.
    way: Option<FollowUpSender>,
}

impl ServerRequests {
    /// Asks a question by sending a message, if it can be sent, and waits for what the client says.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        question: ServerRequest,
        send: impl FnOnce(Bytes) -> Option<FollowUpSender>,
    ) -> Result<Raw, RpcError> {
        let mut incoming = self.open();
        let (id, ServerRequest { method, params }) = (Id::number(incoming.number), question);
        incoming.way = send(Message::Request(Request { id, method, params }).write());
        if incoming.way.is_none() {
            let message =
                "the client cannot be asked: no stream to it is open, or it does not read it";
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        // How long it may think about it says whoever passes the question on.
        let gone = |_| Err(RpcError::new(code::INTERNAL_ERROR, "the client did not answer"));
        (&mut incoming.answer).await.unwrap_or_else(gone)
    }

    fn open(self: &Arc<Self>) -> OpenRequest {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, answer) = oneshot::channel();
        self.lock().insert(number, reply);
        OpenRequest { number, answer, questions: Arc::clone(self), way: None }
    }

    /// Takes an answer of the client. One to nothing that was asked is nobody's.
    pub(crate) fn on_response(&self, response: Response) {
        let incoming = response.id.as_number().and_then(|number| self.lock().remove(&number));
        if let Some(reply) = incoming {
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
        let is_open = self.questions.lock().remove(&self.number).is_some();
        if let Some(way) = self.way.take().filter(|_| is_open) {
            let words = json!({ "requestId": self.number, "reason": NOT_WANTED });
            let params = Some(Raw::from_value(&words));
            let method = "notifications/cancelled".into();
            way(Message::Notification(Notification { method, params }).write());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// A client that does not read gets nothing more to read: what it asks for waits until it does.
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
