//! The lock that the service holds for its whole life. The kernel releases it however the process ends, so
//! that no file has to be cleaned up: only the holder binds or removes the socket.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::hello::ServiceInfo;
use super::runtime_dir::{RuntimeDir, shown};

/// How long a service that is ending may hold the lock.
const ENDING: Duration = Duration::from_secs(20);

/// Held by the service.
pub(crate) struct ServiceLock {
    file: File,
    folder: RuntimeDir,
}

impl ServiceLock {
    /// Waits for the lock, for as long as another service needs to end.
    pub(crate) fn acquire(folder: &RuntimeDir) -> Result<Self> {
        folder.create()?;
        let path = folder.service_lock();
        let file = open(&path)?;
        let waiting = file.try_clone()?;
        let (done, locked) = mpsc::sync_channel(1);
        // A thread that never gets the lock ends with the process.
        thread::spawn(move || done.send(waiting.lock()));
        match locked.recv_timeout(ENDING) {
            Ok(locked) => locked.with_context(|| format!("{} cannot be locked", shown(&path)))?,
            Err(_) => bail!(
                "another service holds {} and does not end: {}",
                shown(&path),
                holder(folder).map_or("its process is unknown".to_owned(), |it| it.process())
            ),
        }
        Ok(Self { file, folder: folder.clone() })
    }

    /// Binds the socket. One that is there belongs to a service that was killed: this one holds the lock.
    pub(crate) fn bind(&mut self) -> Result<UnixListener> {
        let socket = self.folder.socket();
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{} cannot be removed", shown(&socket)));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&socket);
        let listener = listener.with_context(|| format!("cannot listen on {}", shown(&socket)))?;
        self.record()?;
        Ok(listener)
    }

    /// Writes who holds the lock, for messages: nothing is decided by it.
    fn record(&mut self) -> Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(serde_json::to_string(&ServiceInfo::of_process())?.as_bytes())?;
        Ok(())
    }

    /// Removes the socket, if this process has bound it, and then releases the lock.
    pub(crate) fn release(self, is_own_socket: bool) {
        if is_own_socket {
            let _ = fs::remove_file(self.folder.socket());
        }
        // Closing alone would leave it locked while a child process that is being started has the file.
        let _ = self.file.unlock();
    }
}

/// The process that wrote the lock file last.
pub(crate) fn holder(folder: &RuntimeDir) -> Option<ServiceInfo> {
    serde_json::from_slice(&fs::read(folder.service_lock()).ok()?).ok()
}

/// Held by a process that starts the service, so that others wait until it listens.
pub(crate) struct StartLock(File);

impl StartLock {
    pub(crate) fn acquire(folder: &RuntimeDir) -> Result<Self> {
        folder.create()?;
        let path = folder.start_lock();
        let file = open(&path)?;
        file.lock().with_context(|| format!("{} cannot be locked", shown(&path)))?;
        Ok(Self(file))
    }
}

impl Drop for StartLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    file.with_context(|| format!("{} cannot be opened", shown(path)))
}
