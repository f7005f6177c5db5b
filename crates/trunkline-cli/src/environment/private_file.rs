//! A file that is for its owner's eyes only, and is written whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use trunkline::env::files;

/// A file that only its owner may read.
pub(crate) struct PrivateFile {
    path: PathBuf,
}

/// Keeps others from changing the file meanwhile.
pub(crate) struct FileLock {
    _lock: File,
}

impl PrivateFile {
    /// The file at a path, or what a link there leads to.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path: fs::canonicalize(&path).unwrap_or(path) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it; nothing if it is not there.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        if_there(files::read(&self.path))
    }

    /// The same, unless other users can change it.
    pub(super) fn read_safely(&self) -> io::Result<Option<Vec<u8>>> {
        if_there(files::read_safely(&self.path))
    }

    /// Waits until nobody else changes it, and keeps it so. Without this, of two changes at the same
    /// time one would be lost: a token that was removed would be back.
    pub(crate) fn hold(&self) -> io::Result<FileLock> {
        if let Some(folder) = self.path.parent().filter(|it| !it.as_os_str().is_empty()) {
            create_private_folders(folder)?;
        }
        let mut options = OpenOptions::new();
        let lock = private(options.write(true).create(true)).open(self.beside(".lock"))?;
        lock.lock()?;
        Ok(FileLock { _lock: lock })
    }

    /// Puts something else into it. Whoever reads it meanwhile sees what was there or what is.
    pub(crate) fn replace(&self, _: &FileLock, content: &str) -> io::Result<()> {
        let new = self.beside(".new");
        // One that was left behind may be readable by anybody.
        let _ = fs::remove_file(&new);
        let written = write_new(&new, content).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Whether others than its owner can read or change it, as far as that can be known.
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

/// Makes a folder and those above it that are missing, for their owner only whatever the umask says.
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

/// What is made with these options is for its owner only.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}
