//! The keychain of the operating system: Secret Service on Linux, Keychain on macOS, Credential Manager on
//! Windows.

mod worker;
mod platform;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use keyring_core::api::CredentialStore;
use keyring_core::{Entry, Error};
use ring::digest;
use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore, StoreError, StoreGuard};

use crate::file_store::{KEY_LOCK_TIMEOUT, hexadecimal};
use crate::private::PrivateDirectory;
use worker::{Connect, Worker};

/// Longest operation: the keychain may ask the user for a password.
pub const KEYCHAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Time in which a keychain that is there answers.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The name of this program in the keychain.
const SERVICE: &str = "trunkline";

/// Receives a message when an operation takes long, because the keychain may be asking the user.
pub type WaitNotice = Arc<dyn Fn(&str) + Send + Sync>;

/// A store in the keychain of the operating system. It is connected when it is first used.
pub struct KeychainStore {
    worker: Worker,
    locks: PathBuf,
}

impl KeychainStore {
    /// The keychain of the user, with lock files in the directory `locks`.
    pub fn new(locks: impl Into<PathBuf>, notice: WaitNotice) -> Self {
        Self::with_connect(locks.into(), notice, Box::new(platform::connect))
    }

    fn with_connect(locks: PathBuf, notice: WaitNotice, connect: Connect) -> Self {
        Self { worker: Worker::start(connect, notice), locks }
    }

    /// Checks that there is a keychain that can store entries, without asking the user.
    pub fn probe() -> Result<(), StoreError> {
        worker::bounded(PROBE_TIMEOUT, || platform::probe().map_err(|it| failed("opened", it)))
            .unwrap_or_else(|| {
                let waited = PROBE_TIMEOUT.as_secs();
                Err(StoreError::new(format!("the keychain did not answer within {waited} s")))
            })
    }

    fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        operation: impl FnOnce(&CredentialStore) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.worker.run(KEYCHAIN_TIMEOUT, action, operation)
    }
}

impl fmt::Debug for KeychainStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeychainStore")
    }
}

impl SecretStore for KeychainStore {
    fn description(&self) -> String {
        "the keychain".to_owned()
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        let id = key.id();
        let value = self.run("read", move |store| if_there(entry(store, &id)?.get_secret()))?;
        let text = value.map(|value| String::from_utf8(value).map(Secret::new)).transpose();
        text.map_err(|_| {
            let id = key.id();
            StoreError::new(format!("the entry `{id}` in the keychain is not a text"))
        })
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        let (id, value) = (key.id(), value.clone());
        if let Some(max) = platform::MAX_VALUE_BYTES
            && value.expose().len() > max
        {
            let length = value.expose().len();
            let message =
                format!("`{id}` has {length} bytes, and an entry of the keychain at most {max}");
            return Err(StoreError::new(message).with_hint(FILE_HINT));
        }
        self.run("written", move |store| entry(store, &id)?.set_secret(value.expose().as_bytes()))
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        let id = key.id();
        let removed =
            self.run("changed", move |store| if_there(entry(store, &id)?.delete_credential()))?;
        Ok(removed.is_some())
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        let mut keys = self.run("read", |store| {
            let entries = store.search(&HashMap::from([platform::search(SERVICE)]))?;
            let specifiers = entries.iter().filter_map(Entry::get_specifiers);
            let own = specifiers.filter(|(service, _)| service == SERVICE);
            Ok(own.filter_map(|(_, id)| SecretKey::from_id(&id)).collect::<Vec<_>>())
        })?;
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        lock(&self.locks, key)
    }
}

/// Locks a key of the keychain, which has no locks of its own. Its names are not secret: every program of
/// the user can list them in the keychain.
fn lock(locks: &Path, key: &SecretKey) -> Result<StoreGuard, StoreError> {
    let directory = PrivateDirectory::create(locks)?;
    let digest = digest::digest(&digest::SHA256, key.id().as_bytes());
    let name = format!("keychain-{}.lock", hexadecimal(digest.as_ref()));
    directory.lock(&name, KEY_LOCK_TIMEOUT).map(StoreGuard::new)
}

fn entry(store: &CredentialStore, id: &str) -> Result<Entry, Error> {
    let label = format!("Trunkline: {id}");
    let modifiers = platform::modifiers(&label);
    store.build(SERVICE, id, Some(&modifiers))
}

fn if_there<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Advice for a keychain that cannot be used.
const FILE_HINT: &str =
    "or use encrypted files: `\"secrets\": { \"store\": \"file\" }` in your configuration";

/// An error of the keychain. No text of it contains a value.
fn failed(action: &str, error: Error) -> StoreError {
    let (reason, hint) = match error {
        Error::NoStorageAccess(error) | Error::PlatformFailure(error) => {
            platform::explain(error.as_ref())
        }
        Error::Ambiguous(_) => {
            ("it has several entries with this name".to_owned(), "remove all but one")
        }
        Error::TooLong(attribute, limit) => {
            (format!("the {attribute} has more than {limit} characters"), "shorten it")
        }
        Error::NotSupportedByStore(reason) | Error::BadStoreFormat(reason) => (reason, ""),
        Error::Invalid(attribute, reason) => (format!("its {attribute} {reason}"), ""),
        // The others may quote the value.
        _ => ("its content was not expected".to_owned(), ""),
    };
    let hint = match hint {
        "" => FILE_HINT.trim_start_matches("or ").to_owned(),
        hint => format!("{hint}, {FILE_HINT}"),
    };
    StoreError::new(format!("the keychain cannot be {action}: {reason}")).with_hint(hint)
}

#[cfg(test)]
mod tests;
