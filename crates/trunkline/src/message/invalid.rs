//! Errors for text that cannot be used as JSON.

use std::fmt;

/// The text is not exactly one JSON value.
#[derive(Debug)]
pub struct InvalidJson(pub(super) serde_json::Error);

impl fmt::Display for InvalidJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON: {}", self.0)
    }
}

impl std::error::Error for InvalidJson {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// An object has duplicate members, or members whose keys differ only in case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateMember;
