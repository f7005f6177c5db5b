//! Where secrets are stored: `secrets` in a configuration.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::keywords::SecretStoreChoice;

/// Where secrets are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretSettings {
    /// The store; `None` if no layer chooses one.
    pub store: Option<SecretStoreChoice>,
    /// The key of encrypted files: absolute, relative to the working directory, or under `~/`.
    pub key_file: Option<PathBuf>,
    /// Whether a layer may choose a store and cannot be read. No store may be used then.
    pub is_unreadable: bool,
}

impl SecretSettings {
    /// The settings for display.
    pub(crate) fn to_json(&self) -> Value {
        let store = self.store.unwrap_or(SecretStoreChoice::Auto).as_str();
        match &self.key_file {
            Some(path) => json!({ "store": store, "keyFile": path.to_string_lossy() }),
            None => json!({ "store": store }),
        }
    }
}
