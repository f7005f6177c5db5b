//! The transport over a stream that someone else has opened, with one message per line in each direction.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::oversized_response::{OversizedResponse, incoming};
use super::stderr_tail::StderrTail;
use super::write_queue::WriteQueue;
use super::{InboundEvent, MAX_MESSAGE_BYTES, OutboundMessage};
use crate::error::{Error, ErrorKind};
use crate::message::LineBuffer;

/// An open stream to a server that speaks MCP as over stdio: one message per line.
pub struct ServerStream {
    reader: Box<dyn AsyncRead + Send + Sync + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Sync + Unpin>,
}

impl ServerStream {
    /// A stream of two halves: the messages of the server, and those to it.
    pub fn new(
        reader: impl AsyncRead + Send + Sync + Unpin + 'static,
        writer: impl AsyncWrite + Send + Sync + Unpin + 'static,
    ) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer) }
    }
}

/// A transport over an open stream.
pub(crate) struct StreamTransport {
    stream: ServerStream,
    lines: LineBuffer<OversizedResponse>,
    outbox: WriteQueue,
    tail: StderrTail,
    has_ended: bool,
}

impl StreamTransport {
    pub(crate) fn new(stream: ServerStream) -> Self {
        Self {
            stream,
            lines: LineBuffer::new(MAX_MESSAGE_BYTES),
            outbox: WriteQueue::default(),
            tail: StderrTail::default(),
            has_ended: false,
        }
    }

    /// Queues a message. Bytes move in [`next`](Self::next).
    pub(crate) fn send(&mut self, message: OutboundMessage) {
        self.outbox.push(message);
    }

    /// Removes a request from the queue, if no part of it has been written. Returns whether it did.
    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        self.outbox.remove(id)
    }

    /// Whether the write queue is full, so that nothing more should be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// The tail of its standard error, which is empty: the server runs elsewhere.
    pub(crate) fn tail(&self) -> &StderrTail {
        &self.tail
    }

    /// Moves bytes both ways until an event occurs. Cancel safe.
    pub(crate) async fn next(&mut self) -> InboundEvent {
        loop {
            if self.outbox.has_overflowed() {
                let message = "it does not read what it is sent, and too much waits for it";
                let error = Error::new(ErrorKind::ProtocolViolation, message);
                return InboundEvent::Closed(error);
            }
            while let Some(line) = self.lines.next_line() {
                if let Some(event) = incoming(line) {
                    return event;
                }
            }
            if self.has_ended {
                return self.lines.last_line().and_then(incoming).unwrap_or_else(ended);
            }
            // What was received before a failure is used; a failed write is the end, too.
            self.has_ended = !matches!(self.step().await, Ok(true));
        }
    }

    /// Performs one read or write. Returns whether there can be more.
    async fn step(&mut self) -> io::Result<bool> {
        let Self { stream: ServerStream { reader, writer }, lines, outbox, .. } = self;
        let write = async {
            let (slices, count) = outbox.slices();
            writer.write_vectored(&slices[..count]).await
        };
        tokio::select! {
            written = write, if !outbox.is_empty() => {
                self.outbox.advance(written?)?;
                self.stream.writer.flush().await?;
                Ok(true)
            }
            read = reader.read_buf(lines.room()) => Ok(read? > 0),
        }
    }

    /// Ends the stream.
    pub(crate) async fn close(mut self) {
        // The other side may be gone.
        let _ = self.stream.writer.shutdown().await;
    }
}

fn ended() -> InboundEvent {
    InboundEvent::Closed(Error::new(ErrorKind::Exited, "the connection to it ended"))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;
    use crate::transport::write_queue::tests::request;

    /// A transport, and the other end of its stream.
    fn transport() -> (StreamTransport, tokio::io::DuplexStream) {
        let (near, far) = duplex(64);
        let (reader, writer) = tokio::io::split(near);
        (StreamTransport::new(ServerStream::new(reader, writer)), far)
    }

    #[tokio::test]
    async fn messages_go_both_ways() {
        let (mut transport, mut far) = transport();
        transport.send(request(1, "one"));
        transport.send(request(2, "two"));
        let peer = async {
            let mut received = [0; 8];
            far.read_exact(&mut received).await.unwrap();
            far.write_all(b"{\"a\":1}\n").await.unwrap();
            received
        };
        let (event, received) = tokio::join!(transport.next(), peer);
        assert_eq!(&received, b"one\ntwo\n");
        assert!(matches!(event, InboundEvent::Message(line) if *line == *b"{\"a\":1}"));
    }

    #[tokio::test]
    async fn the_end_comes_after_what_was_received() {
        let (mut transport, mut far) = transport();
        far.write_all(b"first\nlast").await.unwrap();
        drop(far);
        assert!(
            matches!(transport.next().await, InboundEvent::Message(line) if *line == *b"first")
        );
        assert!(matches!(transport.next().await, InboundEvent::Message(line) if *line == *b"last"));
        let end = transport.next().await;
        assert!(matches!(end, InboundEvent::Closed(error) if error.kind() == ErrorKind::Exited));
    }

    #[tokio::test]
    async fn a_request_that_waits_can_be_taken_back() {
        let (mut transport, _far) = transport();
        transport.send(request(1, "one"));
        assert!(transport.cancel(1) && !transport.cancel(1));
    }
}
