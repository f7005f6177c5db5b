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
}

/// Why one server cannot be used.
///
/// The text never holds a resolved value: it names references, keys and places only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    server: ServerName,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error of `server`.
    pub fn new(kind: ErrorKind, server: ServerName, message: impl Into<String>) -> Self {
        Self { kind, server, message: message.into(), hint: None }
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

    /// The server that cannot be used.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server `{}`: {}", self.server, self.message)
    }
}

impl std::error::Error for Error {}
