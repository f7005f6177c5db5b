//! The transport of a server as configured, with references in its values.

use super::oauth::OAuthMode;
use super::template::Template;

/// Headers that the transport sets itself; another value would break it.
pub(crate) const TRANSPORT_HEADERS: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// The transport of a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A child process that communicates over stdin and stdout.
    Stdio(Stdio),
    /// A remote server with an HTTP URL.
    Remote(Remote),
}

/// A child process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stdio {
    /// The program.
    pub command: Template,
    /// Its arguments.
    pub args: Vec<Template>,
    /// Its working directory.
    pub cwd: Option<Template>,
    /// Variables to set, or to remove where the value is `None`.
    pub env: Vec<(Box<str>, Option<Template>)>,
    /// A file with more variables; `env` takes precedence.
    pub env_file: Option<Template>,
}

/// A remote server with an HTTP URL.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Remote {
    /// The URL.
    pub url: Template,
    /// Headers sent with every request.
    pub headers: Vec<(Box<str>, Template)>,
    /// The HTTP transport of the server.
    pub protocol: RemoteTransport,
    /// Whether and how tokens are obtained.
    pub oauth: OAuthMode,
    /// A program that prints headers, with its arguments.
    pub headers_command: Option<Vec<Template>>,
}

/// HTTP transport of a remote server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoteTransport {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, of the first protocol revision.
    Sse,
    /// Not declared: Streamable HTTP first, with a fallback to HTTP+SSE.
    Detect,
}
