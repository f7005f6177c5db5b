//! Errors with a kind to decide on, a message for the user and a hint.

use std::borrow::Cow;
use std::fmt;

use crate::name::ServerName;

/// Classifies an error, for code that decides how to react.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value refers to a variable, file or input that does not exist.
    MissingSecret,
    /// A value refers to a secret that exists and could not be read.
    UnreadableSecret,
    /// All references of a value were resolved, and the result is invalid.
    UnusableValue,
    /// The command of a stdio server does not exist.
    CommandNotFound,
    /// The command of a stdio server exists and could not be started.
    StartFailed,
    /// The process of a stdio server exited.
    Exited,
    /// No connection to the server could be established.
    Unreachable,
    /// The connection broke, or was closed before the response arrived.
    Broken,
    /// The TLS handshake failed, for example because the certificate is not trusted.
    Tls,
    /// The server requires authentication.
    Unauthorized,
    /// The server requires a login of the user.
    NeedsLogin,
    /// The server requires a login with more scopes, for this request.
    NeedsScopes,
    /// The server responded with an HTTP error status.
    HttpStatus(u16),
    /// The server ended the session.
    SessionExpired,
    /// The server restarted, or its session was renewed, after its items were looked up.
    Stale,
    /// A timeout expired.
    TimedOut,
    /// A size limit was exceeded.
    TooLarge,
    /// A concurrency limit was reached. Succeeds once other requests have completed.
    Busy,
    /// The server violated the protocol.
    ProtocolViolation,
    /// The host is shutting the server down, or has shut it down.
    ShuttingDown,
}

/// The party that an error is attributed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The configuration, or a secret it refers to.
    Configuration,
    /// The server.
    Server,
    /// The network between host and server.
    Network,
    /// The host, on purpose: it limits concurrency or shuts down.
    Host,
}

impl ErrorKind {
    /// The party at fault.
    pub fn fault(self) -> Fault {
        match self {
            Self::MissingSecret
            | Self::UnreadableSecret
            | Self::UnusableValue
            | Self::CommandNotFound
            | Self::StartFailed
            | Self::Unauthorized
            | Self::NeedsLogin
            | Self::NeedsScopes => Fault::Configuration,
            Self::Exited
            | Self::HttpStatus(_)
            | Self::SessionExpired
            | Self::Stale
            | Self::TimedOut
            | Self::TooLarge
            | Self::ProtocolViolation => Fault::Server,
            Self::Unreachable | Self::Broken | Self::Tls => Fault::Network,
            Self::Busy | Self::ShuttingDown => Fault::Host,
        }
    }

    /// Whether a retry can succeed.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Exited
            | Self::Unreachable
            | Self::Broken
            | Self::SessionExpired
            | Self::Stale
            | Self::TimedOut
            | Self::Busy => true,
            // 508: the URL leads back to this gateway (a loop), so a retry cannot succeed.
            Self::HttpStatus(status) => status == 429 || (status >= 500 && status != 508),
            _ => false,
        }
    }

    /// Whether a login of the user helps.
    pub fn needs_user_login(self) -> bool {
        matches!(self, Self::NeedsLogin | Self::NeedsScopes)
    }

    /// Whether the server cannot be used, so that every other request fails as well.
    pub fn is_unreachable(self) -> bool {
        matches!(self, Self::Unreachable | Self::Tls | Self::NeedsLogin)
    }
}

/// An error, with its kind, server, message and hint.
///
/// The message never contains a resolved value: it names references, keys and locations only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    server: Option<ServerName>,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error that is not attributed to a server yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, server: None, message: message.into(), hint: None }
    }

    /// Attributes the error to a server.
    #[must_use]
    pub fn of(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Adds a hint for the user.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The kind to decide on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message for the user, without the name of the server.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The server that the error is attributed to.
    pub fn server(&self) -> Option<&ServerName> {
        self.server.as_ref()
    }

    /// Advice for the user.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The message with the hint, if a login helps: for models, which pass it on to the user.
    pub fn message_with_login(&self) -> Cow<'_, str> {
        match (&self.hint, self.kind.needs_user_login()) {
            (Some(hint), true) => format!("{}; {hint}", self.message).into(),
            _ => self.message.as_str().into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "server `{server}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
