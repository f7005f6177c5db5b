//! Replacement of files.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ConfigFile, FileErrorKind};

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("trunkline-hosts-file-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_file_is_replaced_and_backed_up() {
    let folder = Folder::new("replaced");
    let path = folder.write("a.json", "one");
    let file = ConfigFile::read(&path).unwrap();
    assert!(file.exists());
    assert_eq!((file.text(), file.path(), file.target()), ("one", &*path, &*path));
    let backup = file.replace("two").unwrap().unwrap();
    assert_eq!((text(&path).as_str(), text(&backup).as_str()), ("two", "one"));
    assert_eq!(folder.names(), ["a.json", "a.json.trunkline-backup"]);
}

#[test]
fn an_older_backup_is_never_replaced() {
    let folder = Folder::new("backups");
    let path = folder.write("a.json", "one");
    let replace = |new| ConfigFile::read(&path).unwrap().replace(new).unwrap().unwrap();
    let first = replace("two");
    let second = replace("three");
    assert_eq!((text(&first).as_str(), text(&second).as_str()), ("one", "two"));
    assert!(second.to_str().unwrap().ends_with("a.json.trunkline-backup.1"));
    fs::write(&path, "two").unwrap();
    assert_eq!(replace("four"), second, "a backup with the same text is enough");
    assert_eq!(folder.names().len(), 3);
}

#[test]
fn a_new_file_gets_its_folders_and_no_backup() {
    let folder = Folder::new("new");
    let path = folder.0.join("deep/er/a.json");
    let file = ConfigFile::read(&path).unwrap();
    assert!(!file.exists() && file.text().is_empty());
    assert!(!path.parent().unwrap().exists(), "reading creates nothing");
    assert_eq!(file.replace("new").unwrap(), None);
    assert_eq!(text(&path), "new");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    let folder = Folder::new("changed");
    let path = folder.write("a.json", "one");
    let file = ConfigFile::read(&path).unwrap();
    fs::write(&path, "other").unwrap();
    let error = file.replace("two").unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Changed));
    assert!(error.to_string().ends_with("a.json has changed since it was read"), "{error}");
    assert_eq!(text(&path), "other");
    let missing = ConfigFile::read(folder.0.join("b.json")).unwrap();
    folder.write("b.json", "");
    assert!(matches!(missing.replace("x").unwrap_err().kind(), FileErrorKind::Changed));
    let file = ConfigFile::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(matches!(file.replace("x").unwrap_err().kind(), FileErrorKind::Changed));
    assert_eq!(folder.names(), ["b.json"], "no temporary files and no backups");
}

#[test]
fn a_failed_replacement_leaves_no_temporary_file() {
    let folder = Folder::new("failed");
    fs::create_dir(folder.0.join("a.json")).unwrap();
    let error = ConfigFile::read(folder.0.join("a.json")).unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::NotAFile));
    fs::write(folder.0.join("b.json"), b"\xff").unwrap();
    let error = ConfigFile::read(folder.0.join("b.json")).unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::NotText) && error.hint().is_some());
    let below_a_file = folder.0.join("b.json/c.json");
    assert!(ConfigFile::read(below_a_file).is_err());
    assert_eq!(folder.names(), ["a.json", "b.json"]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = Folder::new("link");
        fs::create_dir(folder.0.join("dotfiles")).unwrap();
        let target = folder.write("dotfiles/config", "one");
        let path = folder.0.join(".config");
        symlink("dotfiles/link", &path).unwrap();
        symlink("config", folder.0.join("dotfiles/link")).unwrap();
        let file = ConfigFile::read(&path).unwrap();
        assert_eq!(file.target(), folder.0.join("dotfiles/config"));
        let backup = file.replace("two").unwrap().unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!((text(&target).as_str(), text(&backup).as_str()), ("two", "one"));
        assert_eq!(backup, folder.0.join(".config.trunkline-backup"));
        assert_eq!(fs::read_dir(folder.0.join("dotfiles")).unwrap().count(), 2);
    }

    #[test]
    fn a_link_to_nothing_creates_its_target() {
        let folder = Folder::new("dangling");
        let path = folder.0.join("a.json");
        symlink("not/yet/there.json", &path).unwrap();
        ConfigFile::read(&path).unwrap().replace("new").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(text(&folder.0.join("not/yet/there.json")), "new");
        symlink("loop", folder.0.join("loop")).unwrap();
        assert!(ConfigFile::read(folder.0.join("loop")).is_err());
    }

    #[test]
    fn a_link_that_moved_meanwhile_is_left_alone() {
        let folder = Folder::new("moved");
        let (one, two) = (folder.write("one", "same"), folder.write("two", "same"));
        let path = folder.0.join("link");
        symlink(&one, &path).unwrap();
        let file = ConfigFile::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&two, &path).unwrap();
        assert!(matches!(file.replace("new").unwrap_err().kind(), FileErrorKind::Changed));
        assert_eq!((text(&one), text(&two)), ("same".to_owned(), "same".to_owned()));
    }

    #[test]
    fn modes_stay() {
        let folder = Folder::new("modes");
        for bits in [0o600, 0o644, 0o640, 0o400] {
            let path = folder.write(&format!("{bits:o}"), "one");
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            let backup = ConfigFile::read(&path).unwrap().replace("two").unwrap().unwrap();
            assert_eq!((mode(&path), mode(&backup)), (bits, bits));
        }
    }

    #[test]
    fn owners_stay() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = Folder::new("owners");
        let path = folder.write("a.json", "one");
        std::os::unix::fs::chown(&path, Some(12_345), Some(54_321)).unwrap();
        let backup = ConfigFile::read(&path).unwrap().replace("two").unwrap().unwrap();
        for path in [path, backup] {
            let metadata = fs::metadata(path).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (12_345, 54_321));
        }
    }

    #[test]
    fn a_read_only_folder_is_named() {
        let folder = Folder::new("read-only");
        let path = folder.write("a.json", "one");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o555)).unwrap();
        let replaced = ConfigFile::read(&path).unwrap().replace("two");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
        // Modes do not hold for root.
        if rustix::process::geteuid().is_root() {
            return;
        }
        let error = replaced.unwrap_err();
        assert!(matches!(error.kind(), FileErrorKind::Forbidden(_)));
        assert!(error.hint().unwrap().contains("folder"));
        assert_eq!((text(&path).as_str(), folder.names().len()), ("one", 1));
    }

    /// No user may create files there, not even root.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_that_refuses_files_is_an_error() {
        for path in ["/sys/kernel/trunkline.json", "/sys/kernel/new/trunkline.json"] {
            let error = ConfigFile::read(path).unwrap().replace("x").unwrap_err();
            assert!(error.to_string().contains("/sys/kernel/"), "{error}");
            assert!(matches!(error.kind(), FileErrorKind::Forbidden(_)), "{error:?}");
            assert!(error.hint().unwrap().contains("folder"));
        }
    }
}
