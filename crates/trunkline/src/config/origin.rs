//! Origins of configuration layers, the files they may read, and consent holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The origin of a configuration layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Given by the caller at run time.
    Overrides,
    /// The value of an environment variable.
    Variable(Box<str>),
    /// A file.
    File(FileOrigin),
    /// Text without a path, given to [`parse`](super::parse).
    Text,
}

/// A configuration file, and how it was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrigin {
    /// Its path.
    pub path: PathBuf,
    /// How it was selected.
    pub found: FoundBy,
    /// The directory of its relative paths and `${workspaceFolder}`.
    pub workspace: PathBuf,
    /// Files that it may refer to.
    pub reach: FileReach,
}

/// Files that `${file:…}` and `envFile` of a configuration file may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileReach {
    /// Files inside its workspace, after resolving links.
    Workspace,
    /// Those, and these files at exactly these places, which have no links in them.
    Listed(Arc<[PathBuf]>),
    /// Any file.
    Anywhere,
}

/// A discovered file whose servers may not be started (SEC-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentHold {
    /// Its path.
    pub file: PathBuf,
    /// The reason.
    pub reason: ConsentHoldReason,
}

/// Reason why the servers of a discovered file may not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsentHoldReason {
    /// The file is not trusted.
    NotTrusted,
    /// The file changed after it was trusted.
    Changed,
    /// The trust decision cannot be determined, for this reason.
    Unknown(Box<str>),
}

impl std::fmt::Display for ConsentHoldReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotTrusted => f.write_str("was found here and is not trusted yet"),
            Self::Changed => f.write_str("has changed since it was trusted"),
            Self::Unknown(reason) => write!(f, "may be trusted or not: {reason}"),
        }
    }
}

impl std::fmt::Display for ConsentHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.file.display(), self.reason)
    }
}

/// How a file was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The caller named it.
    Asked,
    /// An environment variable named it.
    Variable(Box<str>),
    /// It was discovered in or above the working directory.
    Discovered,
    /// It is the user's own file, used when there is no other.
    Fallback,
}

impl Origin {
    /// The directory of relative paths in this layer; empty for the working directory.
    pub fn workspace(&self) -> &Path {
        match self {
            Self::File(file) => &file.workspace,
            _ => Path::new(""),
        }
    }

    /// The directory that `${file:…}` is relative to.
    pub fn folder(&self) -> &Path {
        match self {
            Self::File(file) => file.path.parent().unwrap_or(Path::new("")),
            _ => Path::new(""),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Overrides => f.write_str("run-time overrides"),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::Text => f.write_str("the given text"),
            Self::File(file) => {
                write!(f, "{} ", file.path.display())?;
                match &file.found {
                    FoundBy::Asked => f.write_str("(given)"),
                    FoundBy::Variable(name) => write!(f, "(from {name})"),
                    FoundBy::Discovered => f.write_str("(discovered)"),
                    FoundBy::Fallback => f.write_str("(used when there is no other)"),
                }
            }
        }
    }
}
