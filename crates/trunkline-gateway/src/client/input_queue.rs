//! Queue of server requests that a modern client gets as input requests, and responds to by
//! retrying its call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::json;
use tokio::sync::oneshot;
use trunkline::channel::{Receiver, Sender, bounded};
use trunkline::connection::ServerRequest;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;

use super::channel::ClientChannel;
use crate::request::errors::no_client_response;
use crate::request::response::{RpcFuture, RpcResult};

/// Server requests of one call that may be pending.
const MAX_SERVER_REQUESTS: usize = 16;

/// Sends the response to a server request.
type InputSender = oneshot::Sender<Result<Raw, RpcError>>;

/// The server requests of one call, waiting for its client.
pub(crate) struct InputQueue {
    sender: Sender<(ServerRequest, InputSender)>,
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
    pub(crate) fn new(channel: ClientChannel) -> (Arc<Self>, InputRequests) {
        let (sender, incoming) = bounded(MAX_SERVER_REQUESTS);
        let inputs = Self {
            sender,
            channel: Mutex::new(channel),
            server: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            is_in_the_way: AtomicBool::new(false),
        };
        let queue = Arc::new(inputs);
        let requests =
            InputRequests { queue: Arc::clone(&queue), incoming, open: BTreeMap::new(), count: 0 };
        (queue, requests)
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
    pub(crate) async fn ask(&self, request: ServerRequest) -> Result<Raw, RpcError> {
        // Counted before the request is visible, and until its response is not awaited any more.
        let _open = OpenInput::counted(&self.waiting);
        let (reply, answer) = oneshot::channel();
        let is_put = self.sender.send((request, reply)).is_ok();
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

/// The receiving side of a call's queue: the server requests that the client has to respond to.
pub(crate) struct InputRequests {
    pub(crate) queue: Arc<InputQueue>,
    incoming: Receiver<(ServerRequest, InputSender)>,
    open: BTreeMap<String, (ServerRequest, InputSender)>,
    count: u64,
}

impl InputRequests {
    /// Runs a call until it completes. `None` if its server needs input of the client first.
    pub(crate) async fn run(&mut self, call: &mut RpcFuture) -> Option<RpcResult> {
        tokio::select! {
            biased;
            outcome = call => Some(outcome),
            () = self.opened() => None,
        }
    }

    /// Waits until a server request is open. Further ones that are queued are opened with it.
    async fn opened(&mut self) {
        // Empty after a request that the server has cancelled.
        while self.open.is_empty() {
            let request = self.incoming.recv().await;
            self.add(request);
            while let Some(request) = self.incoming.try_recv() {
                self.add(request);
            }
        }
    }

    fn add(&mut self, (request, reply): (ServerRequest, InputSender)) {
        // The server may have cancelled it.
        if reply.is_closed() {
            return;
        }
        self.count += 1;
        self.open.insert(format!("question-{}", self.count), (request, reply));
    }

    /// Delivers input responses. Returns whether no input request is left. Ignores responses to
    /// unknown or cancelled requests.
    pub(crate) fn respond(&mut self, responses: &Raw) -> bool {
        self.open.retain(|_, (_, reply)| !reply.is_closed());
        for (key, response) in responses.members() {
            if let Some((_, reply)) = self.open.remove(&key) {
                let _ = reply.send(Ok(response));
            }
        }
        self.open.is_empty()
    }

    /// The open requests as an `InputRequiredResult`.
    pub(crate) fn to_input_required(&self, state: &str) -> Raw {
        let mut requests = Raw::empty_object();
        for (key, (open, _)) in &self.open {
            let mut request = Raw::empty_object().with("method", &Raw::from_string(&open.method));
            if let Some(params) = &open.params {
                request = request.with("params", &params.without("elicitationId"));
            }
            requests = requests.with(key, &request);
        }
        let result = json!({ "resultType": "input_required", "requestState": state });
        Raw::from_value(&result).with("inputRequests", &requests)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use trunkline::name::ServerName;

    use super::*;
    use crate::client::channel::OutboundChannel;

    fn roots_request() -> ServerRequest {
        let server = ServerName::new("files").unwrap();
        ServerRequest { server, method: "roots/list".into(), params: None }
    }

    #[tokio::test]
    async fn server_request_is_open_while_a_receiver_waits() {
        let (outlet, _) = bounded(1);
        let (inputs, requests) =
            InputQueue::new(ClientChannel::new(OutboundChannel::Request(outlet)));
        let mut incoming = requests.incoming;
        {
            let mut asking = std::pin::pin!(inputs.ask(roots_request()));
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
        assert!(tokio::join!(inputs.ask(roots_request()), answering).0.is_ok());
        assert!(!inputs.has_open_requests());
    }

    #[tokio::test]
    async fn a_call_is_interrupted_only_by_a_request_that_is_still_open() {
        let (outlet, _) = bounded(1);
        let (queue, mut inputs) =
            InputQueue::new(ClientChannel::new(OutboundChannel::Request(outlet)));
        let mut call: RpcFuture = Box::pin(async move {
            // The server cancels its first request before the client can see it.
            assert!(queue.ask(roots_request()).now_or_never().is_none());
            let response = queue.ask(roots_request()).await?;
            assert!(queue.ask(roots_request()).now_or_never().is_none());
            Ok(response.into())
        });
        assert!(inputs.run(&mut call).await.is_none());
        let required = inputs.to_input_required("state");
        assert_eq!(required.get("inputRequests").unwrap().members().len(), 1, "{required}");
        let responses = Raw::from_text(r#"{"unknown":{},"question-1":{"roots":[]}}"#).unwrap();
        assert!(inputs.respond(&responses));
        let result = inputs.run(&mut call).await.unwrap().unwrap();
        assert_eq!(result.into_raw().text(), r#"{"roots":[]}"#);
    }
}
