//! Choice of a store: the one in the configuration, the one used before, or the one that is there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore, StoreError, StoreGuard};

use crate::file_store::FileStore;
use crate::key::KeySource;
use crate::keychain::{KeychainStore, WaitNotice};
use crate::private::PrivateDirectory;

/// The file that remembers the kind of store in use.
const REMEMBERED: &str = "store";

/// Largest size of that file.
const MAX_REMEMBERED_BYTES: usize = 64;

/// The kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The keychain of the operating system.
    Keychain,
    /// Encrypted files.
    File,
}

impl StoreKind {
    /// Its name in configurations and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keychain => "keychain",
            Self::File => "file",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Keychain, Self::File].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// How a store is chosen and opened.
#[derive(Clone)]
pub struct StoreOptions {
    /// The kind in the configuration; `None` to choose by what is there.
    pub kind: Option<StoreKind>,
    /// The directory for the state of the program.
    pub state: PathBuf,
    /// The key of encrypted files that the user supplies; `None` to generate one.
    pub key: Option<KeySource>,
    /// Receives a message while the keychain may be asking the user.
    pub notice: WaitNotice,
}

impl StoreOptions {
    fn directory(&self) -> PathBuf {
        self.state.join("secrets")
    }

    /// The key of encrypted files.
    pub fn key_source(&self) -> KeySource {
        let generated = || KeySource::GeneratedFile(self.state.join("secrets-key.txt"));
        self.key.clone().unwrap_or_else(generated)
    }
}

/// A store, and why it was chosen.
pub struct ChosenStore {
    /// The store.
    pub store: Arc<dyn SecretStore>,
    /// Its kind.
    pub kind: StoreKind,
    /// The reason of the choice, for the user.
    pub reason: String,
}

impl fmt::Debug for ChosenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("ChosenStore");
        fields.field("kind", &self.kind).field("reason", &self.reason).finish()
    }
}

/// Opens the store of the user.
///
/// A choice by what is there is remembered with the first value that is stored. Otherwise a login on a
/// desktop would be missing in a session without a keychain, and a second one would be stored elsewhere.
pub fn open_store(options: &StoreOptions) -> Result<ChosenStore, StoreError> {
    if let Some(kind) = options.kind {
        let reason = format!("`secrets.store` in the configuration is `{}`", kind.as_str());
        return Ok(ChosenStore { store: open_kind(kind, options), kind, reason });
    }
    if let Some(kind) = remembered_kind(&options.directory())? {
        let reason = "it was used before".to_owned();
        return Ok(ChosenStore { store: open_kind(kind, options), kind, reason });
    }
    let (kind, reason) = match KeychainStore::probe() {
        Ok(()) => (StoreKind::Keychain, "there is a keychain".to_owned()),
        Err(error) => (StoreKind::File, error.to_string()),
    };
    let inner = open_kind(kind, options);
    let state = options.state.clone();
    Ok(ChosenStore { store: Arc::new(RememberingStore { inner, kind, state }), kind, reason })
}

/// Opens a store of one kind.
pub fn open_kind(kind: StoreKind, options: &StoreOptions) -> Arc<dyn SecretStore> {
    let directory = options.directory();
    match kind {
        StoreKind::Keychain => Arc::new(KeychainStore::new(directory, Arc::clone(&options.notice))),
        StoreKind::File => Arc::new(FileStore::new(directory, options.key_source())),
    }
}

/// Remembers a kind of store, for configurations that do not name one.
pub fn remember_kind(state: &Path, kind: StoreKind) -> Result<(), StoreError> {
    let directory = PrivateDirectory::create(&state.join("secrets"))?;
    let writers = directory.lock_writers()?;
    directory.replace(&writers, REMEMBERED, format!("{}\n", kind.as_str()).as_bytes())
}

fn remembered_kind(directory: &Path) -> Result<Option<StoreKind>, StoreError> {
    let Some(directory) = PrivateDirectory::open(directory)? else { return Ok(None) };
    let Some(content) = directory.read(REMEMBERED, MAX_REMEMBERED_BYTES)? else { return Ok(None) };
    let kind = std::str::from_utf8(&content).ok().and_then(|it| StoreKind::from_name(it.trim()));
    kind.map(Some).ok_or_else(|| {
        let path = directory.join(REMEMBERED);
        let message = format!("{} names no store", path.display());
        StoreError::new(message).with_hint("write `keychain` or `file` into it")
    })
}

/// A store that was chosen by what is there. It remembers the choice with the first value.
struct RememberingStore {
    inner: Arc<dyn SecretStore>,
    kind: StoreKind,
    state: PathBuf,
}

impl RememberingStore {
    /// Remembers the kind of store before the first value is stored: a value in a store that is not found
    /// again would be lost.
    fn remember(&self) -> Result<(), StoreError> {
        match remembered_kind(&self.state.join("secrets"))? {
            Some(kind) if kind == self.kind => Ok(()),
            Some(_) => {
                let message = "another process has chosen another store meanwhile";
                Err(StoreError::new(message).with_hint("try again"))
            }
            None => remember_kind(&self.state, self.kind),
        }
    }
}

impl SecretStore for RememberingStore {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        self.inner.get(key)
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        self.remember()?;
        self.inner.set(key, value)
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        self.inner.remove(key)
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        self.inner.keys()
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        self.inner.lock(key)
    }
}
