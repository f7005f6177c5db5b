//! Tells that a port belongs to a gateway of this user: a file that the gateway has locked while it listens. Only this
//! user can lock it, so that the control token is given to no other program at that port.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::PathBuf;

use crate::environment::ProcessEnv;

/// The lock of a gateway, held until this is dropped.
pub(crate) struct GatewayLock {
    _file: File,
}

impl GatewayLock {
    /// Locks the file of a port that this process listens on.
    pub(crate) fn acquire(port: u16, environment: &ProcessEnv) -> io::Result<Self> {
        let path = path(port, environment).ok_or(io::ErrorKind::NotFound)?;
        if let Some(directory) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(directory)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.try_lock()?;
        Ok(Self { _file: file })
    }

    /// Whether a process of this user listens on a port.
    pub(crate) fn is_held(port: u16, environment: &ProcessEnv) -> bool {
        let file =
            path(port, environment).and_then(|path| OpenOptions::new().write(true).open(path).ok());
        file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

fn path(port: u16, environment: &ProcessEnv) -> Option<PathBuf> {
    Some(environment.state_directory()?.join("gateways").join(format!("{port}.lock")))
}
