//! Errors that decide, explain and point: a kind to act on, a message for a person, a hint.

use std::fmt;

use crate::name::ServerName;

/// What went wrong, for code that has to decide what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value refers to a variable, file or input that is not there.
    MissingSecret,
    /// A value refers to something that is there but could not be read.
    UnreadableSecret,
    /// Every reference was filled in, and the result cannot be used.
    UnusableValue,
    /// The program of a server does not exist.
    CommandNotFound,
    /// The program of a server exists and could not be started.
    StartFailed,
    /// The process of a server ended.
    Exited,
    /// No connection to the server could be made.
    Unreachable,
    /// The connection to the server broke, or was closed before there was an answer.
    Broken,
    /// The server could not prove who it is.
    Tls,
    /// The server wants to know who asks.
    Unauthorized,
    /// The server refused with an HTTP status.
    HttpStatus(u16),
    /// The session ended on the server's side.
    SessionExpired,
    /// The server was started, or spoken to anew, after somebody had looked at what it has.
    Stale,
    /// Something took longer than it may.
    TimedOut,
    /// Something is larger than it may be.
    TooLarge,
    /// More than may be under way at the same time is. It passes when others are done.
    Busy,
    /// What came is not what the protocol says.
    ProtocolViolation,
    /// The host is ending the server, or has ended it.
    ShuttingDown,
}

/// Whose fault something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The configuration, or what it refers to.
    Configuration,
    /// The server.
    Server,
    /// What lies between.
    Network,
    /// Nobody's: the host wanted it so.
    Host,
}

impl ErrorKind {
    /// Whose fault it is.
    pub fn fault(self) -> Fault {
        match self {
            Self::MissingSecret
            | Self::UnreadableSecret
            | Self::UnusableValue
            | Self::CommandNotFound
            | Self::StartFailed
            | Self::Unauthorized => Fault::Configuration,
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

    /// Whether trying the same again can help.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Exited
            | Self::Unreachable
            | Self::Broken
            | Self::SessionExpired
            | Self::Stale
            | Self::TimedOut
            | Self::Busy => true,
            // 508: the address leads back to the gateway that asks, which no waiting changes.
            Self::HttpStatus(status) => status == 429 || (status >= 500 && status != 508),
            _ => false,
        }
    }

    /// Whether no connection could be made at all, so that whatever else is asked fails as well.
    pub fn is_unreachable(self) -> bool {
        matches!(self, Self::Unreachable | Self::Tls)
    }
}

/// Why something could not be done.
///
/// The text never holds a resolved value: it names references, keys and places only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    server: Option<ServerName>,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error that is not about a server yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, server: None, message: message.into(), hint: None }
    }

    /// Adds which server it is about.
    #[must_use]
    pub fn of(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What went wrong, in words, without whose it is.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The server it is about.
    pub fn server(&self) -> Option<&ServerName> {
        self.server.as_ref()
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
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
