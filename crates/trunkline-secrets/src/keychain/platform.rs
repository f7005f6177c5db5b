//! The keychain of each operating system: connection, search and errors.

#[cfg(target_os = "linux")]
mod secret_service;

#[cfg(target_os = "linux")]
pub(super) use secret_service::{MAX_VALUE_BYTES, connect, explain, modifiers, probe, search};

#[cfg(target_os = "macos")]
pub(super) use macos::{MAX_VALUE_BYTES, connect, explain, modifiers, probe, search};

#[cfg(windows)]
pub(super) use windows::{MAX_VALUE_BYTES, connect, explain, modifiers, probe, search};

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub(super) use none::{MAX_VALUE_BYTES, connect, explain, modifiers, probe, search};

#[cfg(target_os = "macos")]
mod macos {
    //! Keychain of macOS.

    use std::collections::HashMap;
    use std::sync::Arc;

    use apple_native_keyring_store::keychain::Store;
    use keyring_core::Result;
    use keyring_core::api::{CredentialStore, CredentialStoreApi as _};

    pub(in super::super) const MAX_VALUE_BYTES: Option<usize> = None;

    pub(in super::super) fn connect() -> Result<Arc<CredentialStore>> {
        let store: Arc<CredentialStore> = Store::new()?;
        Ok(store)
    }

    /// Searches attributes, which asks the user for nothing.
    pub(in super::super) fn probe() -> Result<()> {
        Store::new()?.search(&HashMap::from([search(super::super::SERVICE)])).map(|_| ())
    }

    pub(in super::super) fn search(service: &str) -> (&'static str, &str) {
        ("service", service)
    }

    pub(in super::super) fn modifiers(_: &str) -> HashMap<&str, &str> {
        HashMap::new()
    }

    pub(in super::super) fn explain(
        error: &(dyn std::error::Error + Send + Sync + 'static),
    ) -> (String, &'static str) {
        (error.to_string(), "unlock the login keychain and allow access")
    }
}

#[cfg(windows)]
mod windows {
    //! Credential Manager of Windows.

    use std::collections::HashMap;
    use std::sync::Arc;

    use keyring_core::Result;
    use keyring_core::api::CredentialStore;
    use windows_native_keyring_store::Store;

    /// Windows has no larger credentials (`CRED_MAX_CREDENTIAL_BLOB_SIZE`).
    pub(in super::super) const MAX_VALUE_BYTES: Option<usize> = Some(2560);

    pub(in super::super) fn connect() -> Result<Arc<CredentialStore>> {
        let store: Arc<CredentialStore> = Store::new()?;
        Ok(store)
    }

    pub(in super::super) fn probe() -> Result<()> {
        Store::new().map(|_| ())
    }

    /// The target of a credential is `USER.SERVICE`.
    pub(in super::super) fn search(_: &str) -> (&'static str, &str) {
        ("pattern", r"^(secret|oauth):.*\.trunkline$")
    }

    pub(in super::super) fn modifiers(_: &str) -> HashMap<&str, &str> {
        HashMap::new()
    }

    pub(in super::super) fn explain(
        error: &(dyn std::error::Error + Send + Sync + 'static),
    ) -> (String, &'static str) {
        (error.to_string(), "")
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod none {
    //! Systems without a keychain that is supported.

    use std::collections::HashMap;
    use std::sync::Arc;

    use keyring_core::api::CredentialStore;
    use keyring_core::{Error, Result};

    pub(in super::super) const MAX_VALUE_BYTES: Option<usize> = None;

    pub(in super::super) fn connect() -> Result<Arc<CredentialStore>> {
        let reason = "no keychain of this operating system is supported";
        Err(Error::NotSupportedByStore(reason.to_owned()))
    }

    pub(in super::super) fn probe() -> Result<()> {
        connect().map(|_| ())
    }

    pub(in super::super) fn search(service: &str) -> (&'static str, &str) {
        ("service", service)
    }

    pub(in super::super) fn modifiers(_: &str) -> HashMap<&str, &str> {
        HashMap::new()
    }

    pub(in super::super) fn explain(
        error: &(dyn std::error::Error + Send + Sync + 'static),
    ) -> (String, &'static str) {
        (error.to_string(), "")
    }
}
