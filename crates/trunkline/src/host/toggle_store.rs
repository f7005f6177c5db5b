//! The interface of stores that keep the toggles of conversations (TOOL-9).

use std::fmt;

use crate::policy::ProjectToggles;

/// Keeps the toggles of one project, so that they survive a restart. Its functions may block.
pub trait ToggleStore: Send + Sync {
    /// Reads all toggles; empty if none were stored yet.
    ///
    /// # Errors
    ///
    /// When there are toggles that cannot be read.
    fn load(&self) -> Result<ProjectToggles, ToggleStoreError>;

    /// Changes the stored toggles in one step, and returns all of them as they are stored then. When this
    /// returns, the change survives a power cut.
    ///
    /// # Errors
    ///
    /// When the change could not be stored. The toggles are as before.
    fn update(
        &self,
        change: &dyn Fn(&mut ProjectToggles),
    ) -> Result<ProjectToggles, ToggleStoreError>;
}

/// Toggles could not be read or stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToggleStoreError {
    message: String,
}

impl ToggleStoreError {
    /// An error with a message that names the file and the reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for ToggleStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToggleStoreError {}
