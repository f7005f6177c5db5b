//! The folder of the socket and the locks: only for its owner, and at the same place for every process of a
//! user. `TMPDIR` is not used, because it differs between sandboxes.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;
use trunkline::config::{Environment as _, escape_control};

use crate::environment::ProcessEnv;

/// Longest path of a socket on all systems, without the byte that ends it.
const MAX_SOCKET_PATH: usize = 103;

/// The folder of the socket and the locks.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeDir {
    path: PathBuf,
}

impl RuntimeDir {
    /// The folder of a user. It may not exist.
    pub(crate) fn of(environment: &ProcessEnv) -> Result<Self> {
        let runtime = environment.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        // Hosts that were not started from a session lack the variable.
        let usual = || Path::new("/run/user").join(geteuid().as_raw().to_string());
        let path = match runtime.or_else(|| Some(usual()).filter(|path| is_own(path))) {
            Some(runtime) => runtime.join("trunkline"),
            None => environment
                .state_directory()
                .context("there is no folder for the socket of the service; set XDG_RUNTIME_DIR")?
                .join("run"),
        };
        let folder = Self { path };
        let socket = folder.socket();
        if socket.as_os_str().len() > MAX_SOCKET_PATH {
            bail!(
                "the path of the socket is too long for this system: {}\n  set XDG_RUNTIME_DIR to a folder \
                 with a shorter path",
                shown(&socket)
            );
        }
        Ok(folder)
    }

    /// Creates the folder, and checks that it is only for its owner.
    pub(crate) fn create(&self) -> Result<()> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        created.with_context(|| format!("the folder {} cannot be created", shown(&self.path)))?;
        self.check()
    }

    /// Checks that the folder, if it exists, is only for its owner: another user could have put a socket
    /// there.
    pub(crate) fn check(&self) -> Result<()> {
        let Ok(metadata) = fs::symlink_metadata(&self.path) else { return Ok(()) };
        let folder = shown(&self.path);
        if !metadata.is_dir() {
            bail!("{folder} is not a folder; remove it");
        }
        if metadata.uid() != geteuid().as_raw() {
            bail!(
                "the folder {folder} belongs to another user, who could pretend to be the service\n  set \
                 XDG_RUNTIME_DIR to a folder of your own"
            );
        }
        if metadata.mode() & 0o077 != 0 {
            bail!(
                "other users can enter the folder {folder}, which has the socket of the service\n  run `chmod \
                 700 {folder}`"
            );
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The socket of the service.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("service.sock")
    }

    /// The lock that the service holds while it runs.
    pub(crate) fn service_lock(&self) -> PathBuf {
        self.path.join("service.lock")
    }

    /// The lock of a process that starts the service.
    pub(crate) fn start_lock(&self) -> PathBuf {
        self.path.join("start.lock")
    }
}

fn is_own(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw())
}

pub(crate) fn shown(path: &Path) -> String {
    escape_control(&path.to_string_lossy())
}
