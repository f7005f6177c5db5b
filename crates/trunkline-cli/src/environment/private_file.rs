//! A file that only its owner may read, replaced atomically.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use trunkline::env::files;

/// A file that only its owner may read.
pub(crate) struct PrivateFile {
    path: PathBuf,
}

/// Locks the file against changes by other processes.
pub(crate) struct FileLock {
    _lock: File,
}

impl PrivateFile {
    /// The file at a path, with links resolved.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path: fs::canonicalize(&path).unwrap_or(path) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The content; `None` if the file does not exist.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        if_there(files::read(&self.path))
    }

    /// The same, but fails if other users can change the file.
    pub(super) fn read_safely(&self) -> io::Result<Option<Vec<u8>>> {
        if_there(files::read_safely(&self.path))
    }

    /// Waits for an exclusive lock. Without it, one of two concurrent changes would be lost: a
    /// removed token would come back.
    pub(crate) fn hold(&self) -> io::Result<FileLock> {
        if let Some(folder) = self.path.parent().filter(|it| !it.as_os_str().is_empty()) {
            create_private_folders(folder)?;
        }
        let mut options = OpenOptions::new();
        let lock = private(options.write(true).create(true)).open(self.beside(".lock"))?;
        lock.lock()?;
        Ok(FileLock { _lock: lock })
    }

    /// Replaces the content atomically: a concurrent reader sees the old or the new content.
    pub(crate) fn replace(&self, _: &FileLock, content: &str) -> io::Result<()> {
        let new = self.beside(".new");
        // A file left by an earlier run may be readable by other users.
        let _ = fs::remove_file(&new);
        let written = write_new(&new, content).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Whether other users can read or change it, as far as the permissions show.
    pub(crate) fn is_open_to_others(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let metadata = fs::metadata(&self.path);
            metadata.is_ok_and(|it| it.permissions().mode() & 0o077 != 0)
        }
        #[cfg(not(unix))]
        false
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(end);
        path.into()
    }
}

fn if_there(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_new(path: &Path, content: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = private(options.write(true).create_new(true)).open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

/// Creates a directory and its missing parents with mode 0700, whatever the umask is.
fn create_private_folders(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Sets mode 0600 for files that are created with these options.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}
