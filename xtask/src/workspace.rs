//! Locates the workspace root, the build directory, and the files of the repository.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories with build products, downloads or history instead of sources.
const NOT_SOURCES: &[&str] = &[".git", "artifacts", "corpus", "node_modules", "target"];

/// A checkout of this repository.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this program was built from, independent of the current directory.
    pub(crate) fn find() -> Result<Self> {
        let package = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package.parent().context("the xtask package has no parent folder")?;
        Ok(Self::at(root))
    }

    /// The workspace with this root.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The absolute form of a path relative to the root.
    pub(crate) fn join(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Cargo's build directory, absolute.
    pub(crate) fn target(&self) -> PathBuf {
        match env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => self.root.join(directory),
            None => self.join("target"),
        }
    }

    /// Every file of the repository, relative to the root, separated by `/`, sorted.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.collect_files("", &mut found)?;
        found.sort();
        Ok(found)
    }

    fn collect_files(&self, folder: &str, found: &mut Vec<String>) -> Result<()> {
        let directory = self.join(folder);
        let entries = fs::read_dir(&directory)
            .with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = join_relative(folder, &name);
            if !entry.file_type()?.is_dir() {
                found.push(relative);
            } else if !NOT_SOURCES.contains(&name.as_str()) {
                self.collect_files(&relative, found)?;
            }
        }
        Ok(())
    }
}

fn join_relative(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
