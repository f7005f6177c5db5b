//! The transport over a stream that someone else has opened, with one message per line in each direction.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::oversized_response::{OversizedResponse, incoming};
use super::stderr_tail::StderrTail;
use super::write_queue::WriteQueue;
use super::{InboundEvent, MAX_MESSAGE_BYTES, OutboundMessage};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::message::LineBuffer;

/// How long the other side may take to end a stream of a process, besides the time of the process.
const FAREWELL: Duration = Duration::from_secs(1);

/// Bytes of standard error per read.
const ERRORS_BYTES: usize = 4 * 1024;

type StreamReader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// Why a stream ended, for [`ServerStream::of_process`].
pub type StreamEnd = Pin<Box<dyn Future<Output = Error> + Send + Sync>>;

/// An open stream to a server that speaks MCP as over stdio: one message per line.
pub struct ServerStream {
    reader: StreamReader,
    writer: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    process: Option<ProcessStreams>,
    first_request_id: u64,
}

/// What a stream has in addition, if its server is a process.
struct ProcessStreams {
    id: Option<u32>,
    errors: Option<StreamReader>,
    end: StreamEnd,
}

impl ServerStream {
    /// A stream of two halves: the messages of the server, and those to it.
    pub fn new(
        reader: impl AsyncRead + Send + Sync + Unpin + 'static,
        writer: impl AsyncWrite + Send + Sync + Unpin + 'static,
    ) -> Self {
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        Self { reader, writer, process: None, first_request_id: 1 }
    }

    /// Declares that the server is a process that someone else has started: its ID, its standard error, and why
    /// the stream ended, once it has.
    #[must_use]
    pub fn of_process(
        self,
        id: Option<u32>,
        errors: impl AsyncRead + Send + Sync + Unpin + 'static,
        end: StreamEnd,
    ) -> Self {
        let process = ProcessStreams { id, errors: Some(Box::new(errors)), end };
        Self { process: Some(process), ..self }
    }

    /// Sets the first request ID, for a server that has had requests of other clients in the same session. The
    /// default is 1.
    #[must_use]
    pub fn with_first_request_id(self, first: u64) -> Self {
        Self { first_request_id: first, ..self }
    }

    pub(crate) fn first_request_id(&self) -> u64 {
        self.first_request_id
    }
}

/// A transport over an open stream.
pub(crate) struct StreamTransport {
    stream: ServerStream,
    lines: LineBuffer<OversizedResponse>,
    outbox: WriteQueue,
    /// Empty between two reads.
    errors_chunk: Vec<u8>,
    tail: StderrTail,
    has_ended: bool,
}

impl StreamTransport {
    /// A transport to a server that knows these secrets.
    pub(crate) fn new(stream: ServerStream, secrets: impl IntoIterator<Item = Secret>) -> Self {
        Self {
            stream,
            lines: LineBuffer::new(MAX_MESSAGE_BYTES),
            outbox: WriteQueue::default(),
            errors_chunk: Vec::new(),
            tail: StderrTail::with_secrets(secrets),
            has_ended: false,
        }
    }

    /// The process of the server, if it is known to be one.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.stream.process.as_ref()?.id
    }

    /// Whether the server is a process, as with the stdio transport.
    pub(crate) fn is_of_process(&self) -> bool {
        self.stream.process.is_some()
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

    /// The last lines of its standard error, as far as they come with the stream.
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
                return match self.lines.last_line().and_then(incoming) {
                    Some(event) => event,
                    None => InboundEvent::Closed(self.end().await),
                };
            }
            // What was received before a failure is used; a failed write is the end, too.
            self.has_ended = !matches!(self.step().await, Ok(true));
        }
    }

    /// Performs one read or write. Returns whether there can be more.
    async fn step(&mut self) -> io::Result<bool> {
        let Self { stream, lines, outbox, errors_chunk, tail, .. } = self;
        let ServerStream { reader, writer, process, .. } = stream;
        let errors = process.as_mut().and_then(|process| process.errors.as_mut());
        let (has_errors, errors_chunk) = (errors.is_some(), &mut *errors_chunk);
        let write = async {
            let (slices, count) = outbox.slices();
            writer.write_vectored(&slices[..count]).await
        };
        let read_errors = async {
            errors_chunk.reserve(ERRORS_BYTES);
            match errors {
                Some(errors) => errors.read_buf(errors_chunk).await,
                None => Ok(0),
            }
        };
        tokio::select! {
            written = write, if !outbox.is_empty() => {
                self.outbox.advance(written?)?;
                self.stream.writer.flush().await?;
                Ok(true)
            }
            read = read_errors, if has_errors => {
                tail.add(&self.errors_chunk);
                self.errors_chunk.clear();
                if !matches!(read, Ok(count) if count > 0) && let Some(process) = process {
                    process.errors = None;
                }
                Ok(true)
            }
            read = reader.read_buf(lines.room()) => Ok(read? > 0),
        }
    }

    /// Why the stream ended, with the rest of standard error.
    async fn end(&mut self) -> Error {
        let Some(process) = &mut self.stream.process else {
            return Error::new(ErrorKind::Exited, "the connection to it ended");
        };
        let mut rest = Vec::new();
        if let Some(errors) = &mut process.errors {
            let _ = timeout(FAREWELL, errors.read_to_end(&mut rest)).await;
        }
        self.tail.add(&rest);
        process.errors = None;
        process.end.as_mut().await
    }

    /// Ends the stream. That of a process has ended when this returns, within its time to end, so that another
    /// client can use the process, or it has ended too.
    pub(crate) async fn close(mut self, patience: Duration) {
        // The other side may be gone.
        let _ = self.stream.writer.shutdown().await;
        if self.stream.process.is_some() && !self.has_ended {
            let rest = async {
                while !matches!(self.step().await, Ok(false) | Err(_)) {
                    while self.lines.next_line().is_some() {}
                }
            };
            let _ = timeout(patience + FAREWELL, rest).await;
        }
    }
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
        (StreamTransport::new(ServerStream::new(reader, writer), []), far)
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

    #[tokio::test]
    async fn a_process_says_why_it_ended_and_its_secrets_are_masked() {
        let (near, mut far) = duplex(64);
        let (errors, mut to_errors) = duplex(64);
        let (reader, writer) = tokio::io::split(near);
        let end = Box::pin(async { Error::new(ErrorKind::StartFailed, "it is broken") });
        let stream = ServerStream::new(reader, writer).of_process(Some(7), errors, end);
        let mut transport = StreamTransport::new(stream, [Secret::new("hunter22")]);
        to_errors.write_all(b"first\nthe token hunter22").await.unwrap();
        far.write_all(b"{}\n").await.unwrap();
        assert!(matches!(transport.next().await, InboundEvent::Message(_)));
        drop((far, to_errors));
        let end = transport.next().await;
        assert!(matches!(end, InboundEvent::Closed(it) if it.kind() == ErrorKind::StartFailed));
        assert_eq!(transport.tail().lines(), ["first", "the token ***"]);
        assert_eq!((transport.process_id(), transport.is_of_process()), (Some(7), true));
    }

    #[tokio::test]
    async fn a_process_is_free_when_its_stream_is_closed() {
        let (near, mut far) = duplex(64);
        let (reader, writer) = tokio::io::split(near);
        let end = Box::pin(std::future::pending());
        let stream = ServerStream::new(reader, writer).of_process(None, tokio::io::empty(), end);
        let peer = async {
            let mut rest = Vec::new();
            far.read_to_end(&mut rest).await.unwrap();
            far.write_all(b"{\"late\":1}\n").await.unwrap();
            drop(far);
        };
        tokio::join!(StreamTransport::new(stream, []).close(FAREWELL), peer);
    }
}
