//! Storage for secrets: values that a user entered, and the credentials of OAuth logins.

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// Stores secrets by key.
///
/// Its methods may block, for example on a keychain that asks the user for a password: they are called
/// on threads for blocking work, never for each request. An entry is written whole or not at all.
pub trait SecretStore: Send + Sync {
    /// Names the store in messages: `the keychain`, `the encrypted files in ~/.local/state/…`.
    fn description(&self) -> String;

    /// The value of a key, if it has one.
    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError>;

    /// Sets the value of a key. It is durable when this returns.
    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError>;

    /// Removes a key. Returns whether it had a value.
    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError>;

    /// All keys that have a value, sorted.
    fn keys(&self) -> Result<Vec<SecretKey>, StoreError>;

    /// Waits for the exclusive right to change a key, among all processes that use this store. It ends
    /// when the guard is dropped, or the process ends.
    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError>;
}

/// The exclusive right to change a key, until it is dropped.
pub struct StoreGuard(#[expect(dead_code, reason = "held for its `Drop`")] Box<dyn Any + Send>);

impl StoreGuard {
    /// A guard that drops `held`, for example a locked file.
    pub fn new(held: impl Any + Send) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for StoreGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreGuard")
    }
}

/// What a stored value is for. Its name is not secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretKey {
    /// A value that the user entered, for `${secret:NAME}`.
    User(Box<str>),
    /// The credential of an OAuth login, by a digest of the server and the account.
    Credential(Box<str>),
}

impl SecretKey {
    /// The key of a value that the user entered.
    pub fn user(name: impl Into<Box<str>>) -> Self {
        Self::User(name.into())
    }

    /// The key of the credential of a login.
    pub fn credential(name: impl Into<Box<str>>) -> Self {
        Self::Credential(name.into())
    }

    /// The key in a form that is unique among all keys: `secret:NAME` or `oauth:NAME`.
    pub fn id(&self) -> String {
        match self {
            Self::User(name) => format!("secret:{name}"),
            Self::Credential(name) => format!("oauth:{name}"),
        }
    }

    /// The key with this [`id`](Self::id).
    pub fn from_id(id: &str) -> Option<Self> {
        let (kind, name) = id.split_once(':')?;
        match kind {
            "secret" => Some(Self::user(name)),
            "oauth" => Some(Self::credential(name)),
            _ => None,
        }
    }
}

/// Why a store could not be used. The message contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    message: String,
    hint: Option<String>,
}

impl StoreError {
    /// An error with a message for the user.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds advice for the user.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Advice for the user.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let converted = Self::new(ErrorKind::UnreadableSecret, error.message);
        match error.hint {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        }
    }
}

/// A store in the memory of this process, for embedders that keep no credentials, and for tests. Clones
/// share their values.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<MemoryShared>);

#[derive(Default)]
struct MemoryShared {
    values: Mutex<BTreeMap<SecretKey, Secret>>,
    locked: Mutex<HashSet<SecretKey>>,
    unlocked: Condvar,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl MemoryStore {
    fn values(&self) -> MutexGuard<'_, BTreeMap<SecretKey, Secret>> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecretStore for MemoryStore {
    fn description(&self) -> String {
        "the memory of this process".to_owned()
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        Ok(self.values().get(key).cloned())
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        self.values().insert(key.clone(), value.clone());
        Ok(())
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        Ok(self.values().remove(key).is_some())
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        Ok(self.values().keys().cloned().collect())
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        let locked = self.0.locked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_locked = |locked: &mut HashSet<SecretKey>| locked.contains(key);
        let locked = self.0.unlocked.wait_while(locked, is_locked);
        locked.unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        Ok(StoreGuard::new(MemoryGuard { store: self.clone(), key: key.clone() }))
    }
}

struct MemoryGuard {
    store: MemoryStore,
    key: SecretKey,
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let mut locked = self.store.0.locked.lock().unwrap_or_else(PoisonError::into_inner);
        locked.remove(&self.key);
        self.store.0.unlocked.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn keys_have_a_unique_id() {
        for key in [SecretKey::user("a:b"), SecretKey::credential("a:b"), SecretKey::user("")] {
            assert_eq!(SecretKey::from_id(&key.id()), Some(key));
        }
        assert_eq!(SecretKey::from_id("else:a"), None);
        assert_eq!(SecretKey::from_id("a"), None);
    }

    #[test]
    fn values_are_set_listed_and_removed() {
        let (store, key) = (MemoryStore::default(), SecretKey::user("TOKEN"));
        assert_eq!(store.get(&key).unwrap(), None);
        store.set(&key, &Secret::new("hunter2")).unwrap();
        assert_eq!(store.get(&key).unwrap().unwrap().expose(), "hunter2");
        assert_eq!(store.keys().unwrap(), std::slice::from_ref(&key));
        assert!(store.remove(&key).unwrap());
        assert!(!store.remove(&key).unwrap());
    }

    #[test]
    fn a_lock_excludes_others_of_the_same_key() {
        let (store, key) = (MemoryStore::default(), SecretKey::credential("a"));
        let guard = store.lock(&key).unwrap();
        drop(store.lock(&SecretKey::credential("b")).unwrap());
        let second = thread::spawn({
            let (store, key) = (store.clone(), key.clone());
            move || drop(store.lock(&key).unwrap())
        });
        drop(guard);
        second.join().unwrap();
    }
}
