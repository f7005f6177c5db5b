//! Opens the state file for one transaction. Other processes wait meanwhile.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::{Builder, Database, DatabaseError, ReadOnlyDatabase};

/// How long to wait for other processes; each of them takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Memory for pages. The state has a few kilobytes.
const CACHE_BYTES: usize = 1024 * 1024;

/// A database that is open to be read.
pub(crate) enum OpenState {
    /// Nothing is written, so that others see no change of the file.
    ReadOnly(ReadOnlyDatabase),
    /// It was not closed when a process or the machine ended, and had to be repaired.
    Repaired(Database),
}

/// Opens the database to read it; `None` if there is none yet.
pub(crate) fn open_to_read(path: &Path) -> Result<Option<OpenState>, redb::Error> {
    if !is_there(path)? {
        return Ok(None);
    }
    let builder = builder();
    match waiting(|| builder.open_read_only(path)) {
        Ok(database) => Ok(Some(OpenState::ReadOnly(database))),
        Err(DatabaseError::RepairAborted) => {
            Ok(Some(OpenState::Repaired(waiting(|| builder.open(path))?)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the database to change it, and creates it if there is none.
pub(crate) fn open_to_write(path: &Path) -> Result<Database, redb::Error> {
    if !is_there(path)? {
        create(path)?;
    }
    let builder = builder();
    let mut database = waiting(|| builder.open(path))?;
    // A damaged page must not become a part of the next state.
    if !database.check_integrity()? {
        return Err(damaged("its pages do not fit together"));
    }
    Ok(database)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// The error of a file that is not what was written.
pub(crate) fn damaged(reason: &str) -> redb::Error {
    redb::Error::Corrupted(reason.to_owned())
}

/// Waits while another process has the database open.
fn waiting<T>(open: impl Fn() -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match open() {
            Err(DatabaseError::DatabaseAlreadyOpen) if Instant::now() < patience => sleep(PAUSE),
            opened => return opened,
        }
    }
}

/// Whether there is a file. An empty one was never written here: it has lost its content.
fn is_there(path: &Path) -> Result<bool, redb::Error> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(damaged("it is no file")),
        Ok(metadata) if metadata.len() == 0 => Err(damaged("it is empty")),
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Creates the database under another name first, so that the file is whole as soon as it is there.
fn create(path: &Path) -> Result<(), redb::Error> {
    if let Some(directory) = path.parent() {
        create_directory(directory)?;
    }
    let new = NewFile::beside(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let database = builder().create_file(options.open(&new.0)?)?;
    database.begin_write()?.commit()?;
    drop(database);
    match fs::hard_link(&new.0, path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => Ok(linked?),
    }
}

/// A file that is removed at the end.
struct NewFile(PathBuf);

impl NewFile {
    fn beside(path: &Path) -> Self {
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        Self(path.with_extension(format!("new-{}-{number}", std::process::id())))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
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
