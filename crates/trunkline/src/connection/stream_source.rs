//! Streams to servers that run elsewhere, which the embedding program opens.

use std::pin::Pin;

use crate::config::Server;
use crate::transport::ServerStream;

/// The future of [`StreamSource::open`].
pub type StreamFuture<'a> = Pin<Box<dyn Future<Output = Option<ServerStream>> + Send + 'a>>;

/// Opens streams to servers that already run, instead of starting them: in this process, or in another one.
pub trait StreamSource: Send + Sync {
    /// A stream to the server; `None` to start it as configured.
    fn open<'a>(&'a self, server: &'a Server) -> StreamFuture<'a>;
}
