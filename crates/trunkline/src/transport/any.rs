//! A wire of any kind, for those to whom the kind does not matter.

use std::time::Duration;

use super::http::HttpWire;
use super::sse::SseWire;
use super::stderr_tail::Tail;
use super::stdio::StdioWire;
use super::stdio::process::RemainingProcess;
use super::{Incoming, Outgoing};
use crate::protocol::ProtocolVersion;

/// A wire of any kind.
pub(crate) enum Wire {
    Stdio(Box<StdioWire>),
    Http(Box<HttpWire>),
    Sse(Box<SseWire>),
}

impl Wire {
    /// Queues a message. Bytes move in [`next`](Self::next).
    pub(crate) fn send(&mut self, message: Outgoing) {
        match self {
            Self::Stdio(wire) => wire.send(message),
            Self::Http(wire) => wire.send(message),
            Self::Sse(wire) => wire.send(message),
        }
    }

    /// Moves bytes both ways until something has happened. May be dropped at any time without
    /// losing anything.
    pub(crate) async fn next(&mut self) -> Incoming {
        match self {
            Self::Stdio(wire) => wire.next().await,
            Self::Http(wire) => wire.next().await,
            Self::Sse(wire) => wire.next().await,
        }
    }

    /// Frees what a request holds that nobody waits for any more. Says whether the server has
    /// certainly heard nothing of it.
    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        match self {
            Self::Stdio(wire) => return wire.cancel(id),
            Self::Http(wire) => wire.cancel(id),
            Self::Sse(wire) => wire.cancel(id),
        }
        false
    }

    /// Whether so much waits to be read by the server that nothing more should be sent.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Stdio(wire) => wire.is_full(),
            Self::Http(_) | Self::Sse(_) => false,
        }
    }

    /// Says which revision of the protocol is spoken, on wires that carry it beside messages.
    pub(crate) fn set_protocol_version(&mut self, version: ProtocolVersion) {
        match self {
            Self::Stdio(_) => {}
            Self::Http(wire) => wire.set_protocol_version(version),
            Self::Sse(wire) => wire.set_protocol_version(version),
        }
    }

    /// Listens to what the server says by itself, on wires where that takes a stream of its own.
    pub(crate) fn listen(&mut self) {
        match self {
            Self::Stdio(_) => {}
            Self::Http(wire) => wire.open_listening_stream(),
            Self::Sse(wire) => wire.open_listening_stream(),
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
            Self::Stdio(wire) => wire.process_id(),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// A text of the server as it can be shown: one line, and nothing in it that the server was
    /// given.
    pub(crate) fn quoted(&self, text: &str) -> String {
        match self {
            Self::Stdio(wire) => wire.tail().quoted(text),
            Self::Http(wire) => wire.quoted(text),
            Self::Sse(wire) => wire.quoted(text),
        }
    }

    /// The last lines of the server's standard error, as they come; without any where there is
    /// none. It knows what the server was given.
    pub(crate) fn tail(&self) -> Tail {
        match self {
            Self::Stdio(wire) => wire.tail().clone(),
            Self::Http(wire) => wire.tail(),
            Self::Sse(wire) => wire.tail(),
        }
    }

    /// The last lines of the server's standard error.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        match self {
            Self::Stdio(wire) => wire.tail().lines(),
            Self::Http(_) | Self::Sse(_) => Vec::new(),
        }
    }

    /// Ends the wire and, if it has one, the server's process with everything it started. Returns
    /// what could not be ended.
    pub(crate) async fn close(self, patience: Duration) -> Vec<RemainingProcess> {
        match self {
            Self::Stdio(wire) => return wire.close(patience).await,
            Self::Http(wire) => wire.close().await,
            Self::Sse(wire) => wire.close().await,
        }
        Vec::new()
    }
}
