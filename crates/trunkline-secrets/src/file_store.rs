//! A store of encrypted files, one per entry.
//!
//! Entries are encrypted to an age identity that belongs to the store. The identity is in
//! `identity.age`, encrypted with the key of the user. A passphrase is therefore derived once per process,
//! and a store with the wrong key is noticed before it is written to.
//!
//! The name of a file is a keyed digest of the entry's key. A listing of the directory shows how many
//! entries there are and how long they are, and not what they are for. A plain digest would show that,
//! because names such as `GITHUB_TOKEN` can be guessed.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use age::secrecy::ExposeSecret as _;
use age::x25519;
use ring::hmac;
use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore, StoreError, StoreGuard};

use crate::key::KeySource;
use crate::private::{PrivateDirectory, WriterLock};
use crate::sealed;

/// Largest value: a credential has a few KiB.
pub const MAX_VALUE_BYTES: usize = 256 << 10;

/// Largest file: a value with its key, and what encryption adds.
const MAX_ENTRY_BYTES: usize = MAX_VALUE_BYTES + (4 << 10);

/// Longest ID of a key.
const MAX_KEY_ID_BYTES: usize = 1 << 10;

/// Time that a caller waits for the right to change a key: longer than a refresh of a token takes.
pub(crate) const KEY_LOCK_TIMEOUT: Duration = Duration::from_secs(120);

const IDENTITY: &str = "identity.age";
const ENTRY: &str = ".age";

/// A store of encrypted files in a directory.
pub struct FileStore {
    path: PathBuf,
    key: KeySource,
    unlocked: Mutex<Option<Arc<UnlockedIdentity>>>,
}

/// The identity of a store, decrypted.
struct UnlockedIdentity {
    /// The file that it was decrypted from, to notice another one.
    file: Vec<u8>,
    identity: x25519::Identity,
    name_key: hmac::Key,
}

impl UnlockedIdentity {
    fn new(identity: x25519::Identity, file: Vec<u8>) -> Self {
        let text = identity.to_string();
        let name_key = hmac::Key::new(hmac::HMAC_SHA256, text.expose_secret().as_bytes());
        Self { file, identity, name_key }
    }

    /// The name of the files of a key, without their extension.
    fn name(&self, key: &SecretKey) -> String {
        let tag = hmac::sign(&self.name_key, format!("name of {}", key.id()).as_bytes());
        hexadecimal(tag.as_ref())
    }
}

impl FileStore {
    /// The store in a directory. Neither has to exist, and nothing is read yet.
    pub fn new(path: impl Into<PathBuf>, key: KeySource) -> Self {
        Self { path: path.into(), key, unlocked: Mutex::default() }
    }

    /// The directory, if there is one.
    fn directory(&self) -> Result<Option<PrivateDirectory>, StoreError> {
        PrivateDirectory::open(&self.path)
    }

    /// The identity of an existing store.
    fn unlock(
        &self,
        directory: &PrivateDirectory,
    ) -> Result<Option<Arc<UnlockedIdentity>>, StoreError> {
        let Some(file) = directory.read(IDENTITY, MAX_ENTRY_BYTES)? else {
            return if entry_names(directory)?.is_empty() {
                Ok(None)
            } else {
                let path = directory.join(IDENTITY);
                let message = format!("{} is missing", path.display());
                let hint =
                    "restore it from a backup: the entries beside it cannot be read without it";
                Err(StoreError::new(message).with_hint(hint))
            };
        };
        let mut unlocked = self.unlocked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unlocked) = unlocked.as_ref().filter(|it| it.file == file) {
            return Ok(Some(Arc::clone(unlocked)));
        }
        let path = directory.join(IDENTITY);
        let text = self.key.unwrap(&file, &path)?;
        let identity = String::from_utf8(text).ok();
        let identity = identity.and_then(|it| x25519::Identity::from_str(it.trim()).ok());
        let identity = identity.ok_or_else(|| sealed::damaged(&path))?;
        let identity = Arc::new(UnlockedIdentity::new(identity, file));
        Ok(Some(Arc::clone(unlocked.insert(identity))))
    }

    /// The identity of the store, which is created if there is none.
    fn unlock_or_create(
        &self,
        directory: &PrivateDirectory,
        writers: &WriterLock,
    ) -> Result<Arc<UnlockedIdentity>, StoreError> {
        if let Some(unlocked) = self.unlock(directory)? {
            return Ok(unlocked);
        }
        self.key.generate_if_missing()?;
        let text = x25519::Identity::generate().to_string();
        let wrapped = self.key.wrap(text.expose_secret().as_bytes())?;
        directory.replace(writers, IDENTITY, &wrapped)?;
        let missing = || StoreError::new("the store disappeared while it was created");
        self.unlock(directory)?.ok_or_else(missing)
    }

    /// The name of the files of a key, in a store that is created if there is none.
    fn name_of(&self, directory: &PrivateDirectory, key: &SecretKey) -> Result<String, StoreError> {
        if let Some(unlocked) = self.unlock(directory)? {
            return Ok(unlocked.name(key));
        }
        let writers = directory.lock_writers()?;
        Ok(self.unlock_or_create(directory, &writers)?.name(key))
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SecretStore for FileStore {
    fn description(&self) -> String {
        format!("the encrypted files in {}", self.path.display())
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        let Some(directory) = self.directory()? else { return Ok(None) };
        let Some(unlocked) = self.unlock(&directory)? else { return Ok(None) };
        let name = unlocked.name(key) + ENTRY;
        let Some(content) = directory.read(&name, MAX_ENTRY_BYTES)? else { return Ok(None) };
        let path = directory.join(&name);
        match sealed::open(&unlocked.identity, &content, &path)? {
            (found, value) if found == *key => Ok(Some(value)),
            _ => Err(sealed::damaged(&path)),
        }
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        check_size(key, value)?;
        let directory = PrivateDirectory::create(&self.path)?;
        let writers = directory.lock_writers()?;
        let unlocked = self.unlock_or_create(&directory, &writers)?;
        let content = sealed::seal(&unlocked.identity.to_public(), key, value)?;
        directory.replace(&writers, &(unlocked.name(key) + ENTRY), &content)
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        let Some(directory) = self.directory()? else { return Ok(false) };
        let Some(unlocked) = self.unlock(&directory)? else { return Ok(false) };
        let _writers = directory.lock_writers()?;
        directory.remove(&(unlocked.name(key) + ENTRY))
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        let Some(directory) = self.directory()? else { return Ok(Vec::new()) };
        let Some(unlocked) = self.unlock(&directory)? else { return Ok(Vec::new()) };
        let mut keys = Vec::new();
        for name in entry_names(&directory)? {
            // Another process may have removed it meanwhile.
            let Some(content) = directory.read(&name, MAX_ENTRY_BYTES)? else { continue };
            let path = directory.join(&name);
            let (key, _) = sealed::open(&unlocked.identity, &content, &path)?;
            if unlocked.name(&key) + ENTRY != name {
                return Err(sealed::damaged(&path));
            }
            keys.push(key);
        }
        keys.sort();
        Ok(keys)
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        let directory = PrivateDirectory::create(&self.path)?;
        let name = self.name_of(&directory, key)?;
        directory.lock(&format!("{name}.lock"), KEY_LOCK_TIMEOUT).map(StoreGuard::new)
    }
}

/// The names of the files with entries.
fn entry_names(directory: &PrivateDirectory) -> Result<Vec<String>, StoreError> {
    let mut names = directory.names()?;
    names.retain(|name| name.ends_with(ENTRY) && name != IDENTITY);
    Ok(names)
}

/// Refuses a key or value that does not fit, and a key that would end in the middle of its line.
fn check_size(key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
    let id = key.id();
    if id.len() > MAX_KEY_ID_BYTES || id.contains(char::is_control) {
        let message = "the name of a secret has control characters or more than 1,000 bytes";
        return Err(StoreError::new(message));
    }
    if value.expose().len() > MAX_VALUE_BYTES {
        let message = format!("`{id}` has more than {} KiB", MAX_VALUE_BYTES >> 10);
        return Err(StoreError::new(message));
    }
    Ok(())
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
