//! Keeps track of the processes of all servers while they run, wherever those processes go.
//!
//! A process can leave the group of its server, clear its environment, and lose its parent. Each
//! alone is found at the end of the server; for all three, somebody has to look in between.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions};

use super::cgroup::Cgroup;
use super::snapshot::{Snapshot, Traits};
use super::spawn_id::{SpawnId, VARIABLE};
use crate::wire::group::Group;
use crate::wire::guard::Record;
use crate::wire::own_children::{Pause, is_own};
use crate::wire::procfs::{self, Identity, Process};

/// How often new processes are looked at while servers run. A process that leaves its group, clears
/// its environment and loses its parent sooner than that is not known to the guard; a shorter time
/// would cost more than so rare a thing is worth.
const SURVEY_PERIOD: Duration = Duration::from_secs(2);

/// Processes of one server that the guard is told of one by one. Those with a mark need not be told.
const MAX_TOLD: usize = 200;

/// Stack of the thread that looks: it calls nothing deep.
const SURVEYOR_STACK_BYTES: usize = 256 * 1024;

static TRACKER: Mutex<Option<Tracker>> = Mutex::new(None);

#[derive(Default)]
struct Tracker {
    servers: HashMap<u64, Server>,
    next: u64,
    /// Processes that belong to no server.
    unrelated: HashSet<i32>,
    /// Whether orphans become our children.
    is_subreaper: bool,
    /// Orphans of which nobody knows from which server they come.
    orphans: HashSet<Identity>,
    orphans_record: Option<Record>,
    has_surveyor: bool,
}

/// What is known about the processes of a server.
struct Server {
    spawn_id: SpawnId,
    group: Group,
    cgroup: Option<Arc<Cgroup>>,
    /// Its processes so far; some of them are gone.
    known: HashSet<Identity>,
    /// Those that the guard finds only by their number.
    told: HashSet<Identity>,
    record: Record,
}

/// A server whose processes are tracked, until this is dropped.
pub(crate) struct Tracked {
    key: u64,
}

fn lock() -> MutexGuard<'static, Option<Tracker>> {
    TRACKER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(look: impl FnOnce(&mut Tracker) -> T) -> T {
    look(lock().get_or_insert_default())
}

/// Makes this process the parent of orphaned descendants, if the system lets it.
pub(super) fn become_subreaper() {
    let set = || rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    with(|tracker| tracker.is_subreaper = tracker.is_subreaper || set().is_ok());
}

impl Tracked {
    /// Tracks a server that is about to be started in a group. Also says whether the guard knows of
    /// it.
    pub(super) fn begin(
        spawn_id: SpawnId,
        group: Group,
        cgroup: Option<Arc<Cgroup>>,
    ) -> (Self, bool) {
        let record = Record::new();
        let (known, told) = (HashSet::new(), HashSet::new());
        let server = Server { spawn_id, group, cgroup, known, told, record };
        let is_recorded = server.write_record();
        let key = with(|tracker| {
            tracker.next += 1;
            tracker.servers.insert(tracker.next, server);
            tracker.begin_to_survey();
            tracker.next
        });
        (Self { key }, is_recorded)
    }

    /// The server has been started as this process.
    pub(super) fn started(&self, id: u32) {
        let Some(process) = i32::try_from(id).ok().and_then(Process::read) else { return };
        with(|tracker| {
            tracker.unrelated.remove(&process.identity.id);
            let Some(server) = tracker.servers.get_mut(&self.key) else { return };
            if let Some(cgroup) = &server.cgroup
                && cgroup.add(id).is_err()
            {
                server.cgroup = None;
            }
            server.known.insert(process.identity);
            server.told.insert(process.identity);
            server.write_record();
        });
    }

    /// All processes of the server that run now.
    pub(super) fn search(&self, moment: Instant) -> Vec<Process> {
        let pause = with(|tracker| tracker.is_subreaper).then(Pause::begin);
        let snapshot = Snapshot::since(moment);
        with(|tracker| {
            tracker.reap(snapshot.processes());
            drop(pause);
            let Some(server) = tracker.servers.get_mut(&self.key) else { return Vec::new() };
            let found = snapshot.of_server(&server.traits(&server.in_cgroup()));
            server.known.extend(found.iter().map(|process| process.identity));
            found
        })
    }

    /// Ends everything in its cgroup, if it has one.
    pub(super) fn kill_cgroup(&self) {
        with(|tracker| {
            let server = tracker.servers.get(&self.key);
            server.and_then(|server| server.cgroup.as_ref()).inspect(|cgroup| cgroup.kill());
        });
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let server = with(|tracker| tracker.servers.remove(&self.key));
        drop(server);
    }
}

/// Orphans of servers that are gone, and what they have started; none while a server runs, since
/// they may be its own.
pub(super) fn search_orphans(moment: Instant) -> Vec<Process> {
    let pause = Pause::begin();
    if with(|tracker| !tracker.is_subreaper || !tracker.servers.is_empty()) {
        return Vec::new();
    }
    let snapshot = Snapshot::since(moment);
    with(|tracker| tracker.reap(snapshot.processes()));
    let found = snapshot.with_descendants(is_orphan);
    drop(pause);
    if found.is_empty() {
        with(|tracker| {
            tracker.orphans.clear();
            tracker.orphans_record = None;
        });
    }
    found
}

/// Whether a process was not started by us, and is our child all the same.
fn is_orphan(process: &Process) -> bool {
    u32::try_from(process.parent).is_ok_and(|parent| parent == std::process::id())
        && !is_own(process.identity)
}

impl Server {
    fn in_cgroup(&self) -> Vec<i32> {
        self.cgroup.as_ref().map_or_else(Vec::new, |cgroup| cgroup.processes())
    }

    fn traits<'a>(&'a self, in_cgroup: &'a [i32]) -> Traits<'a> {
        let (spawn_id, group) = (&self.spawn_id, self.group.number());
        Traits { spawn_id, group, known: &self.known, in_cgroup }
    }

    fn write_record(&self) -> bool {
        let cgroup = self.cgroup.as_ref().map(|cgroup| format!("c{}", cgroup.folder().display()));
        let mut items = vec![format!("g{}", self.group.number())];
        items.push(format!("t{}", self.spawn_id.as_str()));
        items.extend(cgroup);
        items.extend(told(&self.told));
        self.record.write(&items)
    }
}

fn told(processes: &HashSet<Identity>) -> impl Iterator<Item = String> {
    processes.iter().take(MAX_TOLD).map(|it| format!("p{}:{}", it.id, it.started))
}

impl Tracker {
    fn begin_to_survey(&mut self) {
        if !self.has_surveyor {
            let thread = thread::Builder::new().name("trunkline-tracker".to_owned());
            let spawned = thread.stack_size(SURVEYOR_STACK_BYTES).spawn(survey_while_servers_run);
            self.has_surveyor = spawned.is_ok();
        }
    }

    /// Looks at the processes that are new since the last time.
    fn survey(&mut self) {
        let ids: HashSet<i32> = procfs::ids().into_iter().collect();
        self.unrelated.retain(|id| ids.contains(id));
        let is_alive = |it: &Identity| Process::read(it.id).is_some_and(|now| now.identity == *it);
        for server in self.servers.values_mut() {
            server.known.retain(is_alive);
            server.told.retain(is_alive);
        }
        self.orphans.retain(is_alive);
        let new = ids.iter().filter(|id| !self.unrelated.contains(id));
        let new: Vec<_> = new.filter_map(|id| Process::read(*id)).collect();
        self.reap(&new);
        self.assign(new);
    }

    /// Finds out from which server processes descend.
    fn assign(&mut self, mut new: Vec<Process>) {
        new.retain(|it| !it.is_zombie && !self.is_known(it.identity));
        let mut changed = HashSet::new();
        let mut has_new_orphans = false;
        loop {
            let before = new.len();
            new.retain(|process| match self.server_of(process) {
                Some(key) => {
                    if let Some(server) = self.servers.get_mut(&key)
                        && server.learn(process)
                    {
                        changed.insert(key);
                    }
                    false
                }
                None if self.is_orphaned(process) => {
                    has_new_orphans |= self.orphans.insert(process.identity);
                    false
                }
                None => true,
            });
            if new.len() == before {
                break;
            }
        }
        self.unrelated.extend(new.iter().map(|process| process.identity.id));
        for server in changed.iter().filter_map(|key| self.servers.get(key)) {
            server.write_record();
        }
        if has_new_orphans {
            let items: Vec<_> = told(&self.orphans).collect();
            self.orphans_record.get_or_insert_with(Record::new).write(&items);
        }
    }

    /// Whether a process is an orphan of which nobody knows the server, or was started by one.
    fn is_orphaned(&self, process: &Process) -> bool {
        let is_below = self.orphans.iter().any(|orphan| orphan.id == process.parent);
        self.is_subreaper && (is_below || is_orphan(process))
    }

    fn is_known(&self, process: Identity) -> bool {
        self.orphans.contains(&process)
            || self.servers.values().any(|server| server.known.contains(&process))
    }

    fn server_of(&self, process: &Process) -> Option<u64> {
        let is_parent = |it: &Identity| it.id == process.parent;
        let of_parent = self.servers.iter().find(|(_, server)| server.known.iter().any(is_parent));
        let found = of_parent.or_else(|| {
            let mark = is_orphan(process).then(|| process.variable(VARIABLE)).flatten()?;
            self.servers.iter().find(|(_, server)| server.spawn_id.is_in(&mark))
        });
        found.map(|(key, _)| *key)
    }

    /// Reaps orphans that have ended. Nobody else waits for them.
    fn reap(&self, processes: &[Process]) {
        if !self.is_subreaper {
            return;
        }
        for orphan in processes.iter().filter(|it| it.is_zombie && is_orphan(it)) {
            let id = Pid::from_raw(orphan.identity.id);
            let _ = id.map(|id| rustix::process::waitpid(Some(id), WaitOptions::NOHANG));
        }
    }
}

impl Server {
    /// Takes note of a process. Says whether the guard has to be told, because it has neither the
    /// group nor the mark.
    fn learn(&mut self, process: &Process) -> bool {
        self.known.insert(process.identity);
        let mark = process.variable(VARIABLE);
        let is_found = process.group == self.group.number()
            || mark.is_some_and(|mark| self.spawn_id.is_in(&mark));
        !is_found && self.told.insert(process.identity)
    }
}

fn survey_while_servers_run() {
    loop {
        thread::sleep(SURVEY_PERIOD);
        let _pause = Pause::begin();
        let has_servers = with(|tracker| {
            let has_servers = !tracker.servers.is_empty() || !tracker.orphans.is_empty();
            if has_servers {
                tracker.survey();
            } else {
                tracker.unrelated.clear();
                tracker.has_surveyor = false;
            }
            has_servers
        });
        if !has_servers {
            return;
        }
    }
}
