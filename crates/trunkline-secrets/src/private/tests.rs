//! Tests of private directories, on Unix systems.

#![cfg(unix)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, process};

use super::*;

/// A directory that is removed at the end of a test.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-secrets-{}-{number}", process::id());
        let path = env::temp_dir().join(name);
        create_folders(&path).unwrap();
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

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn write(directory: &PrivateDirectory, name: &str, content: &[u8]) {
    let writers = directory.lock_writers().unwrap();
    directory.replace(&writers, name, content).unwrap();
}

#[test]
fn directories_and_files_are_created_for_their_owner_only() {
    let folder = TestFolder::new();
    let path = folder.path().join("a/b");
    let directory = PrivateDirectory::create(&path).unwrap();
    write(&directory, "entry", b"content");
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
    assert_eq!((mode(&path.join("entry")), mode(&path.join(WRITE_LOCK))), (0o600, 0o600));
    assert_eq!(directory.read("entry", 7).unwrap().unwrap(), b"content");
    assert_eq!(directory.read("other", 7).unwrap(), None);
}

#[test]
fn a_directory_that_is_open_to_others_is_refused() {
    let folder = TestFolder::new();
    for open in [0o750, 0o705, 0o777] {
        set_mode(folder.path(), open);
        let error = PrivateDirectory::open(folder.path()).unwrap_err();
        let shown = folder.path().display();
        assert_eq!(error.to_string(), format!("{shown} is open to other users and is not used"));
        assert_eq!(error.hint().unwrap(), format!("run `chmod 700 {shown}`"));
    }
}

#[test]
fn a_file_that_is_open_to_others_is_refused() {
    let folder = TestFolder::new();
    let directory = PrivateDirectory::open(folder.path()).unwrap().unwrap();
    write(&directory, "entry", b"content");
    set_mode(&directory.join("entry"), 0o640);
    let error = directory.read("entry", 100).unwrap_err();
    assert!(error.to_string().ends_with("entry is open to other users and is not used"), "{error}");
    assert!(error.hint().unwrap().starts_with("run `chmod 600 "), "{error:?}");
}

#[test]
fn files_and_directories_of_another_user_are_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files to another user");
        return;
    }
    let folder = TestFolder::new();
    let directory = PrivateDirectory::create(&folder.path().join("store")).unwrap();
    write(&directory, "entry", b"content");
    std::os::unix::fs::chown(directory.join("entry"), Some(65534), None).unwrap();
    let error = directory.read("entry", 100).unwrap_err().to_string();
    assert!(error.ends_with("entry belongs to another user and is not used"), "{error}");
    std::os::unix::fs::chown(&directory.path, Some(65534), None).unwrap();
    let error = PrivateDirectory::open(&directory.path).unwrap_err().to_string();
    assert!(error.ends_with("store belongs to another user and is not used"), "{error}");
}

#[test]
fn links_pipes_and_large_files_are_refused() {
    let folder = TestFolder::new();
    let directory = PrivateDirectory::open(folder.path()).unwrap().unwrap();
    write(&directory, "entry", b"content");
    std::os::unix::fs::symlink("entry", directory.join("link")).unwrap();
    assert!(directory.read("link", 100).is_err());
    let pipe = directory.join("pipe");
    assert!(
        process::Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status().unwrap().success()
    );
    let error = directory.read("pipe", 100).unwrap_err().to_string();
    assert!(error.ends_with("pipe is not a regular file"), "{error}");
    let error = directory.read("entry", 6).unwrap_err().to_string();
    assert!(error.ends_with("entry is damaged: it has more than 6 bytes"), "{error}");
    assert!(PrivateDirectory::open(&directory.join("entry")).is_err());
}

#[test]
fn temporary_files_of_killed_writers_are_removed() {
    let folder = TestFolder::new();
    let directory = PrivateDirectory::open(folder.path()).unwrap().unwrap();
    fs::write(directory.join("other.tmp"), "half").unwrap();
    fs::write(directory.join("entry.tmp"), "half").unwrap();
    write(&directory, "entry", b"content");
    let mut names = directory.names().unwrap();
    names.sort();
    assert_eq!(names, ["entry", WRITE_LOCK]);
}

#[test]
fn a_lock_that_is_held_is_given_up_after_its_timeout() {
    let folder = TestFolder::new();
    let directory = PrivateDirectory::open(folder.path()).unwrap().unwrap();
    let held = directory.lock("a.lock", Duration::ZERO).unwrap();
    let error = directory.lock("a.lock", Duration::ZERO).unwrap_err().to_string();
    assert!(error.starts_with("another process has held the lock "), "{error}");
    drop(held);
    directory.lock("a.lock", Duration::ZERO).unwrap();
}
