//! Secret Service, the keychain of Linux desktops, over D-Bus.

use std::collections::HashMap;
use std::sync::Arc;

use keyring_core::api::CredentialStore;
use keyring_core::{Error, Result};
use secret_service::EncryptionType;
use secret_service::Error as ServiceError;
use secret_service::blocking::SecretService;
use zbus_secret_service_keyring_store::Store;

/// Secret Service has no limit of its own.
pub(in super::super) const MAX_VALUE_BYTES: Option<usize> = None;

pub(in super::super) fn connect() -> Result<Arc<CredentialStore>> {
    let store: Arc<CredentialStore> = Store::new()?;
    Ok(store)
}

/// Looks for the default collection, in which entries are created. It may be locked.
pub(in super::super) fn probe() -> Result<()> {
    let failed = |error: ServiceError| Error::PlatformFailure(Box::new(error));
    let service = SecretService::connect(EncryptionType::Plain).map_err(failed)?;
    service.get_default_collection().map_err(failed)?;
    Ok(())
}

pub(in super::super) fn search(service: &str) -> (&'static str, &str) {
    ("service", service)
}

/// The name that programs for keyrings show.
pub(in super::super) fn modifiers(label: &str) -> HashMap<&str, &str> {
    HashMap::from([("label", label)])
}

/// The reason of an error, and what to do about it.
pub(in super::super) fn explain(
    error: &(dyn std::error::Error + Send + Sync + 'static),
) -> (String, &'static str) {
    match error.downcast_ref::<ServiceError>() {
        Some(ServiceError::Locked) => ("it is locked".to_owned(), "unlock it"),
        Some(ServiceError::Prompt | ServiceError::PromptDisconnected) => {
            ("it is locked, and was not unlocked when it asked".to_owned(), "unlock it")
        }
        Some(ServiceError::NoResult) => {
            ("it has no default collection".to_owned(), "create one with a program for keyrings")
        }
        Some(ServiceError::Unavailable) => (
            "no Secret Service runs on this D-Bus session".to_owned(),
            "start one, such as gnome-keyring or KWallet",
        ),
        Some(ServiceError::Zbus(error)) => {
            (format!("there is no D-Bus session with a Secret Service ({error})"), "start one")
        }
        _ => (error.to_string(), ""),
    }
}
