//! Checks whether other users of the machine can change a file, by its permissions and those of the
//! directories on its path (SEC-1). Access control lists are not considered.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::FileRefusal;

/// Maximum number of symbolic links followed, the same as in the kernel.
const MAX_LINKS: usize = 40;

const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_EVERYBODY: u32 = 0o002;
/// In a directory with this bit, only the owner of an entry can replace it.
const STICKY: u32 = 0o1000;

/// The user that runs this program.
struct User {
    id: u32,
}

/// Rejects a file that another user can change: one with an owner other than this user or root, one
/// that others can write, and one in a directory in which others can replace it.
pub(super) fn check(path: &Path, file: &Metadata) -> io::Result<()> {
    let user = User { id: rustix::process::geteuid().as_raw() };
    user.check_file(path, file)?;
    for folder in folders(path)? {
        user.check_folder(&folder, &fs::metadata(&folder)?)?;
    }
    Ok(())
}

/// The reason why other users can change a file, for files that are used anyway.
pub(super) fn problem(path: &Path, file: &Metadata) -> Option<String> {
    check(path, file).err().map(|problem| problem.to_string())
}

/// Every directory on the path to a file, as written and with links resolved.
fn folders(path: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut folders = BTreeSet::new();
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("/")).to_owned();
        folders.extend(folder.ancestors().map(Path::to_owned));
        folders.extend(fs::canonicalize(&folder)?.ancestors().map(Path::to_owned));
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(folders),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

impl User {
    fn check_file(&self, path: &Path, file: &Metadata) -> Result<(), FileRefusal> {
        self.check_owner(path, file)?;
        self.check_writers(path, file)
    }

    fn check_folder(&self, path: &Path, folder: &Metadata) -> Result<(), FileRefusal> {
        self.check_owner(path, folder)?;
        match folder.mode() & STICKY {
            0 => self.check_writers(path, folder),
            _ => Ok(()),
        }
    }

    fn check_owner(&self, path: &Path, metadata: &Metadata) -> Result<(), FileRefusal> {
        match metadata.uid() {
            0 => Ok(()),
            owner if owner == self.id => Ok(()),
            owner => {
                let path = path.display();
                Err(FileRefusal::Unsafe(format!("{path} belongs to another user (uid {owner})")))
            }
        }
    }

    fn check_writers(&self, path: &Path, metadata: &Metadata) -> Result<(), FileRefusal> {
        let (mode, path) = (metadata.mode(), path.display());
        let reason = if mode & WRITABLE_BY_EVERYBODY != 0 {
            format!("everybody can write {path}")
        } else if mode & WRITABLE_BY_GROUP != 0 && !self.is_alone_in(metadata.gid()) {
            format!("the group {} can write {path}", metadata.gid())
        } else {
            return Ok(());
        };
        Err(FileRefusal::Unsafe(reason))
    }

    /// Whether a group is the private group of this user: with the user's name and no other member.
    /// Distributions with private groups make files group-writable.
    fn is_alone_in(&self, group: u32) -> bool {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        is_private_group(&read("/etc/passwd"), &read("/etc/group"), self.id, group)
    }
}

/// Whether a group is the private group of a user, by the contents of `/etc/passwd` and
/// `/etc/group`.
fn is_private_group(users: &str, groups: &str, user: u32, group: u32) -> bool {
    let id = |field: Option<&&str>| field.and_then(|field| field.parse::<u32>().ok());
    let users = || users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut groups = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = users().find(|fields| id(fields.get(2)) == Some(user));
    let Some(name) = own.as_ref().and_then(|fields| fields.first()) else { return false };
    let is_others_first =
        |fields: &Vec<&str>| id(fields.get(3)) == Some(group) && id(fields.get(2)) != Some(user);
    let Some(entry) = groups.find(|fields| id(fields.get(2)) == Some(group)) else { return false };
    let mut members = entry.get(3).unwrap_or(&"").split(',').map(str::trim);
    entry.first() == Some(name)
        && members.all(|member| member.is_empty() || member == *name)
        && !users().any(|fields| is_others_first(&fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_group_has_the_name_and_only_its_user() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh";
        let groups = "root:x:0:\nann:x:1000:ann\nusers:x:100:ann,bob\nbob:x:1001:ann";
        assert!(is_private_group(users, groups, 1000, 1000));
        assert!(is_private_group(users, groups, 0, 0));
        assert!(!is_private_group(users, groups, 1000, 100), "a shared group");
        assert!(!is_private_group(users, groups, 1001, 1001), "another user is in it");
        assert!(!is_private_group(users, groups, 1002, 1002), "an unknown user");
        assert!(!is_private_group("ann:x:1:1\nbob:x:2:1", "ann:x:1:", 1, 1), "bob's first group");
        assert!(!is_private_group("", "", 0, 0));
    }
}
