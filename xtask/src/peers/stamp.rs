//! A stamp file that records a complete installation and its inputs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file written last, with everything that the installation depends on.
pub(super) struct Stamp {
    path: PathBuf,
    contents: String,
}

impl Stamp {
    /// The stamp of a complete installation of `locks` (name and text of each).
    pub(super) fn new(
        name: &str,
        tools: &str,
        directory: &Path,
        locks: &[(String, String)],
    ) -> Self {
        // Python environments contain absolute paths, so a moved one counts as not installed.
        let mut contents = format!("{tools}\n{}\n", directory.display());
        for (name, text) in locks {
            contents.push_str(&format!("== {name}\n{text}"));
        }
        let path = directory.join(format!("{name}.stamp"));
        Self { path, contents }
    }

    /// Whether the installation is complete, from the same locks, tools and directory.
    pub(super) fn is_current(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|written| written == self.contents)
    }

    pub(super) fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn write(&self) -> Result<()> {
        fs::write(&self.path, &self.contents)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(directory: &Path, tools: &str, lock: &str) -> Stamp {
        let locks = [("peers/lock".to_owned(), lock.to_owned())];
        Stamp::new("npm", tools, directory, &locks)
    }

    #[test]
    fn a_stamp_is_current_until_anything_it_depends_on_changes() {
        let directory = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let written = stamp(&directory, "python 3.11", "a==1");
        assert!(!written.is_current());
        written.write().unwrap();
        assert!(stamp(&directory, "python 3.11", "a==1").is_current());
        assert!(!stamp(&directory, "python 3.11", "a==2").is_current());
        assert!(!stamp(&directory, "python 3.12", "a==1").is_current());
        written.remove().unwrap();
        written.remove().unwrap();
        assert!(!written.is_current());
        fs::remove_dir_all(directory).unwrap();
    }
}
