//! Files that a process was started from: the configuration, the trust store, the program and its scripts. A process
//! that is kept for commands ends when one of them changes.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trunkline::config::{Origin, Server};
use trunkline::connection::ProgramLaunch;

/// Extensions of files that an interpreter runs. Other files in arguments may be data, which the server changes.
const SCRIPTS: [&str; 16] = [
    "cjs", "cts", "dll", "jar", "js", "lua", "mjs", "mts", "php", "pl", "py", "rb", "sh", "ts",
    "tsx", "wasm",
];

/// Arguments that are looked at.
const MAX_ARGS: usize = 64;

/// A file as it was at some time.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct SourceFile {
    path: PathBuf,
    /// Inode, length, and time of the last change in seconds and nanoseconds; none if there is no such file.
    content: Option<(u64, u64, i64, i64)>,
}

impl SourceFile {
    pub(crate) fn of(path: &Path) -> Self {
        let content = std::fs::metadata(path).ok();
        let content = content.map(|it| (it.ino(), it.len(), it.mtime(), it.mtime_nsec()));
        Self { path: path.to_owned(), content }
    }

    fn is_current(&self) -> bool {
        Self::of(&self.path) == *self
    }
}

/// Whether none of the files has changed.
pub(crate) fn are_current(files: &[SourceFile]) -> bool {
    files.iter().all(SourceFile::is_current)
}

/// The files that decide about the process of a server.
pub(crate) fn source_files(
    server: &Server,
    launch: &ProgramLaunch,
    trust: Option<&Path>,
) -> Vec<SourceFile> {
    let config = match &server.provenance.origin {
        Origin::File(file) => Some(&*file.path),
        Origin::Overrides | Origin::Variable(_) | Origin::Text => None,
    };
    let command = Path::new(launch.command.expose());
    let program = (command.components().count() > 1).then(|| launch.directory.join(command));
    let scripts = launch.args.iter().take(MAX_ARGS).map(|it| launch.directory.join(it.expose()));
    let scripts = scripts.filter(|path| is_script(path) && path.is_file());
    let named = config.into_iter().chain(trust).map(Path::to_owned);
    named.chain(program).chain(scripts).map(|path| SourceFile::of(&path)).collect()
}

fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    extension.is_some_and(|it| SCRIPTS.contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_or_goes_is_another() {
        let name = format!("trunkline-source-file-{}.py", std::process::id());
        let path = std::env::temp_dir().join(name);
        let before = [SourceFile::of(&path)];
        assert!(are_current(&before), "missing as before");
        std::fs::write(&path, "one").unwrap();
        assert!(!are_current(&before));
        let before = [SourceFile::of(&path)];
        std::fs::write(&path, "three").unwrap();
        assert!(!are_current(&before));
        let before = [SourceFile::of(&path)];
        std::fs::remove_file(&path).unwrap();
        assert!(!are_current(&before));
    }

    #[test]
    fn data_is_not_a_script() {
        assert!(is_script(Path::new("dist/index.js")) && !is_script(Path::new("memory.json")));
    }
}
