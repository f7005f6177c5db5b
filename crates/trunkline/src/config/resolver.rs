//! The interface by which an embedding host supplies the values of references.

use std::io;
use std::path::{Path, PathBuf};

use super::secret::Secret;
use super::template::SecretPlace;
use crate::error::{Error, ErrorKind};

/// Supplies the values of references, from the secret storage of an embedding host.
pub trait Resolver {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<Secret>;

    /// The content of a file.
    fn file(&self, path: &Path) -> io::Result<Secret>;

    /// The content of a file that has to be inside of a folder, once links are resolved, or to resolve to
    /// exactly one of the listed places, for a configuration that may read no others;
    /// [`FileRefusal::Outside`](super::FileRefusal::Outside) is the error for one that does not. The default reads none, because only the
    /// host knows its links.
    fn file_within(&self, _folder: &Path, _listed: &[PathBuf], _path: &Path) -> io::Result<Secret> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The user's value for an input.
    fn input(&self, _id: &str) -> Option<Secret> {
        None
    }

    /// The value of a secret by its name; `None` if there is none. The default is an error, because only the
    /// host knows its store.
    fn secret(&self, _place: SecretPlace, _name: &str) -> Result<Option<Secret>, Error> {
        Err(Error::new(ErrorKind::UnreadableSecret, "this host has no store for secrets"))
    }

    /// A hint for the error message, how to provide a missing secret.
    fn secret_hint(&self, _place: SecretPlace, _name: &str) -> Option<String> {
        None
    }

    /// Identifies the store of secrets, for environments with stores of their own: those with the same value
    /// have the same secrets. It contains no secret.
    fn secrets_identity(&self) -> Option<String> {
        None
    }

    /// The user's home directory.
    fn user_home(&self) -> Option<PathBuf> {
        None
    }

    /// The directory used for a configuration that has none.
    fn working_directory(&self) -> PathBuf {
        PathBuf::from(".")
    }

    /// A hint for the error message, how to provide a missing input.
    fn input_hint(&self, _id: &str) -> Option<String> {
        None
    }
}

/// A resolver without values, for configurations without references.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyResolver;

impl Resolver for EmptyResolver {
    fn variable(&self, _: &str) -> Option<Secret> {
        None
    }

    fn file(&self, _: &Path) -> io::Result<Secret> {
        Err(io::ErrorKind::NotFound.into())
    }
}
