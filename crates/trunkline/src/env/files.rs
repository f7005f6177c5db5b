//! Reads files that any user may have written: regular files only, of a limited size.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::ownership;
use crate::config::{FileRefusal, MAX_SOURCE_BYTES};

/// Reads a file, at most one byte more than [`MAX_SOURCE_BYTES`], which parsers report as too
/// large.
///
/// # Errors
///
/// When it cannot be read, or is not a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    content(open(path)?.0)
}

/// Reads a file that other users cannot change.
///
/// # Errors
///
/// When it cannot be read, is not a regular file, or other users can change it.
pub fn read_safely(path: &Path) -> io::Result<Vec<u8>> {
    let (file, metadata) = open(path)?;
    #[cfg(unix)]
    ownership::check(path, &metadata)?;
    #[cfg(not(unix))]
    let _ = metadata;
    content(file)
}

/// Describes how other users can change a file, if they can.
pub fn unsafety(path: &Path) -> Option<String> {
    #[cfg(unix)]
    return ownership::problem(path, &fs::metadata(path).ok()?);
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Whether a file is inside a directory, with links resolved. For a file that does not exist, its
/// parent directory counts.
pub fn is_within(folder: &Path, path: &Path) -> bool {
    place(path).and_then(|place| Ok(place.starts_with(fs::canonicalize(folder)?))).unwrap_or(false)
}

/// The path of a file with links resolved. For a file that does not exist, those of its parent
/// directory are resolved.
///
/// # Errors
///
/// When the parent directory cannot be resolved either.
pub fn place(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path).or_else(|_| {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::NotFound)?;
        place(parent).map(|parent| parent.join(name))
    })
}

/// The path of a file with links resolved, which must be inside a directory or one of the listed
/// files.
///
/// Listed paths are compared unresolved: they were shown when the user consented, and a link that
/// was created since would turn them into other files.
///
/// # Errors
///
/// When it does not exist, or is outside.
pub fn inside(folder: &Path, listed: &[PathBuf], path: &Path) -> io::Result<PathBuf> {
    let place = fs::canonicalize(path)?;
    let is_inside = fs::canonicalize(folder).is_ok_and(|folder| place.starts_with(folder));
    match is_inside || listed.contains(&place) {
        true => Ok(place),
        false => Err(FileRefusal::Outside.into()),
    }
}

/// Opens a file without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        false => Err(FileRefusal::NotRegular.into()),
    }
}

fn content(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_SOURCE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file exists and is executable.
pub fn is_executable(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}
