//! A store on a disk without space.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore as _};

use crate::support::{TestFolder, file_store, long_value, token};

/// A small file system in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"]).arg(path);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Self(path.to_owned()))
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_keeps_the_old_value() {
    let folder = TestFolder::new();
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk")) else {
        eprintln!("skipped: a small file system can only be mounted by root");
        return;
    };
    let store = file_store(&disk.0);
    store.set(&token(), &Secret::new("old")).unwrap();
    disk.fill();
    for (key, value) in [(token(), long_value('a')), (SecretKey::user("NEW"), long_value('b'))] {
        let error = store.set(&key, &value).unwrap_err();
        assert!(error.to_string().contains("No space left on device"), "{error}");
        assert!(error.to_string().ends_with("the previous value is kept"), "{error}");
        assert_eq!(error.hint(), Some("free some space and try again"));
    }
    assert_eq!(store.get(&token()).unwrap(), Some(Secret::new("old")));
    assert_eq!(store.keys().unwrap(), [token()]);
    fs::remove_file(disk.0.join("filler")).unwrap();
    store.set(&token(), &Secret::new("new")).unwrap();
    assert_eq!(store.get(&token()).unwrap(), Some(Secret::new("new")));
}

#[test]
fn a_store_that_is_created_on_a_full_disk_can_be_created_later() {
    let folder = TestFolder::new();
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk")) else {
        eprintln!("skipped: a small file system can only be mounted by root");
        return;
    };
    disk.fill();
    let store = file_store(&disk.0);
    assert!(store.set(&token(), &Secret::new("value")).is_err());
    assert_eq!(store.get(&token()).unwrap(), None);
    fs::remove_file(disk.0.join("filler")).unwrap();
    store.set(&token(), &Secret::new("value")).unwrap();
    assert_eq!(store.get(&token()).unwrap(), Some(Secret::new("value")));
}
