//! Finds the Trunkline processes above this one by ancestry, because a program in between may drop
//! the variable that names them (CON-16).
//!
//! A process publishes its chain in an anonymous file (Linux: `memfd_create`), which its
//! descendants find among its open files. The file disappears with the process, so no cleanup is
//! needed.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use crate::config::{Chain, ChainLink, LocalProcess, links};

/// Bytes that are read of a published chain, more than any chain has.
#[cfg(target_os = "linux")]
const MAX_CHAIN_BYTES: u64 = 16 * 1024;

/// Limit on ancestors that are inspected. Eight Trunkline processes with two programs between each
/// of them have half as many.
#[cfg(target_os = "linux")]
const MAX_ANCESTORS: usize = 64;

/// Limit on open files of one ancestor that are inspected, the lowest numbers first: an editor or a
/// browser may have more, and each costs about a microsecond.
#[cfg(target_os = "linux")]
const MAX_OPEN_FILES: usize = 4096;

/// The name of the anonymous file.
#[cfg(target_os = "linux")]
const MARKER_NAME: &str = "trunkline-chain";

/// The chain of this process: below the processes in the variable that still run, and below its
/// ancestors that are Trunkline processes.
pub(super) fn chain_below(variable: &str) -> Chain {
    let namespace = system::namespace();
    let is_running = |link: &ChainLink| {
        let local = link.process.local;
        local.is_none_or(|local| local.namespace != namespace || system::is_running(local))
    };
    let mut above: Vec<ChainLink> = links(variable).into_iter().filter(is_running).collect();
    let named: Vec<_> = above.iter().filter_map(|link| link.process.local).collect();
    // The variable names the configuration for which an ancestor started its child. The anonymous
    // file lists all configurations of the ancestor.
    for text in system::published_by_ancestors(&named) {
        for link in links(&text).into_iter().filter(is_running) {
            let is_same = |known: &&mut ChainLink| known.process == link.process;
            match above.iter_mut().find(is_same) {
                Some(known) => known.join(link),
                None => above.push(link),
            }
        }
    }
    Chain::new(above, system::own_process())
}

/// Publishes the chain of a process to its descendants.
#[derive(Default)]
pub(super) struct ChainMarker(Mutex<PublishedChain>);

#[derive(Default)]
struct PublishedChain {
    chain: String,
    /// Open for as long as the chain is published.
    file: Option<File>,
}

impl ChainMarker {
    /// Publishes a chain in addition to those of other configurations. Called before a child is
    /// started with it.
    pub(super) fn publish(&self, chain: &str) {
        let mut published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let chain = joined(&published.chain, chain);
        if published.file.is_some() && chain == published.chain {
            return;
        }
        // Children that get the variable do not need the file.
        if let Some(file) = system::anonymous_file(&chain) {
            *published = PublishedChain { chain, file: Some(file) };
        }
    }
}

/// Merges two chains of one process.
fn joined(known: &str, new: &str) -> String {
    let mut all = links(known);
    for link in links(new) {
        match all.iter_mut().find(|it| it.process == link.process) {
            Some(it) => it.join(link),
            None => all.push(link),
        }
    }
    all.iter().map(ChainLink::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::{self, File};
    use std::io::{self, Read as _, Write as _};
    use std::path::{Path, PathBuf};

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::{LocalProcess, MARKER_NAME, MAX_ANCESTORS, MAX_CHAIN_BYTES, MAX_OPEN_FILES};
    use crate::transport::stdio::procfs::Process;

    /// The PID namespace.
    pub(super) fn namespace() -> u64 {
        let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    pub(super) fn own_process() -> Option<LocalProcess> {
        let id = i32::try_from(std::process::id()).ok()?;
        let started = Process::read(id).map_or(0, |process| process.identity.started);
        Some(LocalProcess { id, started, namespace: namespace() })
    }

    /// Whether a process of this namespace runs.
    pub(super) fn is_running(local: LocalProcess) -> bool {
        match Process::read(local.id) {
            Some(process) => {
                let is_same = local.started == 0 || process.identity.started == local.started;
                is_same && !process.is_zombie
            }
            // `/proc` may show only processes of the same user, or nothing at all.
            None => super::exists(local.id),
        }
    }

    /// The chains that ancestors publish, the farthest first, without those of known processes.
    pub(super) fn published_by_ancestors(known: &[LocalProcess]) -> Vec<String> {
        let own = i32::try_from(std::process::id()).ok().and_then(Process::read);
        let mut next = own.map(|own| own.parent);
        let mut published = Vec::new();
        for _ in 0..MAX_ANCESTORS {
            let Some(process) = next.filter(|id| *id > 0).and_then(Process::read) else { break };
            let identity = process.identity;
            let is_known =
                |it: &LocalProcess| it.id == identity.id && it.started == identity.started;
            if !known.iter().any(is_known) {
                published.extend(published_by(identity.id));
            }
            next = Some(process.parent);
        }
        published.reverse();
        published
    }

    /// The chains that a process publishes: one for each of its registries.
    pub(super) fn published_by(id: i32) -> Vec<String> {
        // The files of another user's process cannot be read.
        let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else { return Vec::new() };
        let is_marker = |target: &Path| {
            let target = target.to_string_lossy();
            target.strip_prefix("/memfd:").is_some_and(|name| name.starts_with(MARKER_NAME))
        };
        let read = |path: PathBuf| {
            let mut text = String::new();
            File::open(path).ok()?.take(MAX_CHAIN_BYTES).read_to_string(&mut text).ok()?;
            Some(text)
        };
        let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let targets = files.take(MAX_OPEN_FILES).flatten().map(|file| {
            let path = file.path();
            (fs::read_link(&path), path)
        });
        // Permission is for the process, not for each of its files.
        let allowed = targets.take_while(|(target, _)| !target.as_ref().is_err_and(is_denied));
        let marked = allowed.filter(|(target, _)| target.as_ref().is_ok_and(|it| is_marker(it)));
        marked.filter_map(|(_, path)| read(path)).collect()
    }

    /// An anonymous file with a text, which children do not inherit.
    pub(super) fn anonymous_file(text: &str) -> Option<File> {
        let mut file = File::from(memfd_create(MARKER_NAME, MemfdFlags::CLOEXEC).ok()?);
        file.write_all(text.as_bytes()).ok()?;
        Some(file)
    }
}

/// Systems that do not show the open files of other processes: only the variable is used.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;

    use super::LocalProcess;

    pub(super) fn namespace() -> u64 {
        0
    }

    pub(super) fn own_process() -> Option<LocalProcess> {
        let id = i32::try_from(std::process::id()).ok()?;
        Some(LocalProcess { id, started: 0, namespace: 0 })
    }

    pub(super) fn is_running(local: LocalProcess) -> bool {
        super::exists(local.id)
    }

    pub(super) fn published_by_ancestors(_known: &[LocalProcess]) -> Vec<String> {
        Vec::new()
    }

    pub(super) fn anonymous_file(_text: &str) -> Option<File> {
        None
    }
}

/// Whether a process with this ID exists, as far as it can be determined.
#[cfg(unix)]
fn exists(id: i32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    Pid::from_raw(id).is_some_and(|id| test_kill_process(id) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn exists(_id: i32) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::config::parse;

    /// Regression: a shell started by a server, and everything started from it, could not use the
    /// configuration of that server any more after its Trunkline process had ended.
    #[test]
    fn processes_that_have_ended_are_forgotten() {
        let config = parse("x", "{}").config;
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let started = crate::transport::stdio::procfs::Process::read(id).unwrap().identity.started;
        let chain = |local| Chain::new(Vec::new(), Some(local)).variable(&config.identity);
        let local = LocalProcess { id, started, namespace: system::namespace() };
        let [running, reused, elsewhere] = [
            local,
            LocalProcess { started: started + 1, ..local },
            LocalProcess { started: started + 1, namespace: 1, ..local },
        ]
        .map(chain);
        let is_admitted = |variable: &str| chain_below(variable).check(&config).is_ok();
        assert!(!is_admitted(&running));
        assert!(is_admitted(&reused), "another process has its number");
        assert!(!is_admitted(&elsewhere), "it may run, in another namespace");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_admitted(&running), "ended");
    }

    #[test]
    fn published_chain_is_readable_by_others() {
        let (marker, chain) = (ChainMarker::default(), Chain::default());
        let [one, other] =
            ["{}", "{ }"].map(|text| chain.variable(&parse("x", text).config.identity));
        marker.publish(&one);
        marker.publish(&other);
        let own = i32::try_from(std::process::id()).unwrap();
        let published = system::published_by(own);
        let expected = joined(&one, &other);
        assert!(published.contains(&expected), "{published:?}");
    }
}
