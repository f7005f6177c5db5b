//! Directories and files that only their owner can read. Files are replaced atomically.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::secrets::StoreError;

/// The end of the name of a file that is being written.
const TEMPORARY: &str = ".tmp";

/// The lock of all writers in a directory.
const WRITE_LOCK: &str = "store.lock";

/// Time that a writer waits for other writers, each of which takes milliseconds.
const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two attempts to lock a file. `File::lock` cannot be given up.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);

/// A directory that only its owner can read.
#[derive(Clone, Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
}

/// The right to write in a directory, until it is dropped.
pub(crate) struct WriterLock {
    _file: File,
}

impl PrivateDirectory {
    /// The directory at a path, if it exists.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let Some(metadata) =
            if_exists(fs::metadata(path)).map_err(|it| failed("read", path, &it))?
        else {
            return Ok(None);
        };
        if !metadata.is_dir() {
            return Err(StoreError::new(format!("{} is not a directory", path.display())));
        }
        require_private(&metadata, path, "700")?;
        Ok(Some(Self { path: path.to_owned() }))
    }

    /// The directory at a path, which is created if it does not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        create_folders(path).map_err(|error| failed("create", path, &error))?;
        let missing = || StoreError::new(format!("{} has disappeared", path.display()));
        Self::open(path)?.ok_or_else(missing)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
        let names = fs::read_dir(&self.path).and_then(|entries| entries.map(name).collect());
        let names: Vec<_> = names.map_err(|error| failed("read", &self.path, &error))?;
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// The content of a file with at most `max` bytes, if it exists.
    pub(crate) fn read(&self, name: &str, max: usize) -> Result<Option<Vec<u8>>, StoreError> {
        read_private(&self.join(name), max)
    }

    /// Replaces a file. It has the old or the new content, also if the process is killed.
    pub(crate) fn replace(
        &self,
        _: &WriterLock,
        name: &str,
        content: &[u8],
    ) -> Result<(), StoreError> {
        self.remove_temporary_files()?;
        replace_private(&self.join(name), content)
    }

    /// Waits until no other process writes in this directory.
    pub(crate) fn lock_writers(&self) -> Result<WriterLock, StoreError> {
        self.lock(WRITE_LOCK, WRITE_LOCK_TIMEOUT).map(|file| WriterLock { _file: file })
    }

    /// Removes a file. Returns whether it existed.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.join(name);
        let removed = if_exists(fs::remove_file(&path)).and_then(|removed| {
            sync_directory(&self.path)?;
            Ok(removed.is_some())
        });
        removed.map_err(|error| failed("remove", &path, &error))
    }

    /// Waits for the exclusive lock of a file, which is created if it does not exist and never removed:
    /// a lock on a removed file excludes no other process.
    pub(crate) fn lock(&self, name: &str, timeout: Duration) -> Result<File, StoreError> {
        let path = self.join(name);
        let file = open_lock(&path).map_err(|error| failed("open", &path, &error))?;
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(LOCK_RETRY_DELAY);
                }
                Err(TryLockError::WouldBlock) => {
                    let (path, waited) = (path.display(), timeout.as_secs());
                    return Err(StoreError::new(format!(
                        "another process has held the lock {path} for {waited} s"
                    ))
                    .with_hint("look for a trunkline process that does not respond, and end it"));
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
            }
        }
    }

    /// Removes files that killed writers left behind.
    fn remove_temporary_files(&self) -> Result<(), StoreError> {
        for name in self.names()?.iter().filter(|name| name.ends_with(TEMPORARY)) {
            self.remove(name)?;
        }
        Ok(())
    }
}

/// Reads a file with at most `max` bytes that only its owner can read.
pub(crate) fn read_private(path: &Path, max: usize) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(file) = if_exists(open_to_read(path)).map_err(|it| failed("read", path, &it))? else {
        return Ok(None);
    };
    let metadata = file.metadata().map_err(|error| failed("read", path, &error))?;
    if !metadata.is_file() {
        return Err(StoreError::new(format!("{} is not a regular file", path.display())));
    }
    require_private(&metadata, path, "600")?;
    let mut content = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut content).map_err(|error| failed("read", path, &error))?;
    if content.len() > max {
        let message = format!("{} is damaged: it has more than {max} bytes", path.display());
        return Err(StoreError::new(message));
    }
    Ok(Some(content))
}

/// Writes a file that only its owner can read: to a temporary file, which then takes its place.
pub(crate) fn replace_private(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    let temporary = PathBuf::from(temporary);
    let written = write_new(&temporary, content)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync_directory(path.parent().unwrap_or(Path::new("."))));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed("write", path, &error)
    })
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    if_exists(fs::remove_file(path))?;
    let mut options = OpenOptions::new();
    let mut file = owner_only(options.write(true).create_new(true)).open(path)?;
    restrict(&file)?;
    file.write_all(content)?;
    file.sync_all()
}

fn open_to_read(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // A pipe must not block, and a link must not lead elsewhere.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.read(true).open(path)
}

fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = owner_only(options.write(true).create(true).truncate(false)).open(path)?;
    restrict(&file)?;
    Ok(file)
}

fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a directory and its missing parents with mode 0700, whatever the umask is.
pub(crate) fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        create_folders(parent)?;
    }
    match create_folder(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

#[cfg(unix)]
fn create_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Sets mode 0600 for files that are created with these options.
fn owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Sets mode 0600, of which the umask may have removed a part.
#[cfg(unix)]
fn restrict(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn restrict(_: &File) -> io::Result<()> {
    Ok(())
}

/// Makes a rename durable.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Refuses a file or directory that another user owns or can read.
#[cfg(unix)]
fn require_private(metadata: &Metadata, path: &Path, mode: &str) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;
    let shown = path.display();
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("{shown} belongs to another user and is not used");
        return Err(StoreError::new(message).with_hint("use a path that belongs to you"));
    }
    if metadata.mode() & 0o077 != 0 {
        let message = format!("{shown} is open to other users and is not used");
        return Err(StoreError::new(message).with_hint(format!("run `chmod {mode} {shown}`")));
    }
    Ok(())
}

/// No permissions are checked on Windows: the directories of a user are closed to others there.
#[cfg(not(unix))]
fn require_private(_: &Metadata, _: &Path, _: &str) -> Result<(), StoreError> {
    Ok(())
}

/// An error of the file system. Its text names no content.
fn failed(action: &str, path: &Path, error: &io::Error) -> StoreError {
    let path = path.display();
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    if action == "write" && full.contains(&error.kind()) {
        let message = format!("cannot write {path}: {error}; the previous value is kept");
        return StoreError::new(message).with_hint("free some space and try again");
    }
    StoreError::new(format!("cannot {action} {path}: {error}"))
}

#[cfg(test)]
pub(crate) mod tests;
