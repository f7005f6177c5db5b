//! A wire of any kind, for those to whom the kind does not matter.

use std::time::Duration;

use super::http::HttpTransport;
use super::sse::SseTransport;
use super::stderr_tail::StderrTail;
use super::stdio::StdioTransport;
use super::stdio::process::RemainingProcess;
use super::{InboundEvent, OutboundMessage};
use crate::protocol::ProtocolVersion;

/// A wire of any kind.
pub(crate) enum AnyTransport {
    Stdio(Box<StdioTransport>),
    Http(Box<HttpTransport>),
    Sse(Box<SseTransport>),
}

impl AnyTransport {
    /// Queues a message. Bytes move in [`next`](Self::next).
    pub(crate) fn send(&mut self, message: OutboundMessage) {
        match self {
            Self::Stdio(transport) => transport.send(message),
            Self::Http(transport) => transport.send(message),
            Self::Sse(transport) => transport.send(message),
        }
    }

    /// Moves bytes both ways until something has happened. May be dropped at any time without
    /// losing anything.
    pub(crate) async fn next(&mut self) -> InboundEvent {
        match self {
            Self::Stdio(transport) => transport.next().await,
            Self::Http(transport) => transport.next().await,
            Self::Sse(transport) => transport.next().await,
        }
    }

    /// Frees what a request holds that nobody waits for any more. Says whether the server has
    /// certainly heard nothing of it.
    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        match self {
            Self::Stdio(transport) => return transport.cancel(id),
            Self::Http(transport) => transport.cancel(id),
            Self::Sse(transport) => transport.cancel(id),
        }
        false
    }

    /// Whether so much waits to be read by the server that nothing more should be sent.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Stdio(transport) => transport.is_full(),
            Self::Http(_) | Self::Sse(_) => false,
        }
    }

    /// Says which revision of the protocol is spoken, on wires that carry it beside messages.
    pub(crate) fn set_protocol_version(&mut self, version: ProtocolVersion) {
        match self {
            Self::Stdio(_) => {}
            Self::Http(transport) => transport.set_protocol_version(version),
            Self::Sse(transport) => transport.set_protocol_version(version),
        }
    }

    /// Listens to what the server says by itself, on wires where that takes a stream of its own.
    pub(crate) fn open_get_stream(&mut self) {
        match self {
            Self::Stdio(_) => {}
            Self::Http(transport) => transport.open_get_stream(),
            Self::Sse(transport) => transport.open_listening_stream(),
        }
    }

    /// Whether closing the stream of a request is how it is cancelled in the modern generation.
    pub(crate) fn cancels_by_closing(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// The name of the transport.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }

    /// The number of the server's process, if it has one.
    pub(crate) fn process_id(&self) -> Option<u32> {
        match self {
            Self::Stdio(transport) => transport.process_id(),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// A text of the server as it can be shown: one line, and nothing in it that the server was
    /// given.
    pub(crate) fn quoted(&self, text: &str) -> String {
        match self {
            Self::Stdio(transport) => transport.tail().quoted(text),
            Self::Http(transport) => transport.quoted(text),
            Self::Sse(transport) => transport.quoted(text),
        }
    }

    /// The last lines of the server's standard error, as they come; without any where there is
    /// none. It knows what the server was given.
    pub(crate) fn stderr_tail(&self) -> StderrTail {
        match self {
            Self::Stdio(transport) => transport.tail().clone(),
            Self::Http(transport) => transport.tail(),
            Self::Sse(transport) => transport.tail(),
        }
    }

    /// The last lines of the server's standard error.
    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        match self {
            Self::Stdio(transport) => transport.tail().lines(),
            Self::Http(_) | Self::Sse(_) => Vec::new(),
        }
    }

    /// Ends the wire and, if it has one, the server's process with everything it started. Returns
    /// what could not be ended.
    pub(crate) async fn close(self, patience: Duration) -> Vec<RemainingProcess> {
        match self {
            Self::Stdio(transport) => return transport.close(patience).await,
            Self::Http(transport) => transport.close().await,
            Self::Sse(transport) => transport.close().await,
        }
        Vec::new()
    }
}
