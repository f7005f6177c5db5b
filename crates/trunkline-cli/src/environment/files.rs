//! Reading files that anybody may have put there: regular files only, of a bounded size.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use trunkline::config::{FileRefusal, MAX_SOURCE_BYTES};

#[cfg(unix)]
use super::ownership;

/// Reads a file. A larger one than is accepted gives one byte more than that, so that the reader can
/// say that it is too much.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    content(open(path)?.0)
}

/// Reads a file that other users cannot change.
pub(super) fn read_safely(path: &Path) -> io::Result<Vec<u8>> {
    let (file, metadata) = open(path)?;
    #[cfg(unix)]
    ownership::check(path, &metadata)?;
    #[cfg(not(unix))]
    let _ = metadata;
    content(file)
}

/// Who else can change a file, if somebody can.
pub(super) fn unsafety(path: &Path) -> Option<String> {
    #[cfg(unix)]
    return ownership::problem(path, &fs::metadata(path).ok()?);
    #[cfg(not(unix))]
    None
}

/// Whether a file is inside of a folder, once links are followed. For one that is not there, the nearest
/// folder above it that is there decides.
pub(super) fn is_within(folder: &Path, path: &Path) -> bool {
    place(path).and_then(|place| Ok(place.starts_with(fs::canonicalize(folder)?))).unwrap_or(false)
}

/// The place of a file, once links are followed; of one that is not there, in the nearest folder above that
/// is there.
pub(super) fn place(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path).or_else(|_| {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::NotFound)?;
        place(parent).map(|parent| parent.join(name))
    })
}

/// The place of a file that has to be inside of a folder, or one of these files, once links are followed.
///
/// The files are compared as they are: they are the places that were shown when the user consented, and a
/// link that was put there since would make others of them.
pub(super) fn inside(folder: &Path, listed: &[PathBuf], path: &Path) -> io::Result<PathBuf> {
    let place = fs::canonicalize(path)?;
    let is_inside = fs::canonicalize(folder).is_ok_and(|folder| place.starts_with(folder));
    match is_inside || listed.contains(&place) {
        true => Ok(place),
        false => Err(FileRefusal::Outside.into()),
    }
}

/// Opens a file without waiting for whoever may be at the other end of a pipe.
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

/// Whether a file is there and executable.
pub(super) fn is_executable(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}
