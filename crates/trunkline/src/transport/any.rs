//! A transport of any kind, for callers that do not depend on the kind.

use std::time::Duration;

use tracing::trace;

use super::http::HttpTransport;
use super::sse::SseTransport;
use super::stderr_tail::StderrTail;
use super::stdio::StdioTransport;
use super::stdio::process::RemainingProcess;
use super::stream::StreamTransport;
use super::{InboundEvent, OutboundMessage};
use crate::protocol::ProtocolVersion;

/// A transport of any kind.
pub(crate) enum AnyTransport {
    Stdio(Box<StdioTransport>),
    Http(Box<HttpTransport>),
    Sse(Box<SseTransport>),
    Stream(Box<StreamTransport>),
}

impl AnyTransport {
    /// Queues a message. Bytes move in [`next`](Self::next).
    pub(crate) fn send(&mut self, message: OutboundMessage) {
        trace!(transport = self.transport(), bytes = message.line.len(), "message queued");
        match self {
            Self::Stdio(transport) => transport.send(message),
            Self::Http(transport) => transport.send(message),
            Self::Sse(transport) => transport.send(message),
            Self::Stream(transport) => transport.send(message),
        }
    }

    /// Moves bytes both ways until an event occurs. Cancel safe.
    pub(crate) async fn next(&mut self) -> InboundEvent {
        let event = match self {
            Self::Stdio(transport) => transport.next().await,
            Self::Http(transport) => transport.next().await,
            Self::Sse(transport) => transport.next().await,
            Self::Stream(transport) => transport.next().await,
        };
        trace!(transport = self.transport(), event = event.name(), bytes = event.len(), "event");
        event
    }

    /// Frees the resources of a cancelled request. Returns whether the server has certainly
    /// received no part of it.
    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        match self {
            Self::Stdio(transport) => return transport.cancel(id),
            Self::Stream(transport) => return transport.cancel(id),
            Self::Http(transport) => transport.cancel(id),
            Self::Sse(transport) => transport.cancel(id),
        }
        false
    }

    /// Whether the outbound queue is full, so that nothing more should be sent.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Stdio(transport) => transport.is_full(),
            Self::Stream(transport) => transport.is_full(),
            Self::Http(_) | Self::Sse(_) => false,
        }
    }

    /// Sets the protocol version, on transports that send it in a header.
    pub(crate) fn set_protocol_version(&mut self, version: ProtocolVersion) {
        match self {
            Self::Stdio(_) | Self::Stream(_) => {}
            Self::Http(transport) => transport.set_protocol_version(version),
            Self::Sse(transport) => transport.set_protocol_version(version),
        }
    }

    /// Opens the stream for messages that the server initiates, on transports that need one.
    pub(crate) fn open_get_stream(&mut self) {
        match self {
            Self::Stdio(_) | Self::Stream(_) => {}
            Self::Http(transport) => transport.open_get_stream(),
            Self::Sse(transport) => transport.open_listening_stream(),
        }
    }

    /// Whether a request is cancelled in the modern era by closing its stream.
    pub(crate) fn cancels_by_closing(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// The name of the transport.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::Stream(transport) if transport.is_of_process() => "stdio",
            Self::Stream(_) => "stream",
        }
    }

    /// The process ID of the server, if it has one.
    pub(crate) fn process_id(&self) -> Option<u32> {
        match self {
            Self::Stdio(transport) => transport.process_id(),
            Self::Stream(transport) => transport.process_id(),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// Text from the server, safe to display: on one line, with the secrets that the server
    /// received redacted.
    pub(crate) fn quoted(&self, text: &str) -> String {
        match self {
            Self::Stdio(transport) => transport.tail().quoted(text),
            Self::Http(transport) => transport.quoted(text),
            Self::Sse(transport) => transport.quoted(text),
            Self::Stream(transport) => transport.tail().quoted(text),
        }
    }

    /// Live tail of the server's standard error; empty where there is none. It redacts the secrets
    /// that the server received.
    pub(crate) fn stderr_tail(&self) -> StderrTail {
        match self {
            Self::Stdio(transport) => transport.tail().clone(),
            Self::Http(transport) => transport.tail(),
            Self::Sse(transport) => transport.tail(),
            Self::Stream(transport) => transport.tail().clone(),
        }
    }

    /// The last lines of the server's standard error.
    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        match self {
            Self::Stdio(transport) => transport.tail().lines(),
            Self::Stream(transport) => transport.tail().lines(),
            Self::Http(_) | Self::Sse(_) => Vec::new(),
        }
    }

    /// Closes the transport and, for stdio, ends the server's process with all its descendants.
    /// Returns the processes that could not be ended.
    pub(crate) async fn close(self, patience: Duration) -> Vec<RemainingProcess> {
        match self {
            Self::Stdio(transport) => return transport.close(patience).await,
            Self::Http(transport) => transport.close().await,
            Self::Sse(transport) => transport.close().await,
            Self::Stream(transport) => transport.close(patience).await,
        }
        Vec::new()
    }
}
