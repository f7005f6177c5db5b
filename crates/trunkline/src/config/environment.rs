//! Interface to the embedding host: variables, files, and consent to start servers of a discovered
//! file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use ring::digest;

use super::identity::FileIdentity;
use super::model::{ConsentHoldReason, FileReach};
use crate::hexadecimal::hexadecimal;

/// Access to variables and files for loading, implemented by the embedding host.
pub trait Environment {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// The content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The content of a file that was discovered, not named. A host on a multi-user machine refuses
    /// files that other users can change, with [`FileRefusal::Unsafe`].
    fn read_discovered(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path)
    }

    /// Whether the servers of a discovered file may be started. Called only if
    /// [`LoadOptions::discovered`](super::LoadOptions::discovered) requires it. The default is no.
    fn consent(&self, _file: &DiscoveredFile) -> Consent {
        Consent::Withheld(ConsentHoldReason::NotTrusted)
    }

    /// Whether a discovered path is safe to read: reading a pipe would never end.
    fn is_regular_file(&self, _path: &Path) -> bool {
        true
    }

    /// The identity of a file that was read, by which another process recognizes it under another
    /// path (CON-16). The default queries the file system.
    fn file_identity(&self, path: &Path) -> Option<FileIdentity> {
        FileIdentity::of(path)
    }

    /// The files in a directory, for agents that are defined one to a file.
    fn files_in(&self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A configuration file discovered in or above the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredFile {
    /// Its path.
    pub path: PathBuf,
    /// The directory that contains it.
    pub workspace: PathBuf,
    /// The digest of exactly the bytes that were loaded.
    pub digest: ContentDigest,
}

/// Whether the servers of a discovered file may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// They may be started; this is the reach of `${file:…}` and `envFile`.
    Given(FileReach),
    /// They may not, for this reason.
    Withheld(ConsentHoldReason),
}

/// The SHA-256 digest of the content of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// Computes the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut content = [0; 32];
        content.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        Self(content)
    }
}

impl fmt::Display for ContentDigest {
    /// Formats as hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reason why a host refuses to read a file, as the inner error of an [`io::Error`]. Unlike other
/// read errors it contains none of the content, so messages may show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// Other users can change it, for this reason, such as a world-writable parent directory.
    Unsafe(String),
    /// It is outside the directory that a discovered configuration may read from.
    Outside,
    /// It is a pipe, a device or a socket, which may never end.
    NotRegular,
    /// It exceeds the size limit.
    TooLarge,
    /// The file system did not respond in time.
    NoAnswer,
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsafe(reason) => reason,
            Self::Outside => "it is outside of the folder of its configuration",
            Self::NotRegular => "it is not a regular file",
            Self::TooLarge => "it is too large",
            Self::NoAnswer => "the file system does not answer",
        })
    }
}

impl std::error::Error for FileRefusal {}

impl From<FileRefusal> for io::Error {
    fn from(refusal: FileRefusal) -> Self {
        let kind = match refusal {
            FileRefusal::Unsafe(_) | FileRefusal::Outside => io::ErrorKind::PermissionDenied,
            FileRefusal::NotRegular => io::ErrorKind::InvalidInput,
            FileRefusal::TooLarge => io::ErrorKind::FileTooLarge,
            FileRefusal::NoAnswer => io::ErrorKind::TimedOut,
        };
        Self::new(kind, refusal)
    }
}

impl FileRefusal {
    /// Extracts the refusal from an error, if it contains one.
    pub(crate) fn within(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}
