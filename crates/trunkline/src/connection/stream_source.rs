//! Streams to servers that run elsewhere, which the embedding program opens.

use std::pin::Pin;

use crate::config::{ResolvedTransport, Server};
use crate::message::Raw;
use crate::transport::ServerStream;

/// The future of [`StreamSource::open`].
pub type StreamFuture<'a> = Pin<Box<dyn Future<Output = Option<ServerStream>> + Send + 'a>>;

/// A server that is about to be started.
#[derive(Clone, Copy, Debug)]
pub struct StreamRequest<'a> {
    /// The server as configured.
    pub server: &'a Server,
    /// Its transport, with every reference resolved.
    pub transport: &'a ResolvedTransport,
    /// The client capabilities that it is told.
    pub capabilities: &'a Raw,
}

/// Opens streams to servers that already run, instead of starting them: in this process, or in another one.
pub trait StreamSource: Send + Sync {
    /// A stream to the server; `None` to start it as configured.
    fn open<'a>(&'a self, request: StreamRequest<'a>) -> StreamFuture<'a>;
}
