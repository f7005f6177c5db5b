//! Binary blocks of results, kept as files in a folder.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use url::Url;

use crate::content::Artifact;

/// A folder for binary blocks of results. Names are made of digests of what is in the files, so
/// that the same block is kept once and nothing is written over.
#[derive(Clone, Debug)]
pub struct ArtifactDir {
    path: PathBuf,
}

impl ArtifactDir {
    /// A folder, which is made when the first file comes.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes files. Returns them with the address of each that could be written.
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

/// Writes a file that is not there yet, and returns its address.
fn write(folder: &Path, artifact: &Artifact) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let path = fs::canonicalize(folder)?.join(&artifact.suggested_name);
    match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => file.write_all(&artifact.bytes)?,
        // The name says what is in it, so it is there already, unless somebody put another there.
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
