//! Two small demo MCP servers, for trying things out: `words` and `numbers`.
//!
//! Any MCP client can use them, over a pair of streams or over HTTP, in both eras: legacy with
//! `initialize`, and modern with the protocol version in every request.

mod tools;
mod answer;
mod streams;
mod http;

use std::io;

use axum::Router;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// Limit in bytes of a message, as a line or as a body: far above the needs of a call, and small
/// enough that no client can exhaust the memory.
const LONGEST_MESSAGE: usize = 1024 * 1024;

/// One of the demo servers.
///
/// ```
/// use trunkline_gateway::demo::DemoServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":
///     {"name":"shout","arguments":{"text":"hello"}}}"#;
/// let one_line = request.replace('\n', " ");
///
/// let mut written = Vec::new();
/// DemoServer::Words.serve(one_line.as_bytes(), &mut written).await?;
/// assert!(String::from_utf8_lossy(&written).contains("HELLO"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DemoServer {
    /// Counts words, shouts and remembers texts.
    Words,
    /// Adds, rolls dice and converts temperatures.
    Numbers,
}

impl DemoServer {
    /// All demo servers.
    pub const ALL: [Self; 2] = [Self::Words, Self::Numbers];

    /// The server with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|server| server.name() == name)
    }

    /// The name of the server.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Numbers => "numbers",
        }
    }

    /// The response to one JSON-RPC message, or `None` if it is not a request.
    #[must_use]
    pub fn answer(self, message: &str) -> Option<String> {
        let answer = answer::answer(self, &Bytes::copy_from_slice(message.as_bytes()))?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Responds to messages, one per line, until the reader ends.
    ///
    /// # Errors
    ///
    /// When the reader or the writer fails. A malformed message gets an error response.
    pub async fn serve<R, W>(self, reader: R, writer: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        streams::serve(self, reader, writer).await
    }

    /// Serves HTTP at `/mcp` on a listener, until the returned future is dropped.
    ///
    /// # Errors
    ///
    /// When the listener fails.
    pub async fn listen(self, listener: TcpListener) -> io::Result<()> {
        http::listen(self, listener).await
    }

    /// The server as Streamable HTTP at `/mcp`, for a listener on a loopback address.
    ///
    /// Requests with a foreign `Host` or `Origin` header are refused.
    pub fn router(self) -> Router {
        http::router(self)
    }
}
