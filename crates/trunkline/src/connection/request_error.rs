//! The error of a request to a server.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::message::RpcError;
use crate::sanitize::sanitize_text;

/// Why a request to a server has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The JSON-RPC error that the server responded with, or that the connection or the handler
    /// rejected the request with.
    Refused(RpcError),
    /// There is no response: the transport failed, a timeout expired, or the connection is closed.
    /// [`Error::kind`] tells them apart.
    Failed(Error),
}

/// The error of a request without a response at its deadline.
pub(super) fn late_error() -> Error {
    Error::new(ErrorKind::TimedOut, "it did not answer in time")
}

impl RequestError {
    /// The JSON-RPC error, if the request was refused.
    pub fn refusal(&self) -> Option<&RpcError> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Failed(_) => None,
        }
    }

    /// The error of a request without a response.
    pub fn failure(&self) -> Option<&Error> {
        match self {
            Self::Refused(_) => None,
            Self::Failed(error) => Some(error),
        }
    }

    /// Transforms the JSON-RPC error.
    pub(super) fn map_refusal(self, change: impl FnOnce(RpcError) -> RpcError) -> Self {
        match self {
            Self::Refused(error) => Self::Refused(change(error)),
            Self::Failed(error) => Self::Failed(error),
        }
    }

    /// Transforms the error of a request without a response.
    pub(super) fn map_failure(self, change: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::Refused(error) => Self::Refused(error),
            Self::Failed(error) => Self::Failed(change(error)),
        }
    }
}

impl From<RpcError> for RequestError {
    fn from(error: RpcError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The message is the server's: it must not control a terminal.
            Self::Refused(error) => {
                write!(f, "{} ({})", sanitize_text(&error.message()), error.code())
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}
