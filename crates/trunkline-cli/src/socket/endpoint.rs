//! The sockets on which processes of Trunkline answer: the one of the background service, and those of gateways.

use std::fmt;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::runtime_dir::RuntimeDir;

/// Gateways that are asked by one command.
const MAX_GATEWAYS: usize = 64;

/// A process of Trunkline that answers on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The background service.
    Service(PathBuf),
    /// `trunkline serve`.
    Gateway { socket: PathBuf, process: u32 },
}

impl Endpoint {
    /// The endpoint of the service.
    pub(crate) fn service(folder: &RuntimeDir) -> Self {
        Self::Service(folder.socket())
    }

    /// The endpoints of gateways, the oldest first. Some may have ended.
    pub(crate) fn gateways(folder: &RuntimeDir) -> Vec<Self> {
        let entries = fs::read_dir(folder.path()).into_iter().flatten().flatten();
        let mut found: Vec<(SystemTime, Self)> = entries
            .filter_map(|entry| {
                let process = process_of(&entry.file_name().to_string_lossy())?;
                let created = entry.metadata().ok()?.modified().ok()?;
                Some((created, Self::Gateway { socket: entry.path(), process }))
            })
            .filter(|(_, gateway)| !gateway.remove_if_ended())
            .collect();
        found.sort_by_key(|(created, endpoint)| (*created, endpoint.socket().to_owned()));
        found.into_iter().map(|(_, endpoint)| endpoint).take(MAX_GATEWAYS).collect()
    }

    /// The endpoint of a gateway in this process.
    pub(crate) fn own_gateway(folder: &RuntimeDir) -> Self {
        let process = std::process::id();
        Self::Gateway { socket: folder.path().join(gateway_file(process)), process }
    }

    pub(crate) fn socket(&self) -> &Path {
        match self {
            Self::Service(socket) | Self::Gateway { socket, .. } => socket,
        }
    }

    pub(crate) fn gateway_process(&self) -> Option<u32> {
        match self {
            Self::Service(_) => None,
            Self::Gateway { process, .. } => Some(*process),
        }
    }

    /// Removes the socket of a gateway that was killed. Returns whether it did.
    fn remove_if_ended(&self) -> bool {
        match self {
            // A gateway in another container has an ID of another process, or of none.
            Self::Gateway { socket, process } if has_ended(*process) => {
                UnixStream::connect(socket).is_err() && fs::remove_file(socket).is_ok()
            }
            Self::Service(_) | Self::Gateway { .. } => false,
        }
    }

    /// How a process of another version is replaced.
    pub(crate) fn restart_advice(&self) -> &'static str {
        match self {
            Self::Service(_) => "run `trunkline restart`",
            Self::Gateway { .. } => "start it again",
        }
    }

    /// How a process that does not respond is ended.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Service(_) => {
                "`trunkline down` ends it, `trunkline restart` starts another".to_owned()
            }
            Self::Gateway { process, .. } => format!("`kill -9 {process}` ends it"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(_) => f.write_str("the background service"),
            Self::Gateway { process, .. } => write!(f, "the gateway (process {process})"),
        }
    }
}

fn gateway_file(process: u32) -> String {
    format!("gateway-{process}.sock")
}

/// The process of a gateway, by the name of its socket.
fn process_of(file: &str) -> Option<u32> {
    let process = file.strip_prefix("gateway-")?.strip_suffix(".sock")?.parse().ok()?;
    (gateway_file(process) == file).then_some(process)
}

fn has_ended(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_none_or(|process| test_kill_process(process) == Err(Errno::SRCH))
}
