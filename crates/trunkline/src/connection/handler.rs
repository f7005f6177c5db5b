//! Whoever attends to a request: the server speaks to them before it answers.

pub(super) mod untrusted;

use std::future::ready;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::error::{Error, ErrorKind};
use crate::message::{Id, Notification, Raw, Request, RpcError};
use crate::protocol::code;

/// The answer to a question, on its way.
pub type HandlerFuture<'c> = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send + 'c>>;

/// Something the server needs before it can answer.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// What it asks for: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Box<str>,
    /// With what.
    pub params: Option<Raw>,
}

/// Whoever attends to a request: the server speaks to them before it answers.
///
/// They are called in the future of the request, never in the way of another one. What they
/// offer has to be declared as well, in [`ConnectionOptions`](super::ConnectionOptions) or in the
/// `_meta` of the request: servers may only ask for what was declared.
pub trait CallHandler: Send + Sync {
    /// The server tells something about the request: its progress, a line of its log; or that a visit
    /// to an address is over, which may have been asked for in another one. Whoever attends to a whole
    /// connection hears what is about no request.
    fn on_notification(&self, _notification: &Notification) {}

    /// Whether they want to hear of progress, which servers only report if they are asked to.
    fn wants_progress(&self) -> bool {
        true
    }

    /// The server asks for something. Nothing is given, unless they say otherwise.
    ///
    /// They may take their time: that of the request stands still meanwhile, and goes on with what
    /// remained. A question that is not answered within `timeouts.question` of its server is over, as is
    /// one that the server takes back, or whose request is over: what they return is dropped then.
    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(ready(Err(not_offered(&question.method))))
    }

    /// The request is over because of what they refused to say: a server of the modern generation asks
    /// in its answer, and cannot be told. Whoever waits for the request gets this as its error.
    fn on_request_declined(&self, _refusal: &RpcError) {}

    /// What the server hears when the request is given up before it is answered: the parameters of
    /// `notifications/cancelled`, but for `requestId`. A reason of ours, unless they say otherwise.
    fn cancel_params(&self) -> Option<Raw> {
        None
    }

    /// Another request is in the way of this one: the server asked something that was refused,
    /// because it could have been about either; or this one waits for its turn.
    fn on_blocked(&self) {}
}

/// Somebody who only waits for the answer.
#[derive(Clone, Copy, Debug)]
pub struct NoopHandler;

impl CallHandler for NoopHandler {
    fn wants_progress(&self) -> bool {
        false
    }
}

/// What somebody says to a question, if they say it in time.
pub(super) async fn answer_within(
    bound: Duration,
    handler: &dyn CallHandler,
    question: ServerRequest,
) -> Result<Result<Raw, RpcError>, AnswerTimeout> {
    timeout(bound, handler.on_server_request(question)).await.map_err(|_| AnswerTimeout(bound))
}

/// A question that nobody answered within this time.
pub(super) struct AnswerTimeout(Duration);

impl From<AnswerTimeout> for RpcError {
    fn from(AnswerTimeout(bound): AnswerTimeout) -> Self {
        Self::new(code::INTERNAL_ERROR, &format!("nobody answered within {bound:?}"))
    }
}

impl From<AnswerTimeout> for Error {
    fn from(AnswerTimeout(bound): AnswerTimeout) -> Self {
        let message = format!("nobody answered its question within {bound:?}");
        Self::new(ErrorKind::TimedOut, message).with_hint("`timeouts.question` is the bound")
    }
}

/// The refusal of something this client does not do.
pub(super) fn not_offered(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, &format!("this client does not offer `{method}`"))
}

/// A request that nobody waits for any more.
pub(super) struct CancelledRequest {
    pub(super) id: u64,
    /// What the server is to hear of it, but for its id.
    pub(super) last_words: Option<Raw>,
}

/// What a server says while it works on a request.
pub(super) enum CallEvent {
    Notification(Notification),
    /// It asks, in this session, and waits for the answer.
    Request {
        session: u64,
        request: Request,
    },
    /// It does not want to know any more what it asked under this id.
    RequestCancelled(Id),
    /// It asks somebody else, perhaps for the sake of this request.
    RequestDeferred,
    /// It asked, perhaps for the sake of this request, and was refused.
    RequestRefused,
}

impl CallEvent {
    /// Bytes of what the server said.
    pub(super) fn weight(&self) -> usize {
        let (method, params) = match self {
            Self::Notification(notification) => {
                (&notification.method, notification.params.as_ref())
            }
            Self::Request { request, .. } => (&request.method, request.params.as_ref()),
            Self::RequestCancelled(_) | Self::RequestDeferred | Self::RequestRefused => return 0,
        };
        method.len() + params.map_or(1, |params| params.bytes().len())
    }
}
