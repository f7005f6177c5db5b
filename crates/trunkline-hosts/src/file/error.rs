//! Errors of reading and replacing configuration files.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason for which a file was not read or replaced.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The file has changed since it was read.
    Changed,
    /// The path is a directory, a pipe or a device.
    NotAFile,
    /// The file is not UTF-8.
    NotText,
    /// The file has more bytes than this.
    TooLarge(u64),
    /// The file or its directory may not be written or read.
    Forbidden(io::Error),
    /// Another error of the file system.
    Io(io::Error),
}

/// An operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read,
    Write,
    CreateFolder,
}

/// A file that was not read or replaced. It is as it was.
#[derive(Debug)]
pub struct FileError {
    kind: FileErrorKind,
    path: PathBuf,
    action: FileAction,
}

impl FileError {
    pub(crate) fn new(kind: FileErrorKind, path: &Path) -> Self {
        Self { kind, path: path.to_owned(), action: FileAction::Read }
    }

    pub(crate) fn io(action: FileAction, path: &Path, error: io::Error) -> Self {
        let forbidden = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
        let kind = if forbidden.contains(&error.kind()) {
            FileErrorKind::Forbidden(error)
        } else {
            FileErrorKind::Io(error)
        };
        Self { kind, path: path.to_owned(), action }
    }

    /// The reason.
    pub fn kind(&self) -> &FileErrorKind {
        &self.kind
    }

    /// The file or directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Advice for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match (&self.kind, self.action) {
            (FileErrorKind::Changed, _) => Some("try again"),
            (FileErrorKind::NotText, _) => Some("save the file as UTF-8"),
            (FileErrorKind::Forbidden(_), FileAction::Read) => Some("allow your user to read it"),
            (FileErrorKind::Forbidden(_), _) => {
                Some("allow your user to write to its folder: the file is replaced as a whole")
            }
            _ => None,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let action = match self.action {
            FileAction::Read => "read",
            FileAction::Write => "write",
            FileAction::CreateFolder => "create the folder",
        };
        match &self.kind {
            FileErrorKind::Changed => write!(formatter, "{path} has changed since it was read"),
            FileErrorKind::NotAFile => write!(formatter, "{path} is not a regular file"),
            FileErrorKind::NotText => write!(formatter, "{path} is not a UTF-8 text"),
            FileErrorKind::TooLarge(limit) => {
                write!(formatter, "{path} has more than {limit} bytes")
            }
            FileErrorKind::Forbidden(error) | FileErrorKind::Io(error) => {
                write!(formatter, "cannot {action} {path}: {error}")
            }
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            FileErrorKind::Forbidden(error) | FileErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}
