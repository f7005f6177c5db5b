//! Queue of server requests that a modern client gets as input requests, and responds to by
//! retrying its call.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;
use trunkline::channel::{Receiver, Sender, bounded};
use trunkline::connection::ServerRequest;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;

use super::channel::ClientChannel;
use crate::request::errors::no_client_response;

/// Server requests of one call that may be pending.
const MAX_QUESTIONS: usize = 16;

/// Sends the response to a server request.
pub(crate) type InputSender = oneshot::Sender<Result<Raw, RpcError>>;

/// The server requests of one call, waiting for its client.
pub(crate) struct InputQueue {
    questions: Sender<(ServerRequest, InputSender)>,
    /// The channel to the client, replaced with every retry.
    channel: Mutex<ClientChannel>,
    /// The server of the call, once it is known.
    pub(crate) server: OnceLock<ServerName>,
    /// The number of server requests without a response.
    waiting: AtomicUsize,
    /// Whether a server request of another call was refused because of this one.
    pub(crate) is_in_the_way: AtomicBool,
}

/// Counts a pending server request until it is dropped.
struct OpenInput<'d>(&'d AtomicUsize);

impl<'d> OpenInput<'d> {
    fn counted(waiting: &'d AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for OpenInput<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InputQueue {
    pub(crate) fn new(
        channel: ClientChannel,
    ) -> (Arc<Self>, Receiver<(ServerRequest, InputSender)>) {
        let (questions, incoming) = bounded(MAX_QUESTIONS);
        let inputs = Self {
            questions,
            channel: Mutex::new(channel),
            server: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            is_in_the_way: AtomicBool::new(false),
        };
        (Arc::new(inputs), incoming)
    }

    pub(crate) fn channel(&self) -> ClientChannel {
        self.lock().clone()
    }

    /// Whether server requests wait for the client.
    pub(crate) fn has_open_requests(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn set_server(&self, server: &ServerName) {
        let _ = self.server.set(server.clone());
    }

    /// Shortens the wait for the client, because this call blocks server requests of other calls.
    pub(crate) fn shorten_wait(&self) {
        self.is_in_the_way.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_channel(&self, channel: ClientChannel) {
        *self.lock() = channel;
    }

    /// Queues a server request, and waits until the client has retried with a response.
    pub(crate) async fn ask(&self, question: ServerRequest) -> Result<Raw, RpcError> {
        // Counted before the request is visible, and until its response is not awaited any more.
        let _open = OpenInput::counted(&self.waiting);
        let (reply, answer) = oneshot::channel();
        let is_put = self.questions.send((question, reply)).is_ok();
        if !is_put {
            return Err(no_client_response("too many questions are open"));
        }
        let gone = || no_client_response("the client did not come back");
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    fn lock(&self) -> MutexGuard<'_, ClientChannel> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::channel::OutboundChannel;

    #[tokio::test]
    async fn server_request_is_open_while_a_receiver_waits() {
        let (outlet, _) = bounded(1);
        let (inputs, mut incoming) =
            InputQueue::new(ClientChannel::new(OutboundChannel::Request(outlet)));
        let question = || ServerRequest { method: "roots/list".into(), params: None };
        {
            let mut asking = std::pin::pin!(inputs.ask(question()));
            assert!(!inputs.has_open_requests(), "nothing has been asked yet");
            tokio::select! {
                biased;
                _ = &mut asking => panic!("no response comes"),
                _ = incoming.recv() => assert!(inputs.has_open_requests()),
            }
        }
        assert!(!inputs.has_open_requests(), "the request is dropped");
        let answering = async {
            let (_, reply) = incoming.recv().await;
            assert!(inputs.has_open_requests());
            reply.send(Ok(Raw::empty_object())).unwrap();
        };
        assert!(tokio::join!(inputs.ask(question()), answering).0.is_ok());
        assert!(!inputs.has_open_requests());
    }
}
