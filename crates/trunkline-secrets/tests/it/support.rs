//! Folders, stores and helper processes of the tests.

use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use trunkline::config::Secret;
use trunkline::secrets::SecretKey;
use trunkline_secrets::{FileStore, KeySource, WaitNotice};

/// The variable that tells a helper process which folder to use.
const FOLDER: &str = "TRUNKLINE_TEST_FOLDER";

/// A directory that is removed at the end of a test.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-stores-{}-{number}", process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The file store in a folder.
pub(crate) fn file_store(folder: &Path) -> FileStore {
    FileStore::new(folder.join("secrets"), KeySource::GeneratedFile(folder.join("key.txt")))
}

pub(crate) fn token() -> SecretKey {
    SecretKey::user("TOKEN")
}

/// A long value of one letter, so that a mixture of two is recognised.
pub(crate) fn long_value(letter: char) -> Secret {
    Secret::new(letter.to_string().repeat(100_000))
}

pub(crate) fn silent() -> WaitNotice {
    Arc::new(|_| ())
}

/// Starts this program again to run one ignored test as a helper.
pub(crate) fn helper(test: &str, folder: &Path) -> Child {
    let mut command = helper_command(env::current_exe().unwrap(), test, folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The command of a helper, with `program` in place of this program.
pub(crate) fn helper_command(program: impl AsRef<Path>, test: &str, folder: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).env_remove("NEXTEST").env_remove("NEXTEST_EXECUTION_MODE");
    command
}

/// The folder of a helper; `None` if it is not run as one.
pub(crate) fn helper_folder() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}
