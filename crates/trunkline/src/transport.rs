//! Bytes ⇄ messages: one wire per server, whatever it is made of.
//!
//! A wire is driven by whoever owns it: [`send`](stdio::StdioTransport::send) takes a message and returns
//! at once, `next` moves bytes both ways until something has happened. No wire has a task of its
//! own, so that a call costs one hop to its server's task and no other.

mod truncation;
mod mask;
mod stderr_tail;
pub(crate) mod stdio;
pub(crate) mod http;
pub(crate) mod sse;
mod any;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use any::AnyTransport;
pub use http::client::HttpOptions;
pub(crate) use http::client::{ClientProcess, HttpClient};
pub(crate) use http::endpoint::HttpEndpoint;
pub(crate) use http::gateways::ReachableGateways;
pub use http::proxy::Proxies;
pub(crate) use mask::SecretMask;
pub(crate) use stderr_tail::StderrTail;
pub use stdio::process::{ChildOptions, RemainingProcess};

use crate::error::Error;
use crate::message::Response;
use crate::principal::RequestPath;

/// Bytes of one message, line, body or event that are accepted at most. Results are capped far
/// below; this is what a server may send before it is not listened to any more.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A message on its way to a server.
#[derive(Clone, Debug)]
pub(crate) struct OutboundMessage {
    /// One JSON-RPC message on one line, without the line break.
    pub(crate) line: Bytes,
    pub(crate) purpose: MessageKind,
    /// The processes that it has come through.
    pub(crate) path: RequestPath,
}

impl OutboundMessage {
    /// A message that starts here.
    pub(crate) fn new(line: Bytes, purpose: MessageKind) -> Self {
        Self { line, purpose, path: RequestPath::default() }
    }
}

/// What a message is, for wires that have to say so beside it.
#[derive(Clone, Debug)]
pub(crate) enum MessageKind {
    Request {
        id: u64,
        method: Arc<str>,
        /// The name or address the request is about: what `Mcp-Name` says.
        name: Option<Box<str>>,
        /// Arguments that the server wants beside the body: what `Mcp-Param-…` says.
        parameters: Vec<(Box<str>, Box<str>)>,
    },
    Notification {
        method: Box<str>,
    },
    Response,
}

/// Something that happened on a wire.
#[derive(Clone, Debug)]
pub(crate) enum InboundEvent {
    /// A message came. It may turn out to be anything.
    Message(Bytes),
    /// A message came on the stream of a request, and is not its answer: it is about that request.
    OnRequestStream { id: u64, line: Bytes },
    /// The answer to a request, which was read to know that it is.
    Response(Response),
    /// A request gets no answer any more; others do.
    RequestFailed { id: u64, error: Error },
    /// The server ended the reply to a request of a session with nothing in it. Others may be answered,
    /// unless the session is dead.
    EmptyReply { id: u64, error: Error },
    /// Nothing comes any more, and nothing can be sent.
    Closed(Error),
}
