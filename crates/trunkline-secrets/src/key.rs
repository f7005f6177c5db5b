//! Keys that protect the encrypted files: a passphrase, or an age identity in a file or variable.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use age::secrecy::{ExposeSecret as _, SecretString};
use age::{DecryptError, Decryptor, scrypt, x25519};
use trunkline::config::Secret;
use trunkline::secrets::StoreError;

use crate::private::{create_folders, read_private, replace_private};
use crate::sealed;

/// Largest key file: a handful of identities with comments.
const MAX_KEY_BYTES: usize = 16 << 10;

/// Work of deriving a key from a passphrase, as a power of two: 128 MiB and less than half a second. It is
/// spent once per process. OWASP recommends at least this much.
const PASSPHRASE_WORK: u8 = 17;

/// Most work that a file may require, so that a forged one cannot occupy the machine.
const MAX_PASSPHRASE_WORK: u8 = 20;

/// The key of a file store, and where it comes from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// A passphrase, and its origin for messages: `the variable …`.
    Passphrase(Secret, String),
    /// The text of an age identity, and its origin for messages.
    Identity(Secret, String),
    /// A file with an age identity, which has to exist.
    File(PathBuf),
    /// A file with an age identity, which is generated with the store.
    GeneratedFile(PathBuf),
}

impl KeySource {
    /// Names the key in messages.
    pub fn description(&self) -> String {
        match self {
            Self::Passphrase(_, origin) => format!("the passphrase in {origin}"),
            Self::Identity(_, origin) => format!("the key in {origin}"),
            Self::File(path) => format!("the key file {}", path.display()),
            Self::GeneratedFile(path) => format!("the generated key file {}", path.display()),
        }
    }

    /// Generates the key file, if this key is one and does not exist.
    pub(crate) fn generate_if_missing(&self) -> Result<(), StoreError> {
        let Self::GeneratedFile(path) = self else { return Ok(()) };
        if read_private(path, MAX_KEY_BYTES)?.is_some() {
            return Ok(());
        }
        let identity = x25519::Identity::generate();
        let text = format!(
            "# The key of the secrets of Trunkline: without it they cannot be read.\n{}\n",
            identity.to_string().expose_secret()
        );
        let created = path.parent().map_or(Ok(()), create_folders);
        created.map_err(|error| {
            StoreError::new(format!("cannot create the directory of {}: {error}", path.display()))
        })?;
        replace_private(path, text.as_bytes())
    }

    /// Encrypts the identity of a store with this key.
    pub(crate) fn wrap(&self, content: &[u8]) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Passphrase(passphrase, origin) => {
                if passphrase.expose().is_empty() {
                    return Err(StoreError::new(format!("the passphrase in {origin} is empty")));
                }
                let mut recipient = scrypt::Recipient::new(secret_string(passphrase.expose()));
                recipient.set_work_factor(PASSPHRASE_WORK);
                sealed::encrypt(&recipient, content)
            }
            _ => sealed::encrypt(&self.identity()?.to_public(), content),
        }
    }

    /// Decrypts the identity of a store, which is in the file at `path`.
    pub(crate) fn unwrap(&self, content: &[u8], path: &Path) -> Result<Vec<u8>, StoreError> {
        let (key, shown) = (self.description(), path.display());
        let is_passphrase = matches!(self, Self::Passphrase(..));
        let hint = "restore it from a backup: no entry of the store can be read without it";
        let damaged = || sealed::damaged(path).with_hint(hint);
        if Decryptor::new(content).map_err(|_| damaged())?.is_scrypt() != is_passphrase {
            let other = if is_passphrase { "a key file" } else { "a passphrase" };
            let message = format!("{shown} is encrypted with {other}, and not with {key}");
            return Err(StoreError::new(message).with_hint(KEY_HINT));
        }
        let decrypted = match self {
            Self::Passphrase(passphrase, _) => {
                let mut identity = scrypt::Identity::new(secret_string(passphrase.expose()));
                identity.set_max_work_factor(MAX_PASSPHRASE_WORK);
                age::decrypt(&identity, content)
            }
            _ => age::decrypt(&self.identity()?, content),
        };
        decrypted.map_err(|error| match error {
            DecryptError::DecryptionFailed
            | DecryptError::KeyDecryptionFailed
            | DecryptError::NoMatchingKeys => {
                let what = if is_passphrase { "wrong" } else { "not the one of this store" };
                StoreError::new(format!("{key} is {what}: {shown} cannot be decrypted with it"))
                    .with_hint(KEY_HINT)
            }
            DecryptError::ExcessiveWork { .. } => StoreError::new(format!(
                "{shown} requires too much work to decrypt, and was not written by trunkline"
            )),
            _ => damaged(),
        })
    }

    /// The age identity of a key that is not a passphrase.
    fn identity(&self) -> Result<x25519::Identity, StoreError> {
        let text = match self {
            Self::File(path) | Self::GeneratedFile(path) => key_file(path)?,
            Self::Identity(text, _) | Self::Passphrase(text, _) => text.clone(),
        };
        let mut lines = text.expose().lines().map(str::trim);
        let key = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        key.and_then(|line| x25519::Identity::from_str(line).ok()).ok_or_else(|| {
            let message = format!("{} is not an age identity", self.description());
            let hint = "it has to contain a line `AGE-SECRET-KEY-1…`, as `age-keygen` writes it";
            StoreError::new(message).with_hint(hint)
        })
    }
}

/// Advice for a key that does not fit.
const KEY_HINT: &str = "set TRUNKLINE_SECRETS_PASSPHRASE, TRUNKLINE_SECRETS_KEY or \
                        TRUNKLINE_SECRETS_KEY_FILE to the key that the store was created with";

fn key_file(path: &Path) -> Result<Secret, StoreError> {
    let shown = path.display();
    let content = read_private(path, MAX_KEY_BYTES)?.ok_or_else(|| {
        let message = format!("the key file {shown} does not exist");
        StoreError::new(message).with_hint("restore it, or write a new one with `age-keygen -o`")
    })?;
    let text = String::from_utf8(content);
    text.map(Secret::new).map_err(|_| StoreError::new(format!("{shown} is not a text file")))
}

pub(crate) fn secret_string(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> KeySource {
        let text = x25519::Identity::generate().to_string();
        KeySource::Identity(Secret::new(text.expose_secret()), "a test".to_owned())
    }

    fn passphrase(text: &str) -> KeySource {
        KeySource::Passphrase(Secret::new(text), "a test".to_owned())
    }

    fn path() -> &'static Path {
        Path::new("/store/identity.age")
    }

    #[test]
    fn only_the_same_key_unwraps() {
        let key = identity();
        let wrapped = key.wrap(b"content").unwrap();
        assert_eq!(key.unwrap(&wrapped, path()).unwrap(), b"content");
        let error = identity().unwrap(&wrapped, path()).unwrap_err().to_string();
        let expected = "the key in a test is not the one of this store: /store/identity.age cannot be decrypted with it";
        assert_eq!(error, expected);
        let error = passphrase("x").unwrap(&wrapped, path()).unwrap_err().to_string();
        let expected = "/store/identity.age is encrypted with a key file, and not with the passphrase in a test";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_wrong_passphrase_is_named() {
        let wrapped = passphrase("correct horse").wrap(b"content").unwrap();
        assert_eq!(passphrase("correct horse").unwrap(&wrapped, path()).unwrap(), b"content");
        let error = passphrase("battery staple").unwrap(&wrapped, path()).unwrap_err().to_string();
        let expected =
            "the passphrase in a test is wrong: /store/identity.age cannot be decrypted with it";
        assert_eq!(error, expected);
        let error = identity().unwrap(&wrapped, path()).unwrap_err().to_string();
        assert!(error.contains("is encrypted with a passphrase"), "{error}");
        assert!(passphrase("").wrap(b"content").is_err());
    }

    #[test]
    fn texts_other_than_an_identity_are_refused() {
        for text in ["", "# only a comment\n", "age1qqqqq", "AGE-SECRET-KEY-1TOOSHORT"] {
            let key = KeySource::Identity(Secret::new(text), "a test".to_owned());
            let error = key.wrap(b"content").unwrap_err().to_string();
            assert_eq!(error, "the key in a test is not an age identity", "{text}");
        }
    }

    #[test]
    fn keys_are_not_printed() {
        let printed = format!("{:?}", passphrase("hunter2"));
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}
