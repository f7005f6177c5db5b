//! Identity of a configuration: the layers it was loaded from, to recognize it in another process.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::origin::Origin;
use crate::name::digest;

/// Length of an ID, enough to rule out collisions.
pub(super) const ID_LETTERS: usize = 20;

/// Prefix of configuration IDs.
pub(super) const CONFIGURATION: char = 'c';

/// Identity of a file, independent of the path used to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its path without symbolic links.
    pub path: PathBuf,
    /// Device and inode, which all hard links of the file share.
    pub inode: Option<(u64, u64)>,
}

impl FileIdentity {
    /// Reads the identity of a file from the file system.
    pub fn of(path: &Path) -> Option<Self> {
        Some(Self { path: fs::canonicalize(path).ok()?, inode: inode(path) })
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn inode(_path: &Path) -> Option<(u64, u64)> {
    None
}

/// Identity of a configuration: of each layer it was loaded from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigIdentity(Arc<[LayerIdentity]>);

impl FromIterator<LayerIdentity> for ConfigIdentity {
    fn from_iter<I: IntoIterator<Item = LayerIdentity>>(layers: I) -> Self {
        Self(layers.into_iter().collect())
    }
}

impl ConfigIdentity {
    pub(super) fn layers(&self) -> &[LayerIdentity] {
        &self.0
    }

    /// The IDs of all layers.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(LayerIdentity::ids)
    }

    /// Whether both have a layer in common.
    pub(super) fn shares_layer_with(&self, other: &Self) -> bool {
        self.ids().any(|id| other.ids().any(|it| it == id))
    }
}

/// Identity of one layer: a set of IDs; a match of one is sufficient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LayerIdentity {
    pub(super) origin: Box<str>,
    ids: Vec<Box<str>>,
}

impl LayerIdentity {
    /// Identity of a layer that is not a file: its text.
    pub(super) fn of_text(origin: &Origin, text: &[u8]) -> Self {
        Self { origin: origin.to_string().into(), ids: vec![id(&[b"text", text])] }
    }

    /// Identity of a file: its path, so that equal files in other directories differ; and its
    /// inode, so that links are equal. The inode alone is not enough: an editor that saves a file
    /// creates a new one.
    pub(super) fn of_file(origin: &Origin, path: &Path, file: Option<&FileIdentity>) -> Self {
        let path = file.map_or_else(|| normalised(path), |file| file.path.clone());
        let mut ids = vec![id(&[b"file", path.as_os_str().as_encoded_bytes()])];
        if let Some((device, inode)) = file.and_then(|file| file.inode) {
            ids.push(id(&[b"inode", &device.to_le_bytes(), &inode.to_le_bytes()]));
        }
        Self { origin: origin.to_string().into(), ids }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(|id| &**id)
    }
}

fn id(parts: &[&[u8]]) -> Box<str> {
    format!("{CONFIGURATION}{}", digest(parts, ID_LETTERS)).into()
}

/// Removes `.` and `..` from a path lexically, without file system access.
fn normalised(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_one() {
        assert_eq!(normalised(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }

    #[test]
    fn a_file_is_found_again_after_it_was_saved_and_through_a_hard_link() {
        let path = Path::new("/a/mcp.json");
        let identity = |path: &Path, inode| {
            let file = FileIdentity { path: path.to_owned(), inode: Some((1, inode)) };
            ConfigIdentity::from_iter([LayerIdentity::of_file(&Origin::Text, path, Some(&file))])
        };
        let first = identity(path, 7);
        assert!(first.shares_layer_with(&identity(path, 8)), "saved");
        assert!(first.shares_layer_with(&identity(Path::new("/a/link.json"), 7)), "linked");
        assert!(!first.shares_layer_with(&identity(Path::new("/a/link.json"), 8)), "another");
    }
}
