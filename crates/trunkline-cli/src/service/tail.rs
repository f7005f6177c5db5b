//! The last lines of a log.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use trunkline::config::escape_control;

/// Bytes at the end of the log that are searched for the last lines.
const MAX_TAIL: u64 = 1024 * 1024;

/// The last lines of the file at a path.
pub(crate) fn last_lines(path: &Path, count: usize) -> io::Result<Vec<String>> {
    last_lines_of(&mut File::open(path)?, count)
}

/// The last lines of a file, whose end is read next. Control characters are escaped.
pub(crate) fn last_lines_of(log: &mut File, count: usize) -> io::Result<Vec<String>> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines.iter().skip(lines.len().saturating_sub(count)).map(|it| escape_control(it)).collect())
}
