//! Stores binary content of results as files in a directory.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use url::Url;

use crate::content::Artifact;

/// A directory for binary content of results. File names are digests of the content, so that equal
/// blocks are stored once and nothing is overwritten.
#[derive(Clone, Debug)]
pub struct ArtifactDir {
    path: PathBuf,
}

impl ArtifactDir {
    /// A directory, which is created with the first file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes files. Returns them with the URL of each that could be written.
    pub(super) async fn save(
        &self,
        artifacts: Vec<Artifact>,
    ) -> (Vec<Artifact>, Vec<Option<String>>) {
        let folder = self.path.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let write = |artifact: &Artifact| write(&folder, artifact).ok();
            let addresses = artifacts.iter().map(write).collect();
            (artifacts, addresses)
        });
        kept.await.unwrap_or_default()
    }
}

/// Writes a file unless it exists, and returns its URL.
fn write(folder: &Path, artifact: &Artifact) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let path = fs::canonicalize(folder)?.join(&artifact.suggested_name);
    match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => file.write_all(&artifact.bytes)?,
        // The name is a digest of the content, so an existing file is the same, unless it was
        // tampered with.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::read(&path)? != artifact.bytes {
                return Err(error);
            }
        }
        Err(error) => return Err(error),
    }
    Url::from_file_path(&path).map(String::from).map_err(|()| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_block_is_kept_once_and_nothing_is_written_over() {
        let folder = std::env::temp_dir().join(format!("trunkline-kept-{}", std::process::id()));
        let artifact = |bytes: &[u8]| Artifact {
            block: 0,
            suggested_name: "image-abc.png".to_owned(),
            media_type: None,
            bytes: bytes.to_vec(),
        };
        let address = write(&folder, &artifact(b"one")).unwrap();
        assert!(address.starts_with("file://") && address.ends_with("/image-abc.png"));
        assert_eq!(write(&folder, &artifact(b"one")).unwrap(), address);
        assert!(write(&folder, &artifact(b"two")).is_err());
        assert_eq!(fs::read(folder.join("image-abc.png")).unwrap(), b"one");
        fs::remove_dir_all(&folder).unwrap();
    }
}
