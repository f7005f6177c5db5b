//! A cgroup per server, where permitted: processes cannot leave it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io};

use super::spawn_id::SpawnId;

/// Limit on nested directories that a server created in its cgroup and that are removed with it.
const MAX_NESTED_FOLDERS: usize = 1000;

/// A leaf below the cgroup of this process. Dropping it removes the directory, if no process runs
/// in it.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Creates a cgroup for a server; `None` without cgroup v2, without permission, or on a kernel
    /// before 5.14, which cannot kill a cgroup as a whole.
    pub(super) fn create(id: &SpawnId) -> Option<Self> {
        static PARENT: OnceLock<Option<PathBuf>> = OnceLock::new();
        let parent = PARENT.get_or_init(own_folder).as_ref()?;
        let folder = parent.join(format!("trunkline-{}", id.as_str()));
        // The watchdog script reads the path as one word.
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-@:\\".contains(&byte);
        if !folder.to_str()?.bytes().all(is_word) {
            return None;
        }
        fs::create_dir(&folder).ok()?;
        let cgroup = Self { folder };
        // The same for all cgroups of a kernel.
        static CAN_KILL: OnceLock<bool> = OnceLock::new();
        CAN_KILL.get_or_init(|| cgroup.file("cgroup.kill").exists()).then_some(cgroup)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Moves a process into it. Processes that it started before stay where they are.
    pub(super) fn add(&self, process: u32) -> io::Result<()> {
        fs::write(self.file("cgroup.procs"), process.to_string())
    }

    /// The processes in it, without those in nested directories.
    pub(super) fn processes(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.file("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Kills every process in it atomically, including those that are just being started.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.file("cgroup.kill"), "1");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.folder, &mut MAX_NESTED_FOLDERS.clone());
    }
}

/// Removes a directory and those inside. The files of a cgroup disappear with its directory.
fn remove(folder: &Path, left: &mut usize) {
    if fs::remove_dir(folder).is_ok() || *left == 0 {
        return;
    }
    *left -= 1;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            remove(&entry.path(), left);
        }
    }
    let _ = fs::remove_dir(folder);
}

/// The directory of the cgroup of this process.
fn own_folder() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    folder_of(&mounts, &own)
}

fn folder_of(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let mut fields = front.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let inside = Path::new(path).strip_prefix(root).ok()?;
        back.starts_with("cgroup2 ").then(|| Path::new(place).join(inside))
    };
    mounts.lines().find_map(mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cgroup_is_found_where_cgroup_v2_is_mounted() {
        let mounts = "30 1 0:1 / /proc rw - proc proc rw\n\
                      41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        let folder = |mounts, own| folder_of(mounts, own).map(|it| it.display().to_string());
        assert_eq!(
            folder(mounts, "0::/user.slice/app.scope\n").as_deref(),
            Some("/sys/fs/cgroup/user.slice/app.scope")
        );
        assert_eq!(folder(mounts, "1:name=systemd:/\n0::/\n").as_deref(), Some("/sys/fs/cgroup/"));
        assert_eq!(folder(mounts, "4:memory:/x\n"), None);
        assert_eq!(folder("30 1 0:1 / /proc rw - proc proc rw\n", "0::/\n"), None);
        let bound = "41 31 0:38 /inner /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(folder(bound, "0::/inner/x").as_deref(), Some("/cg/x"));
        assert_eq!(folder(bound, "0::/other"), None);
    }
}
