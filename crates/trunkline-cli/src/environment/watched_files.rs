//! Records the files and directories that were accessed to load something, to detect changes.
//!
//! They are polled: notifications of the system miss changes on network file systems and in containers,
//! and files that editors replace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{fs, io};

use trunkline::config::{Consent, DiscoveredFile, Environment};

use super::ProcessEnv;
use super::file_timeout::answered;

/// Modification time and size of a file or directory; `None` if it does not exist.
type FileStamp = Option<(SystemTime, u64)>;

/// All paths that were accessed, whether they existed or not: a file that is created later may take
/// precedence.
pub(crate) struct WatchedFiles {
    environment: ProcessEnv,
    stamps: Mutex<BTreeMap<PathBuf, FileStamp>>,
}

impl WatchedFiles {
    pub(crate) fn with_environment(environment: &ProcessEnv) -> Self {
        Self { environment: environment.clone(), stamps: Mutex::default() }
    }

    fn stamps(&self) -> MutexGuard<'_, BTreeMap<PathBuf, FileStamp>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the state of a path before it is accessed, so that a change meanwhile is detected
    /// later.
    pub(crate) fn note(&self, path: &Path) {
        let mut stamps = self.stamps();
        stamps.entry(path.to_owned()).or_insert_with(|| stamp(path));
    }

    /// The paths that have changed. Their new state is recorded.
    pub(crate) async fn changed(&self) -> io::Result<Vec<PathBuf>> {
        let paths: Vec<PathBuf> = self.stamps().keys().cloned().collect();
        let look = move || paths.into_iter().map(|path| (stamp(&path), path)).collect::<Vec<_>>();
        let now = answered(look).await?;
        let mut changed = Vec::new();
        let mut stamps = self.stamps();
        for (now, path) in now {
            if let Some(known) = stamps.get_mut(&path).filter(|known| **known != now) {
                *known = now;
                changed.push(path);
            }
        }
        Ok(changed)
    }
}

fn stamp(path: &Path) -> FileStamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()))
}

impl Environment for WatchedFiles {
    fn variable(&self, name: &str) -> Option<OsString> {
        Environment::variable(&self.environment, name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.note(path);
        self.environment.read(path)
    }

    fn read_discovered(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.note(path);
        self.environment.read_discovered(path)
    }

    fn consent(&self, file: &DiscoveredFile) -> Consent {
        if let Some(store) = self.environment.trust_file() {
            self.note(&store);
        }
        self.environment.consent(file)
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        self.note(path);
        self.environment.is_regular_file(path)
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.note(folder);
        self.environment.files_in(folder)
    }
}
