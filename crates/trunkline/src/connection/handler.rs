//! Handler of a call: receives notifications and server requests before the response.

pub(super) mod untrusted;

use std::future::ready;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use super::request_error::RequestError;
use crate::error::{Error, ErrorKind};
use crate::message::{Id, Notification, Raw, Request, RpcError};
use crate::name::ServerName;
use crate::protocol::code;

/// The pending response to a server request.
pub type HandlerFuture<'c> = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send + 'c>>;

/// A server request: input that the server needs before it can respond to a call.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// The server that sends it.
    pub server: ServerName,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Box<str>,
    /// The parameters.
    pub params: Option<Raw>,
}

/// Receives the notifications and server requests of a call.
///
/// The handler runs in the future of the request and never blocks another one. The capabilities it
/// supports have to be declared as well, in [`ConnectionOptions`](super::ConnectionOptions) or in
/// the `_meta` of the request: servers may only use capabilities that were declared.
pub trait CallHandler: Send + Sync {
    /// Called for a notification about the request: progress, a log message, or the completion of a
    /// URL elicitation, which may belong to another request. The handler of a whole connection
    /// receives notifications that belong to no request.
    fn on_notification(&self, _notification: &Notification) {}

    /// Whether to request progress notifications, which servers send only on request.
    fn wants_progress(&self) -> bool {
        true
    }

    /// Called for a server request. Rejects it by default.
    ///
    /// The deadline of the call is suspended meanwhile, and continues with the remaining time. A
    /// server request ends after `timeouts.question` of its server, when the server cancels it, or
    /// when its call ends: the returned result is dropped then.
    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(ready(Err(not_offered(&question.method))))
    }

    /// Called when the request fails because of a rejected input request: modern servers send input
    /// requests in their result and cannot receive an error. The caller of the request gets
    /// `_refusal` as its error.
    fn on_request_declined(&self, _refusal: &RpcError) {}

    /// The parameters of `notifications/cancelled`, except `requestId`, when the request is
    /// cancelled before its response. By default, a reason of Trunkline.
    fn cancel_params(&self) -> Option<Raw> {
        None
    }

    /// Called when this request is blocked by another one: a server request could not be attributed
    /// to either, or no concurrency slot is free.
    fn on_blocked(&self) {}
}

/// A handler that ignores notifications and rejects server requests.
#[derive(Clone, Copy, Debug)]
pub struct NoopHandler;

impl CallHandler for NoopHandler {
    fn wants_progress(&self) -> bool {
        false
    }
}

/// Runs the handler for a server request, within a timeout.
pub(super) async fn answer_within(
    bound: Duration,
    handler: &dyn CallHandler,
    question: ServerRequest,
) -> Result<Raw, HandlerError> {
    match timeout(bound, handler.on_server_request(question)).await {
        Ok(answer) => answer.map_err(HandlerError::Declined),
        Err(_) => Err(HandlerError::TimedOut(bound)),
    }
}

/// Why a server request has no result of the handler.
pub(super) enum HandlerError {
    /// The handler declined it with this error.
    Declined(RpcError),
    /// It was not handled within this time.
    TimedOut(Duration),
}

/// The response to the server.
impl From<HandlerError> for RpcError {
    fn from(error: HandlerError) -> Self {
        match error {
            HandlerError::Declined(refusal) => refusal,
            HandlerError::TimedOut(bound) => {
                Self::new(code::INTERNAL_ERROR, &format!("no response within {bound:?}"))
            }
        }
    }
}

/// The error of the call that the server request belongs to.
impl From<HandlerError> for RequestError {
    fn from(error: HandlerError) -> Self {
        let bound = match error {
            HandlerError::Declined(refusal) => return refusal.into(),
            HandlerError::TimedOut(bound) => bound,
        };
        let message = format!("no response to its request within {bound:?}");
        let error = Error::new(ErrorKind::TimedOut, message);
        error.with_hint("`timeouts.question` is the bound").into()
    }
}

/// The error for a server request that the client does not support.
pub(super) fn not_offered(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, &format!("this client does not offer `{method}`"))
}

/// A request whose caller has stopped waiting.
pub(super) struct CancelledRequest {
    pub(super) id: u64,
    /// The parameters of `notifications/cancelled`, except the ID.
    pub(super) last_words: Option<Raw>,
}

/// A message of the server about a pending request.
pub(super) enum CallEvent {
    Notification(Notification),
    /// A server request of this session.
    Request {
        session: u64,
        request: Request,
    },
    /// The server cancelled its request with this ID.
    RequestCancelled(Id),
    /// A server request that this call may have caused went to the handler of the connection.
    RequestDeferred,
    /// A server request that may have been caused by this call was rejected.
    RequestRefused,
}

impl CallEvent {
    /// Size of the message, in bytes.
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
