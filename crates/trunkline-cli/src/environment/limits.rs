//! Resource limits of this process.

#[cfg(unix)]
use rustix::process::{Resource, getpriority_process, getrlimit};
#[cfg(unix)]
use serde::{Deserialize, Serialize};

/// Makes a write beyond the file size limit fail like one to a full disk. By default the system
/// ends the process with SIGXFSZ, before it can report anything or stop a server.
///
/// Installs a handler instead of ignoring the signal, because child processes would inherit that.
pub(crate) fn fail_writes_beyond_file_size() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // The handler outlives the runtime. If it cannot be installed, nothing gets worse.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
            return;
        };
        let _guard = runtime.enter();
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}

/// What child processes inherit besides variables and their directory.
#[cfg(unix)]
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct InheritedLimits {
    umask: Option<u32>,
    nice: Option<i32>,
    /// Current and maximum value of each resource; none if it is unlimited.
    resources: Vec<(Option<u64>, Option<u64>)>,
    /// The namespaces and the security context: a sandbox or a container has others. Empty where the system has
    /// none.
    #[serde(default)]
    confinement: Vec<String>,
}

#[cfg(unix)]
impl InheritedLimits {
    pub(crate) fn of_process() -> Self {
        use Resource::{As, Core, Cpu, Data, Fsize, Memlock, Nofile, Nproc, Stack};
        let resources = [As, Core, Cpu, Data, Fsize, Memlock, Nofile, Nproc, Stack];
        let limit = |resource: Resource| {
            let limit = getrlimit(resource);
            (limit.current, limit.maximum)
        };
        Self {
            umask: umask(),
            nice: getpriority_process(None).ok(),
            resources: resources.map(limit).to_vec(),
            confinement: confinement(),
        }
    }
}

/// What confines this process besides limits: namespaces, the root directory, system call filters.
#[cfg(unix)]
fn confinement() -> Vec<String> {
    let links = ["ns/mnt", "ns/net", "ns/pid_for_children", "ns/user", "ns/uts", "ns/ipc", "root"];
    let links = links.iter().filter_map(|it| std::fs::read_link(format!("/proc/self/{it}")).ok());
    let links = links.map(|link| link.to_string_lossy().into_owned());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_kept = |line: &&str| {
        let names = ["Gid:", "Groups:", "NoNewPrivs:", "Seccomp:", "CapBnd:"];
        names.iter().any(|name| line.starts_with(name))
    };
    let context = std::fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    let status = status.lines().filter(is_kept).map(str::to_owned);
    links.chain(status).chain([context.trim().to_owned()]).collect()
}

/// The mask of permissions for new files, if the system tells it.
#[cfg(target_os = "linux")]
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

/// The mask of permissions for new files. The system tells it only to a process that sets it; files of this moment
/// are private.
#[cfg(all(unix, not(target_os = "linux")))]
fn umask() -> Option<u32> {
    let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    rustix::process::umask(mask);
    Some(u32::from(mask.bits()))
}
