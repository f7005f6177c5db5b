//! Encrypted content of one entry: its key, so that a file cannot stand for another one, and its value.

use std::path::Path;

use age::x25519;
use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, StoreError};

/// The first line of a decrypted entry.
const FORMAT: &str = "trunkline secret 1";

/// Encrypts bytes for a recipient.
pub(crate) fn encrypt(
    recipient: &impl age::Recipient,
    content: &[u8],
) -> Result<Vec<u8>, StoreError> {
    age::encrypt(recipient, content)
        .map_err(|error| StoreError::new(format!("an entry cannot be encrypted: {error}")))
}

/// Encrypts an entry.
pub(crate) fn seal(
    recipient: &x25519::Recipient,
    key: &SecretKey,
    value: &Secret,
) -> Result<Vec<u8>, StoreError> {
    encrypt(recipient, format!("{FORMAT}\n{}\n{}", key.id(), value.expose()).as_bytes())
}

/// Decrypts the entry in the file at `path`.
pub(crate) fn open(
    identity: &x25519::Identity,
    content: &[u8],
    path: &Path,
) -> Result<(SecretKey, Secret), StoreError> {
    let text = age::decrypt(identity, content).map_err(|_| damaged(path))?;
    let text = String::from_utf8(text).map_err(|_| damaged(path))?;
    let entry = text.strip_prefix(FORMAT).and_then(|rest| rest.strip_prefix('\n'));
    let entry = entry
        .and_then(|rest| rest.split_once('\n'))
        .and_then(|(id, value)| Some((SecretKey::from_id(id)?, Secret::new(value))));
    entry.ok_or_else(|| damaged(path))
}

/// The error for a file that is not as it was written.
pub(crate) fn damaged(path: &Path) -> StoreError {
    let shown = path.display();
    let message =
        format!("{shown} is damaged: it was cut off, changed, or encrypted with another key");
    StoreError::new(message)
        .with_hint("restore it from a backup, or remove it and set the secret again")
}
