//! What tells one layer of configuration from all others.

use std::path::{Component, Path, PathBuf};

use super::model::Origin;
use crate::name::digest;

/// Letters of an id: too many for two to be the same by chance.
pub(super) const ID_LETTERS: usize = 20;

/// How ids of configurations start.
pub(super) const CONFIGURATION: char = 'c';

/// The id of one layer: of a file by its path, so that equal files in other folders are others; of a
/// text by what it says.
pub(super) fn configuration_id(origin: &Origin, bytes: &[u8]) -> Box<str> {
    let id = match origin {
        Origin::File(file) => {
            let path = normalised(&file.path);
            digest(&[b"file", path.as_os_str().as_encoded_bytes()], ID_LETTERS)
        }
        _ => digest(&[b"text", bytes], ID_LETTERS),
    };
    format!("{CONFIGURATION}{id}").into()
}

/// A path without `.` and `..`, as far as that can be told without looking.
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
}
