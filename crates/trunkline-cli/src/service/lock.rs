//! The lock that the service holds for its whole life. The kernel releases it however the process ends, so
//! that no file has to be cleaned up: only the holder binds or removes the socket.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::socket::hello::ServiceInfo;
use crate::socket::runtime_dir::{RuntimeDir, shown};

/// How long a service that is ending may hold the lock: its servers get time to end.
const ENDING: Duration = Duration::from_secs(20);

/// How long a service that was told to end by a signal may take.
const SIGNALLED: Duration = Duration::from_secs(12);

/// How long another process may take to start the service.
const STARTING: Duration = Duration::from_secs(30);

/// The interval of trying a lock that is held.
const PAUSE: Duration = Duration::from_millis(20);

/// Held by the service.
pub(crate) struct ServiceLock {
    file: File,
    folder: RuntimeDir,
    /// The socket that this process has bound.
    socket: Option<FileId>,
}

/// A file, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn at(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().map(|it| Self(it.dev(), it.ino()))
    }
}

impl ServiceLock {
    /// Waits for the lock, for as long as another service needs to end; `None` if that one goes on: it
    /// accepts clients.
    pub(crate) fn acquire(folder: &RuntimeDir) -> Result<Option<Self>> {
        let waited = Self::wait(folder, ENDING, || UnixStream::connect(folder.socket()).is_ok())?;
        match waited {
            LockWait::Locked(lock) => Ok(Some(lock)),
            LockWait::Stopped => Ok(None),
            LockWait::TimedOut => bail!(
                "another service does not end: {}\n  `trunkline down` ends it",
                described_holder(folder)
            ),
        }
    }

    /// Takes the lock, if no service holds it.
    pub(crate) fn try_acquire(folder: &RuntimeDir) -> Result<Option<Self>> {
        match Self::wait(folder, Duration::ZERO, || false)? {
            LockWait::Locked(lock) => Ok(Some(lock)),
            LockWait::Stopped | LockWait::TimedOut => Ok(None),
        }
    }

    fn wait(
        folder: &RuntimeDir,
        longest: Duration,
        may_stop: impl Fn() -> bool,
    ) -> Result<LockWait> {
        folder.create()?;
        let path = folder.service_lock();
        let file = open(&path)?;
        let deadline = Instant::now() + longest;
        loop {
            if try_lock(&file, &path)? {
                return Ok(LockWait::Locked(Self { file, folder: folder.clone(), socket: None }));
            }
            if may_stop() {
                return Ok(LockWait::Stopped);
            }
            if Instant::now() >= deadline {
                return Ok(LockWait::TimedOut);
            }
            thread::sleep(PAUSE);
        }
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
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        self.socket = FileId::at(&socket);
        Ok(listener)
    }

    /// Writes who holds the lock. It is read only while the lock is held.
    pub(crate) fn record(&mut self) -> Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(serde_json::to_string(&ServiceInfo::of_process())?.as_bytes())?;
        Ok(())
    }

    /// Whether clients find this service: its socket and its lock are where they look.
    pub(crate) fn is_reachable(&self) -> bool {
        let own = self.file.metadata().ok().map(|it| FileId(it.dev(), it.ino()));
        let has_lock = own.is_some() && FileId::at(&self.folder.service_lock()) == own;
        let socket = FileId::at(&self.folder.socket());
        has_lock && socket.is_some() && self.socket.is_none_or(|own| socket == Some(own))
    }

    /// Removes the socket, if it is the one that this process has bound, and then releases the lock.
    pub(crate) fn release(self) {
        let socket = self.folder.socket();
        if self.socket.is_some() && FileId::at(&socket) == self.socket {
            let _ = fs::remove_file(socket);
        }
        // Closing alone would leave it locked while a child process that is being started has the file.
        let _ = self.file.unlock();
    }
}

/// How waiting for the lock ended.
enum LockWait {
    Locked(ServiceLock),
    Stopped,
    TimedOut,
}

/// Ends the service that holds the lock, if there is one: by a signal, and by another one if that has no
/// effect.
pub(crate) fn end_holder(folder: &RuntimeDir) -> Result<()> {
    let Some(service) = running(folder)? else { return Ok(()) };
    let pid = Pid::from_raw(i32::try_from(service.pid)?);
    let pid = pid.context("the process of the service is not known")?;
    for signal in [Signal::TERM, Signal::KILL] {
        let _ = kill_process(pid, signal);
        // A process that is paused takes no other signal until it goes on.
        let _ = kill_process(pid, Signal::CONT);
        if has_ended(folder, &service, SIGNALLED)? {
            return Ok(());
        }
    }
    bail!("the service cannot be ended: {}", service.process())
}

/// Waits until a service that was told to end has done so.
pub(crate) fn wait_until_ended(folder: &RuntimeDir, service: &ServiceInfo) -> Result<bool> {
    has_ended(folder, service, ENDING)
}

/// Whether a service ends within a time: the lock is free, or another one has it.
fn has_ended(folder: &RuntimeDir, service: &ServiceInfo, longest: Duration) -> Result<bool> {
    let is_another = || holder(folder).is_some_and(|it| it.pid != service.pid);
    match ServiceLock::wait(folder, longest, is_another)? {
        LockWait::Locked(lock) => {
            lock.release();
            Ok(true)
        }
        LockWait::Stopped => Ok(true),
        LockWait::TimedOut => Ok(false),
    }
}

/// The process that holds the lock; `None` if it is free.
pub(crate) fn running(folder: &RuntimeDir) -> Result<Option<ServiceInfo>> {
    if !folder.service_lock().exists() {
        return Ok(None);
    }
    match ServiceLock::try_acquire(folder)? {
        Some(lock) => {
            lock.release();
            Ok(None)
        }
        None => Ok(holder(folder)),
    }
}

/// The process that wrote the lock file last.
fn holder(folder: &RuntimeDir) -> Option<ServiceInfo> {
    serde_json::from_slice(&fs::read(folder.service_lock()).ok()?).ok()
}

fn described_holder(folder: &RuntimeDir) -> String {
    holder(folder).map_or("its process is unknown".to_owned(), |it| it.process())
}

/// Held by a process that starts the service, so that others wait until it listens.
pub(crate) struct StartLock(File);

impl StartLock {
    /// Waits for the lock; `None` if the service accepts clients meanwhile.
    pub(crate) fn acquire(folder: &RuntimeDir) -> Result<Option<Self>> {
        folder.create()?;
        let path = folder.start_lock();
        let file = open(&path)?;
        let deadline = Instant::now() + STARTING;
        while !try_lock(&file, &path)? {
            if UnixStream::connect(folder.socket()).is_ok() {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                bail!(
                    "another process has been starting the service for {} seconds",
                    STARTING.as_secs()
                );
            }
            thread::sleep(PAUSE);
        }
        Ok(Some(Self(file)))
    }
}

impl Drop for StartLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} cannot be locked", shown(path)))
        }
    }
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    file.with_context(|| format!("{} cannot be opened", shown(path)))
}
