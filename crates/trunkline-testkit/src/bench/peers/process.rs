//! The processes of a peer: their processor time and memory, without those of the servers behind it.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::host::program;
use crate::measure::on_processor_of;
use crate::server::{SERVE, SERVE_HTTP};

/// Time for a peer to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Script of npm's reference server.
pub(crate) const EVERYTHING: &str = "server-everything/dist/index.js";

/// A home directory of one peer. All its processes have it as their `HOME`, also those that leave the
/// process group.
pub(crate) struct PeerHome {
    pub(crate) folder: PathBuf,
}

impl PeerHome {
    pub(crate) fn new() -> Result<Self, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-bench-{}-{number}", process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(Self { folder })
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(path)
    }

    /// Creates a folder for its owner only.
    pub(crate) fn private_folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| error.to_string())?;
        Ok(path)
    }

    fn all_processes(&self, root: Option<u32>) -> Vec<ProcessEntry> {
        let marker = format!("HOME={}", self.folder.display());
        let entries: Vec<_> = list_processes(marker.as_bytes());
        let parents: HashMap<u32, u32> = entries.iter().map(|it| (it.id, it.parent)).collect();
        let is_descendant = |mut id: u32| {
            while let Some(parent) = parents.get(&id) {
                if Some(id) == root {
                    return true;
                }
                id = *parent;
            }
            false
        };
        entries.into_iter().filter(|it| it.is_marked || is_descendant(it.id)).collect()
    }
}

impl Drop for PeerHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process of a peer or behind it.
struct ProcessEntry {
    id: u32,
    parent: u32,
    is_marked: bool,
    is_upstream: bool,
}

fn list_processes(marker: &[u8]) -> Vec<ProcessEntry> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = folders.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let own = program();
    let entry = |id: u32| {
        let folder = PathBuf::from(format!("/proc/{id}"));
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        // The name of the program, in parentheses, may contain anything.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let variables = fs::read(folder.join("environ")).unwrap_or_default();
        let is_marked = variables.split(|byte| *byte == 0).any(|it| it == marker);
        Some(ProcessEntry { id, parent, is_marked, is_upstream: is_upstream(&folder, &own) })
    };
    ids.filter_map(entry).collect()
}

/// Whether a process is a server behind a peer: this program as a server, or npm's reference server.
fn is_upstream(folder: &Path, own: &Path) -> bool {
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let program = fs::read_link(folder.join("exe")).unwrap_or_default();
    let first = words.get(1).map_or("", |word| word);
    (program == own && [SERVE, SERVE_HTTP].contains(&first)) || first.ends_with(EVERYTHING)
}

/// A running peer.
pub(crate) struct PeerProcess {
    child: Child,
    home: PeerHome,
}

impl PeerProcess {
    /// Starts a peer. With `stdio`, its streams are pipes for a client; otherwise they go to its log.
    pub(crate) fn start(
        mut command: Command,
        home: PeerHome,
        stdio: bool,
    ) -> Result<(Self, Option<(ChildStdin, ChildStdout)>), String> {
        let file = || File::create(home.folder.join("log")).map_err(|error| error.to_string());
        let log = file()?;
        let copy = log.try_clone().map_err(|error| error.to_string())?;
        command.env("HOME", &home.folder).env("NO_PROXY", "*").current_dir(&home.folder);
        command.stdin(Stdio::piped()).stderr(log);
        command.stdout(if stdio { Stdio::piped() } else { copy.into() });
        let mut child = command.spawn().map_err(|error| format!("it does not start: {error}"))?;
        let streams = if stdio { child.stdin.take().zip(child.stdout.take()) } else { None };
        Ok((Self { child, home }, streams))
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.folder.join("log")).unwrap_or_default()
    }

    /// The reason of its end, if it has ended.
    pub(crate) fn end_reason(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("it ended with {status}: {}", self.last_words()))
    }

    /// The last line of the log.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let line = log.trim().lines().last().unwrap_or("it printed nothing");
        line.chars().take(200).collect()
    }

    /// The processes of the peer, without servers; the first is the main process.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let entries = self.home.all_processes(self.child.id());
        let mut ids: Vec<_> = entries.iter().filter(|it| !it.is_upstream).map(|it| it.id).collect();
        ids.sort_by_key(|id| Some(*id) != self.child.id());
        ids
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let Some(main) = self.child.id() else { return };
        let signal = |id: u32, signal: Signal| {
            if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
                let _ = kill_process(id, signal);
            }
        };
        drop(self.child.stdin.take());
        signal(main, Signal::TERM);
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            let _ = self.child.try_wait();
            let left = self.home.all_processes(None);
            if left.is_empty() {
                return;
            }
            if Instant::now() > deadline {
                left.iter().for_each(|it| signal(it.id, Signal::KILL));
                let _ = self.child.start_kill();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Processor time of processes since their start.
pub(crate) fn processor_time_of(processes: &[u32]) -> Duration {
    processes.iter().map(|id| on_processor_of(*id)).sum()
}

/// Memory of a process, in bytes: `Rss:`, `Pss:` or `Private_Dirty:`.
pub(crate) fn memory_of(process: u32, key: &str) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0
}
