//! A file of lines that is rotated by size, and does no harm when the disk is full.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file to which lines are appended. When it is full it gets the suffix `.1`, and older ones `.2` and so on.
///
/// A line that cannot be written is dropped as a whole and counted. Several processes may write to the same file: one that
/// another has rotated is opened anew.
#[derive(Debug)]
pub struct RotatedFile {
    path: PathBuf,
    max_bytes: u64,
    kept: usize,
    file: Option<File>,
    length: u64,
    dropped: u64,
}

impl RotatedFile {
    /// A file of at most `max_bytes`, with `kept` older ones beside it.
    pub fn new(path: impl Into<PathBuf>, max_bytes: u64, kept: usize) -> Self {
        Self { path: path.into(), max_bytes, kept, file: None, length: 0, dropped: 0 }
    }

    /// The current file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lines that could not be written since the last one that could.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Appends a line, which must not contain a line break, and returns whether it is in the file.
    ///
    /// # Errors
    ///
    /// When the line could not be written. Nothing of it is in the file then.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        let written = self.try_write(line);
        if written.is_err() {
            self.dropped += 1;
            // Opened again for the next line: the file may have been removed, or there is room again.
            self.file = None;
        }
        written
    }

    fn try_write(&mut self, line: &str) -> io::Result<()> {
        let added = line.len() as u64 + 1;
        self.follow();
        if self.file.is_some() && self.length > 0 && self.length + added > self.max_bytes {
            self.file = None;
            self.rotate()?;
        }
        if self.file.is_none() {
            let file = open(&self.path)?;
            self.length = file.metadata()?.len();
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let before = self.length;
        // One write, so that lines of several processes do not mix.
        match file.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => {
                self.length += added;
                self.dropped = 0;
                Ok(())
            }
            Err(error) => {
                // A part of the line may be there.
                let _ = file.set_len(before);
                Err(error)
            }
        }
    }

    /// Closes the file if another one is at its path by now, and learns how long it is.
    fn follow(&mut self) {
        let Some(file) = &self.file else { return };
        let (own, current) = (file.metadata(), fs::metadata(&self.path));
        match (own, current) {
            (Ok(own), Ok(current)) if is_same(&own, &current) => self.length = own.len(),
            _ => self.file = None,
        }
    }

    fn rotate(&self) -> io::Result<()> {
        for number in (1..self.kept).rev() {
            let _ = fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        match self.kept {
            0 => fs::remove_file(&self.path),
            _ => fs::rename(&self.path, self.numbered(1)),
        }
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = OsString::from(self.path.file_name().unwrap_or_default());
        name.push(format!(".{number}"));
        self.path.with_file_name(name)
    }
}

/// Whether both are the same file, where the system tells.
fn is_same(one: &fs::Metadata, two: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (one.dev(), one.ino()) == (two.dev(), two.ino())
    }
    #[cfg(not(unix))]
    {
        one.created().ok() == two.created().ok()
    }
}

/// Opens a file for appending, for its owner alone.
fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent().filter(|it| !it.exists()) {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(directory)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("trunkline-rotated-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_full_file_becomes_an_older_one() {
        let folder = folder("full");
        let mut file = RotatedFile::new(folder.join("log"), 30, 2);
        for number in 0..20 {
            file.write_line(&format!("line {number:04}")).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("log"), "line 0018\nline 0019\n");
        assert_eq!(read("log.1"), "line 0015\nline 0016\nline 0017\n");
        assert_eq!(read("log.2"), "line 0012\nline 0013\nline 0014\n");
        assert!(!folder.join("log.3").exists());
        // Another process goes on where this one ended.
        RotatedFile::new(folder.join("log"), 30, 2).write_line("more").unwrap();
        assert_eq!(read("log"), "line 0018\nline 0019\nmore\n");
        fs::remove_dir_all(folder).unwrap();
    }

    /// `/dev/full` fails like a full disk.
    #[test]
    #[cfg(target_os = "linux")]
    fn lines_that_cannot_be_written_are_counted() {
        let mut file = RotatedFile::new("/dev/full", 1000, 1);
        assert!(file.write_line("one").is_err() && file.write_line("two").is_err());
        assert_eq!(file.dropped(), 2);
        let folder = folder("again");
        file.path = folder.join("log");
        file.write_line("three").unwrap();
        assert_eq!(
            (file.dropped(), fs::read_to_string(&file.path).unwrap()),
            (0, "three\n".into())
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
