//! Transports: stdio, Streamable HTTP, HTTP+SSE and any stream, which turn bytes into messages and back.
//!
//! A transport is driven by its owner: [`send`](stdio::StdioTransport::send) queues a message and
//! returns at once, `next` moves bytes both ways until an event occurs. No transport has a task of
//! its own, so that a call costs one hop to the actor of its server and no other.

mod truncation;
mod oversized_response;
mod write_queue;
mod mask;
mod stderr_tail;
pub(crate) mod stdio;
pub(crate) mod http;
pub(crate) mod sse;
pub(crate) mod stream;
mod any;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use any::AnyTransport;
pub(crate) use http::address_guard::AddressGuard;
pub use http::client::HttpOptions;
pub(crate) use http::client::{ClientProcess, HttpClient};
pub(crate) use http::endpoint::HttpEndpoint;
pub(crate) use http::gateways::ReachableGateways;
pub(crate) use http::guarded::{GuardedClient, GuardedPost, GuardedResponse};
pub use http::proxy::Proxies;
pub(crate) use mask::SecretMask;
pub(crate) use stderr_tail::StderrTail;
pub use stdio::process::{ChildOptions, RemainingProcess};
pub(crate) use stdio::program_output::{RunLimits, program_output};
pub use stdio::standalone::{ProcessEvent, ProcessStderr, ProgramLaunch, StdioProcess};
pub use stream::{ServerStream, StreamEnd};

use crate::error::Error;
use crate::message::Response;
use crate::principal::RequestPath;

/// Limit on the bytes of one message, line, body or event. Results have far lower limits; this is
/// the most that a transport reads.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A message to a server.
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

/// The kind of a message, for transports that repeat it in headers.
#[derive(Clone, Debug)]
pub(crate) enum MessageKind {
    Request {
        id: u64,
        method: Arc<str>,
        /// The name or URI that the request is about, for `Mcp-Name`.
        name: Option<Box<str>>,
        /// Arguments that the server requires in headers, for `Mcp-Param-…`.
        parameters: Vec<(Box<str>, Box<str>)>,
    },
    Notification {
        method: Box<str>,
    },
    Response,
}

/// An event on a transport.
#[derive(Clone, Debug)]
pub(crate) enum InboundEvent {
    /// A message of any kind was received.
    Message(Bytes),
    /// A message was received on the stream of a request and is not its response. It belongs to
    /// that request.
    OnRequestStream { id: u64, line: Bytes },
    /// The response to a request, already parsed by the transport.
    Response(Response),
    /// A request failed; other requests are not affected.
    RequestFailed { id: u64, error: Error },
    /// The server ended the response to a request of a session without a body. Other requests may
    /// still succeed, unless the session has ended.
    EmptyReply { id: u64, error: Error },
    /// The transport closed: no further messages can be received or sent.
    Closed(Error),
}

impl InboundEvent {
    /// The kind of event, for the log.
    fn name(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::OnRequestStream { .. } => "message on the stream of a request",
            Self::Response(_) => "response",
            Self::RequestFailed { .. } => "request failed",
            Self::EmptyReply { .. } => "empty reply",
            Self::Closed(_) => "closed",
        }
    }

    /// Bytes of the message, if it is one that was not parsed by the transport.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Message(line) | Self::OnRequestStream { line, .. } => Some(line.len()),
            _ => None,
        }
    }
}
