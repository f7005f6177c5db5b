//! Opens the state file for one transaction. Other processes wait meanwhile.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::{Builder, Database, DatabaseError};

/// How long to wait for other processes; each of them takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Memory for pages. The state has a few kilobytes.
const CACHE_BYTES: usize = 1024 * 1024;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read it; a missing file is `None`.
    Read,
    /// To change it; a missing file is created.
    Write,
}

/// Opens the database, and waits while another process has it.
pub(crate) fn open(path: &Path, access: Access) -> Result<Option<Database>, redb::Error> {
    let patience = Instant::now() + PATIENCE;
    loop {
        let Some(file) = open_file(path, access)? else { return Ok(None) };
        match Builder::new().set_cache_size(CACHE_BYTES).create_file(file) {
            Err(DatabaseError::DatabaseAlreadyOpen) if Instant::now() < patience => sleep(PAUSE),
            opened => return Ok(Some(opened?)),
        }
    }
}

fn open_file(path: &Path, access: Access) -> Result<Option<File>, redb::Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if access == Access::Write {
        if let Some(directory) = path.parent() {
            create_directory(directory)?;
        }
        options.create(true).truncate(false);
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        // An empty file was created, and its first change never came.
        Ok(file) if access == Access::Read && file.metadata()?.len() == 0 => Ok(None),
        Ok(file) => Ok(Some(file)),
        Err(error) if is_missing(&error) && access == Access::Read => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn create_directory(directory: &Path) -> io::Result<()> {
    if fs::exists(directory)? {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}
