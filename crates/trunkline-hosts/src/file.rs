//! Safe replacement of a configuration file that other programs and people write too.
//!
//! The new text goes to a temporary file in the same directory, which then takes the place of the old file: readers
//! see the old or the new text, never a part. A file that has changed since it was read is left alone.
//!
//! Two things are not kept: hard links to the old file still have its text, and access control lists beyond the
//! mode bits are those of a new file.

mod error;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use error::{FileError, FileErrorKind};

use error::FileAction;

/// Largest file that is read. `~/.claude.json` holds histories and grows to megabytes; nothing else comes close.
const MAX_CONFIG_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The end of the name of a backup.
const BACKUP_SUFFIX: &str = ".trunkline-backup";

/// Most backups of one file.
const MAX_BACKUPS: usize = 1_000;

/// Most symbolic links in a row, as in Linux.
const MAX_LINKS: usize = 40;

/// The number in the name of the next temporary file, so that threads do not write to the same one.
static NEXT_TEMPORARY_FILE: AtomicU64 = AtomicU64::new(0);

/// A configuration file as it was when it was read.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    /// The file that the path leads to over symbolic links.
    target: PathBuf,
    /// `None` for a file that does not exist.
    content: Option<String>,
}

impl ConfigFile {
    /// Reads a file. One that does not exist has no text, and is created by [`ConfigFile::replace`].
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, FileError> {
        let path = path.into();
        let target = follow_links(&path)?;
        let content = read_text(&target)?;
        Ok(Self { path, target, content })
    }

    /// The path that the file was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that is replaced: another than the path if that is a symbolic link.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether the file existed.
    pub fn exists(&self) -> bool {
        self.content.is_some()
    }

    /// The text, empty for a file that did not exist.
    pub fn text(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }

    /// Writes a new text, unless the file has changed since it was read. Returns the backup of the old text, if
    /// there was one. The backup is beside the path that was read, and never replaces an older one.
    pub fn replace(&self, text: &str) -> Result<Option<PathBuf>, FileError> {
        self.require_unchanged()?;
        let parent = parent(&self.target);
        if !self.exists() {
            let created = fs::create_dir_all(parent);
            created.map_err(|error| FileError::io(FileAction::CreateFolder, parent, error))?;
        }
        let old = match &self.content {
            Some(_) => Some(self.metadata()?),
            None => None,
        };
        let backup = match (&self.content, &old) {
            (Some(content), Some(old)) => Some(self.back_up(content, old)?),
            _ => None,
        };
        // Other processes of this program wait, and then see that the file has changed.
        let _lock = lock_directory(parent);
        let temporary = TemporaryFile::create(&self.target, text, old.as_ref())?;
        // As late as possible: a host may write its file at any time.
        self.require_unchanged()?;
        temporary.rename(&self.target, self.exists())?;
        Ok(backup)
    }

    fn metadata(&self) -> Result<Metadata, FileError> {
        fs::metadata(&self.target)
            .map_err(|error| FileError::io(FileAction::Read, &self.target, error))
    }

    fn require_unchanged(&self) -> Result<(), FileError> {
        let is_same =
            follow_links(&self.path)? == self.target && read_text(&self.target)? == self.content;
        if is_same { Ok(()) } else { Err(FileError::new(FileErrorKind::Changed, &self.path)) }
    }

    /// Writes the old text beside the file, or finds a backup that has it already.
    fn back_up(&self, content: &str, old: &Metadata) -> Result<PathBuf, FileError> {
        for number in 0..MAX_BACKUPS {
            let path = backup_path(&self.path, number);
            match write_new(&path, content, Some(old)) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if fs::read(&path).is_ok_and(|bytes| bytes == content.as_bytes()) {
                        return Ok(path);
                    }
                }
                Err(error) => return Err(FileError::io(FileAction::Write, &path, error)),
            }
        }
        let error = io::Error::other(format!("there are {MAX_BACKUPS} backups already"));
        Err(FileError::io(FileAction::Write, &backup_path(&self.path, 0), error))
    }
}

fn backup_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP_SUFFIX);
    if number > 0 {
        name.push(format!(".{number}"));
    }
    name.into()
}

/// The directory of a file.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file at the end of symbolic links, whether it exists or not.
fn follow_links(path: &Path) -> Result<PathBuf, FileError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = parent(&target).join(next),
            // Not a link, or nothing there.
            Err(error)
                if [ErrorKind::InvalidInput, ErrorKind::NotFound].contains(&error.kind()) =>
            {
                return Ok(target);
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(FileError::io(FileAction::Read, path, error));
            }
            // Some file systems of Windows know no links.
            Err(_) => return Ok(target),
        }
    }
    Err(FileError::io(FileAction::Read, path, io::Error::other("too many symbolic links")))
}

/// The text of a file, if it exists.
fn read_text(path: &Path) -> Result<Option<String>, FileError> {
    let failed = |error| FileError::io(FileAction::Read, path, error);
    // A pipe blocks when it is opened, so that its kind is checked first.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() {
        return Err(FileError::new(FileErrorKind::NotAFile, path));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_CONFIG_FILE_BYTES {
        return Err(FileError::new(FileErrorKind::TooLarge(MAX_CONFIG_FILE_BYTES), path));
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| FileError::new(FileErrorKind::NotText, path))
}

/// A complete new file beside the one that it will replace. It is removed if it does not.
struct TemporaryFile {
    path: PathBuf,
    is_renamed: bool,
}

impl TemporaryFile {
    fn create(target: &Path, text: &str, old: Option<&Metadata>) -> Result<Self, FileError> {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        let number = NEXT_TEMPORARY_FILE.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".trunkline-{}-{number}.tmp", std::process::id()));
        let path = parent(target).join(name);
        // A process with the same number may have been killed while it wrote.
        let _ = fs::remove_file(&path);
        let temporary = Self { path, is_renamed: false };
        write_new(&temporary.path, text, old)
            .map_err(|error| FileError::io(FileAction::Write, target, error))?;
        Ok(temporary)
    }

    /// Takes the place of the target, which must not have appeared meanwhile if it did not exist.
    fn rename(mut self, target: &Path, may_replace: bool) -> Result<(), FileError> {
        let renamed = if may_replace {
            fs::rename(&self.path, target)
        } else {
            // Unlike a rename, a link fails if there is a file already.
            fs::hard_link(&self.path, target).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Err(error),
                _ => fs::rename(&self.path, target),
            })
        };
        match renamed {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(FileError::new(FileErrorKind::Changed, target));
            }
            Err(error) => return Err(FileError::io(FileAction::Write, target, error)),
            Ok(()) => self.is_renamed = may_replace,
        }
        sync_directory(parent(target))
            .map_err(|error| FileError::io(FileAction::Write, target, error))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file that must not exist, with the mode and the owner of another.
fn write_new(path: &Path, text: &str, like: Option<&Metadata>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Only for the owner, unless the other file has another mode: the text can have secrets.
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| {
        if let Some(like) = like {
            copy_access(&file, like)?;
        }
        file.sync_all()
    });
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Gives a file the owner, the group and the mode of another.
#[cfg(unix)]
fn copy_access(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        fchown(file, Some(like.uid()), Some(like.gid())).map_err(|error| {
            let message = format!("the owner and group of the file cannot be kept: {error}");
            io::Error::new(error.kind(), message)
        })?;
    }
    // After the owner, whose change clears mode bits.
    file.set_permissions(like.permissions())
}

/// Permissions on Windows come from the directory. A read-only file stays one.
#[cfg(not(unix))]
fn copy_access(file: &File, like: &Metadata) -> io::Result<()> {
    file.set_permissions(like.permissions())
}

/// Holds the lock of a directory, if its file system has locks. It ends with the file.
#[cfg(unix)]
fn lock_directory(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    directory.lock().is_ok().then_some(directory)
}

#[cfg(not(unix))]
fn lock_directory(_: &Path) -> Option<File> {
    None
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
