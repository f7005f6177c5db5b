//! Stores of secrets for tests: files that several processes share, and a disk that is full.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use trunkline::config::Secret;
use trunkline::secrets::{MemoryStore, SecretKey, SecretStore, StoreError, StoreGuard};

/// A store with a file per key, locked by the system and replaced as a whole. Not encrypted.
pub(crate) struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    fn path(&self, key: &SecretKey, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", key.id()))
    }
}

fn store_error(error: &std::io::Error) -> StoreError {
    StoreError::new(error.to_string())
}

impl SecretStore for FileStore {
    fn description(&self) -> String {
        "files of a test".to_owned()
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        match fs::read_to_string(self.path(key, "json")) {
            Ok(text) => Ok(Some(Secret::new(text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(store_error(&error)),
        }
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        let written = self.path(key, &format!("{}.new", std::process::id()));
        fs::write(&written, value.expose()).map_err(|error| store_error(&error))?;
        fs::rename(&written, self.path(key, "json")).map_err(|error| store_error(&error))
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        Ok(fs::remove_file(self.path(key, "json")).is_ok())
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        let entries = fs::read_dir(&self.directory).map_err(|error| store_error(&error))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut keys: Vec<_> =
            names.filter_map(|name| SecretKey::from_id(name.strip_suffix(".json")?)).collect();
        keys.sort();
        Ok(keys)
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        let file = File::create(self.path(key, "lock")).map_err(|error| store_error(&error))?;
        file.lock().map_err(|error| store_error(&error))?;
        Ok(StoreGuard::new(file))
    }
}

/// A store in memory whose disk can be full, and which counts how often it is used.
#[derive(Clone, Default)]
pub(crate) struct ObservedStore(Arc<ObservedShared>);

#[derive(Default)]
struct ObservedShared {
    store: MemoryStore,
    is_full: AtomicBool,
    reads: AtomicUsize,
    /// All values that were set, also those that were replaced since.
    written: Mutex<Vec<Secret>>,
}

impl ObservedStore {
    /// Lets all writes fail, or succeed again.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.0.is_full.store(is_full, Ordering::SeqCst);
    }

    /// The number of reads.
    pub(crate) fn reads(&self) -> usize {
        self.0.reads.load(Ordering::SeqCst)
    }

    /// All credentials that were ever stored.
    pub(crate) fn written(&self) -> Vec<Value> {
        let written = self.0.written.lock().unwrap();
        written.iter().map(|text| serde_json::from_str(text.expose()).unwrap()).collect()
    }
}

impl SecretStore for ObservedStore {
    fn description(&self) -> String {
        "the store of a test".to_owned()
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        self.0.reads.fetch_add(1, Ordering::SeqCst);
        self.0.store.get(key)
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        if self.0.is_full.load(Ordering::SeqCst) {
            return Err(StoreError::new("the disk is full").with_hint("remove something"));
        }
        self.0.written.lock().unwrap().push(value.clone());
        self.0.store.set(key, value)
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        self.0.store.remove(key)
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        self.0.store.keys()
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        self.0.store.lock(key)
    }
}

/// The stored credentials, by key.
pub(crate) fn credentials(store: &dyn SecretStore) -> BTreeMap<SecretKey, Value> {
    let keys = store.keys().unwrap().into_iter();
    let read = |key: SecretKey| {
        let text = store.get(&key).unwrap()?;
        Some((key, serde_json::from_str(text.expose()).unwrap()))
    };
    keys.filter_map(read).collect()
}

/// The only stored credential.
pub(crate) fn credential(store: &dyn SecretStore) -> Value {
    let mut all = credentials(store);
    assert_eq!(all.len(), 1, "one login is stored");
    all.pop_first().unwrap().1
}

/// Changes the only stored credential, as another process would.
pub(crate) fn change_credential(store: &dyn SecretStore, change: impl FnOnce(&mut Value)) {
    let (key, mut credential) = credentials(store).pop_first().unwrap();
    let _guard = store.lock(&key).unwrap();
    change(&mut credential);
    store.set(&key, &Secret::new(credential.to_string())).unwrap();
}
