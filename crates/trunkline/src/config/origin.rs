//! Where a layer of configuration comes from, what it may read, and why it may not run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A layer of configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Given by the caller at run time.
    Overrides,
    /// Written in an environment variable.
    Variable(Box<str>),
    /// Written in a file.
    File(FileOrigin),
    /// A text without a place, given to [`parse`](super::parse).
    Text,
}

/// A configuration file and how it came to be the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrigin {
    /// Its path.
    pub path: PathBuf,
    /// How it was found.
    pub found: FoundBy,
    /// The folder its relative paths and `${workspaceFolder}` mean.
    pub workspace: PathBuf,
    /// Which files it may refer to.
    pub reach: FileReach,
}

/// Which files `${file:…}` and `envFile` of a configuration file may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileReach {
    /// Those inside of its workspace, links resolved.
    Workspace,
    /// Those, and these files at exactly these places, which have no links in them.
    Listed(Arc<[PathBuf]>),
    /// Any.
    Anywhere,
}

/// A discovered file that keeps its servers from being started (SEC-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentHold {
    /// Its path.
    pub file: PathBuf,
    /// Why.
    pub reason: ConsentHoldReason,
}

/// Why the servers of a discovered file may not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsentHoldReason {
    /// Nobody has consented to it.
    NotTrusted,
    /// It had other content when it was consented to.
    Changed,
    /// Whether it was consented to cannot be found out, for this reason.
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

/// How a file was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The caller named it.
    Asked,
    /// An environment variable named it.
    Variable(Box<str>),
    /// It was found beside or above the working directory.
    Discovered,
    /// It is where the host looks last: the user's own file.
    Fallback,
}

impl Origin {
    /// The folder that relative paths of this layer mean; empty for the working directory.
    pub fn workspace(&self) -> &Path {
        match self {
            Self::File(file) => &file.workspace,
            _ => Path::new(""),
        }
    }

    /// The folder that `${file:…}` is relative to.
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
