//! Two small MCP servers to try things with: words and numbers.
//!
//! They are real servers in that any MCP client can use them, over a pair of streams or over HTTP,
//! in both generations of the protocol: the older one that opens with `initialize`, and the newer
//! one in which every request says for itself what it speaks.

mod tools;
mod answer;
mod streams;
mod http;

use std::io;

use axum::Router;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// The longest message that is read, as a line or as a body: far above what a call needs, and
/// small enough that no client can fill the memory.
const LONGEST_MESSAGE: usize = 1024 * 1024;

/// One of the servers of the demonstration.
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
    /// Counts, shouts and remembers texts.
    Words,
    /// Adds, rolls dice and converts temperatures.
    Numbers,
}

impl DemoServer {
    /// Every server of the demonstration.
    pub const ALL: [Self; 2] = [Self::Words, Self::Numbers];

    /// The server with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|server| server.name() == name)
    }

    /// The name to choose the server by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Numbers => "numbers",
        }
    }

    /// The answer to one JSON-RPC message, or nothing if it asks for none.
    #[must_use]
    pub fn answer(self, message: &str) -> Option<String> {
        let answer = answer::answer(self, &Bytes::copy_from_slice(message.as_bytes()))?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Answers messages, one a line, until the reader ends.
    ///
    /// # Errors
    ///
    /// When the reader or the writer fails. A message that makes no sense is answered, not an
    /// error.
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

    /// The server as Streamable HTTP at `/mcp`, to be listened for on a loopback address.
    ///
    /// Requests that name another host, or come from a page of another host, are refused.
    pub fn router(self) -> Router {
        http::router(self)
    }
}
