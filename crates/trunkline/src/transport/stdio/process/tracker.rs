//! Tracks the processes of all servers while they run, including those that try to escape.
//!
//! A process can leave the group of its server, clear its environment, and lose its parent. Each
//! alone is detected when the server ends; the combination of all three needs surveys in between.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions};

use super::cgroup::Cgroup;
use super::cgroup_move::CgroupMove;
use super::snapshot::{ServerTraits, Snapshot};
use super::spawn_id::{SpawnId, VARIABLE};
use crate::transport::stdio::own_children::SpawnPause;
use crate::transport::stdio::process_group::ProcessGroup;
use crate::transport::stdio::procfs::{self, Process, ProcessIdentity};
use crate::transport::stdio::watchdog::WatchdogRecord;

/// Interval of surveys while servers run. A process that leaves its group, clears its environment
/// and loses its parent within it is unknown to the watchdog; a shorter interval would cost more
/// than so rare a case justifies.
const SURVEY_PERIOD: Duration = Duration::from_secs(2);

/// Limit on processes of one server that are listed in its watchdog record. Those with a spawn ID
/// need not be listed.
const MAX_TOLD: usize = 200;

/// Stack of the survey thread, which makes no deep calls.
const SURVEYOR_STACK_BYTES: usize = 256 * 1024;

static TRACKER: Mutex<Option<Tracker>> = Mutex::new(None);

#[derive(Default)]
struct Tracker {
    servers: HashMap<u64, TrackedServer>,
    next: u64,
    /// Processes that belong to no server.
    unrelated: HashSet<i32>,
    /// Whether orphans become child processes of this process.
    is_subreaper: bool,
    /// Orphans whose server is unknown.
    orphans: HashSet<ProcessIdentity>,
    orphans_record: Option<WatchdogRecord>,
    has_surveyor: bool,
}

/// The known processes of a server.
struct TrackedServer {
    spawn_id: SpawnId,
    group: ProcessGroup,
    cgroup: Option<Arc<Cgroup>>,
    /// Its processes so far; some of them have ended.
    known: HashSet<ProcessIdentity>,
    /// Those that the watchdog can find only by process ID.
    told: HashSet<ProcessIdentity>,
    record: WatchdogRecord,
}

/// The server that a process descends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ProcessOwner {
    Server(u64),
    /// An unknown server: an orphan without a spawn ID.
    Unknown,
}

/// Tracks the processes of a server until it is dropped.
pub(crate) struct TrackerGuard {
    key: u64,
    with_cgroup: bool,
}

fn lock() -> MutexGuard<'static, Option<Tracker>> {
    TRACKER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(look: impl FnOnce(&mut Tracker) -> T) -> T {
    look(lock().get_or_insert_default())
}

/// Makes this process the parent of orphaned descendants, if the system permits it.
pub(super) fn become_subreaper() {
    let set = || rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    with(|tracker| tracker.is_subreaper = tracker.is_subreaper || set().is_ok());
}

impl TrackerGuard {
    /// Tracks a server that is about to be started in a group.
    pub(super) fn begin(spawn_id: SpawnId, group: ProcessGroup, with_cgroup: bool) -> Self {
        let record = WatchdogRecord::new();
        let (known, told) = (HashSet::new(), HashSet::new());
        let server = TrackedServer { spawn_id, group, cgroup: None, known, told, record };
        server.write_record();
        let key = with(|tracker| {
            tracker.next += 1;
            tracker.servers.insert(tracker.next, server);
            tracker.start_survey();
            tracker.next
        });
        Self { key, with_cgroup }
    }

    /// Registers the process that the server was started as, and begins to move it into its cgroup.
    pub(super) fn started(&self, id: u32) -> Option<CgroupMove> {
        let process = i32::try_from(id).ok().and_then(Process::read)?;
        let spawn_id = with(|tracker| {
            tracker.unrelated.remove(&process.identity.id);
            let server = tracker.servers.get_mut(&self.key)?;
            server.known.insert(process.identity);
            server.told.insert(process.identity);
            server.record.add(&process_item(process.identity));
            Some(server.spawn_id.clone())
        })?;
        let key = self.key;
        self.with_cgroup.then(|| CgroupMove::begin(move || move_to_cgroup(key, &spawn_id, id)))
    }

    /// All running processes of the server.
    pub(super) fn search(&self, moment: Instant) -> Vec<Process> {
        let pause = with(|tracker| tracker.is_subreaper).then(SpawnPause::begin).flatten();
        let snapshot = Snapshot::since(moment);
        with(|tracker| {
            if let Some(pause) = pause {
                tracker.reap(snapshot.processes(), &pause);
            }
            let Some(server) = tracker.servers.get_mut(&self.key) else { return Vec::new() };
            let found = snapshot.of_server(&server.traits(&server.in_cgroup()));
            server.known.extend(found.iter().map(|process| process.identity));
            found
        })
    }

    /// Kills everything in its cgroup, if it has one.
    pub(super) fn kill_cgroup(&self) {
        with(|tracker| {
            let server = tracker.servers.get(&self.key);
            server.and_then(|server| server.cgroup.as_ref()).inspect(|cgroup| cgroup.kill());
        });
    }
}

impl Drop for TrackerGuard {
    fn drop(&mut self) {
        let server = with(|tracker| tracker.servers.remove(&self.key));
        drop(server);
    }
}

/// Creates a cgroup for a server, where permitted, and moves its process into it.
fn move_to_cgroup(key: u64, spawn_id: &SpawnId, process: u32) {
    let Some(cgroup) = Cgroup::create(spawn_id) else { return };
    let cgroup = Arc::new(cgroup);
    // Recorded first, so that the watchdog removes it however this process ends.
    set_cgroup(key, Some(Arc::clone(&cgroup)));
    if cgroup.add(process).is_err() {
        set_cgroup(key, None);
    }
}

fn set_cgroup(key: u64, cgroup: Option<Arc<Cgroup>>) {
    with(|tracker| {
        let Some(server) = tracker.servers.get_mut(&key) else { return };
        server.cgroup = cgroup;
        match server.cgroup_item() {
            Some(item) => server.record.add(&item),
            None => server.write_record(),
        }
    });
}

/// Orphans of servers that have ended, with their descendants; none while a server runs or starts,
/// because they may belong to it.
pub(super) fn search_orphans(moment: Instant) -> Vec<Process> {
    let Some(pause) = SpawnPause::begin() else { return Vec::new() };
    if with(|tracker| !tracker.is_subreaper || !tracker.servers.is_empty()) {
        return Vec::new();
    }
    let snapshot = Snapshot::since(moment);
    with(|tracker| tracker.reap(snapshot.processes(), &pause));
    let found = snapshot.with_descendants(|process| is_orphan(process, &pause));
    drop(pause);
    if found.is_empty() {
        with(|tracker| {
            tracker.orphans.clear();
            tracker.orphans_record = None;
        });
    }
    found
}

/// Whether a process is a child of this process that it did not start.
fn is_orphan(process: &Process, pause: &SpawnPause) -> bool {
    u32::try_from(process.parent).is_ok_and(|parent| parent == std::process::id())
        && !pause.is_own(process.identity)
}

impl TrackedServer {
    fn in_cgroup(&self) -> Vec<i32> {
        self.cgroup.as_ref().map_or_else(Vec::new, |cgroup| cgroup.processes())
    }

    fn traits<'a>(&'a self, in_cgroup: &'a [i32]) -> ServerTraits<'a> {
        let (spawn_id, group) = (&self.spawn_id, self.group.number());
        ServerTraits { spawn_id, group, known: &self.known, in_cgroup }
    }

    fn write_record(&self) {
        let mut items = vec![format!("g{}", self.group.number())];
        items.push(format!("t{}", self.spawn_id.as_str()));
        items.extend(self.cgroup_item());
        items.extend(on_told(&self.told));
        self.record.write(&items);
    }

    fn cgroup_item(&self) -> Option<String> {
        self.cgroup.as_ref().map(|cgroup| format!("c{}", cgroup.folder().display()))
    }
}

fn on_told(processes: &HashSet<ProcessIdentity>) -> impl Iterator<Item = String> {
    processes.iter().take(MAX_TOLD).copied().map(process_item)
}

fn process_item(process: ProcessIdentity) -> String {
    format!("p{}:{}", process.id, process.started)
}

impl Tracker {
    fn start_survey(&mut self) {
        if !self.has_surveyor {
            let thread = thread::Builder::new().name("trunkline-tracker".to_owned());
            let spawned = thread.stack_size(SURVEYOR_STACK_BYTES).spawn(survey_while_servers_run);
            self.has_surveyor = spawned.is_ok();
        }
    }

    /// Updates the state with a survey. Without a pause, orphans are left for the next one.
    fn update(&mut self, survey: ProcessSurvey, pause: Option<&SpawnPause>) {
        let ProcessSurvey { ids, related } = survey;
        self.unrelated.retain(|id| ids.contains(id));
        // Processes that were started after the survey are not in it.
        let now = |id: i32| match related.get(&id) {
            Some(process) => Some(process.identity),
            None => Process::read(id).map(|process| process.identity),
        };
        let is_alive = |it: &ProcessIdentity| now(it.id) == Some(*it);
        for server in self.servers.values_mut() {
            server.known.retain(is_alive);
            server.told.retain(is_alive);
        }
        self.orphans.retain(is_alive);
        let new: Vec<_> = related.into_values().collect();
        if let Some(pause) = pause {
            self.reap(&new, pause);
        }
        self.assign(new, pause);
    }

    /// Determines the server that each process descends from.
    fn assign(&mut self, mut new: Vec<Process>, pause: Option<&SpawnPause>) {
        let mut owners = self.owners();
        new.retain(|it| !it.is_zombie && !owners.contains_key(&it.identity.id));
        // Parents come first, so that one pass is enough for a server with thousands of processes.
        new.sort_unstable_by_key(|process| (process.identity.started, process.identity.id));
        let mut changed = HashSet::new();
        loop {
            let before = new.len();
            new.retain(|process| {
                let owner = owners.get(&process.parent).copied();
                let of_orphan = || pause.and_then(|pause| self.owner_of_orphan(process, pause));
                let Some(owner) = owner.or_else(of_orphan) else {
                    return true;
                };
                owners.insert(process.identity.id, owner);
                if self.learn(owner, process) {
                    changed.insert(owner);
                }
                false
            });
            if new.len() == before {
                break;
            }
        }
        // Without a pause, they may be orphans.
        if pause.is_some() {
            self.unrelated.extend(new.iter().map(|process| process.identity.id));
        }
        for owner in changed {
            self.update_watchdog(owner);
        }
    }

    /// The owner of every known process, by process ID.
    fn owners(&self) -> HashMap<i32, ProcessOwner> {
        let of_servers = self.servers.iter().flat_map(|(key, server)| {
            server.known.iter().map(|process| (process.id, ProcessOwner::Server(*key)))
        });
        let orphans = self.orphans.iter().map(|process| (process.id, ProcessOwner::Unknown));
        of_servers.chain(orphans).collect()
    }

    /// The owner of an orphan that became a child of this process; `None` if it is no orphan.
    fn owner_of_orphan(&self, process: &Process, pause: &SpawnPause) -> Option<ProcessOwner> {
        if !self.is_subreaper || !is_orphan(process, pause) {
            return None;
        }
        let mark = process.variable(VARIABLE);
        let is_marked =
            |server: &TrackedServer| mark.as_ref().is_some_and(|it| server.spawn_id.is_in(it));
        let server = self.servers.iter().find(|(_, server)| is_marked(server));
        Some(server.map_or(ProcessOwner::Unknown, |(key, _)| ProcessOwner::Server(*key)))
    }

    /// Records a process. Returns whether the watchdog record has to be updated.
    fn learn(&mut self, owner: ProcessOwner, process: &Process) -> bool {
        match owner {
            ProcessOwner::Unknown => self.orphans.insert(process.identity),
            ProcessOwner::Server(key) => {
                self.servers.get_mut(&key).is_some_and(|server| server.learn(process))
            }
        }
    }

    fn update_watchdog(&mut self, owner: ProcessOwner) {
        match owner {
            ProcessOwner::Unknown => {
                let items: Vec<_> = on_told(&self.orphans).collect();
                self.orphans_record.get_or_insert_with(WatchdogRecord::new).write(&items);
            }
            ProcessOwner::Server(key) => {
                self.servers.get(&key).inspect(|server| server.write_record());
            }
        }
    }

    /// Reaps orphans that have ended. No other code waits for them.
    fn reap(&self, processes: &[Process], pause: &SpawnPause) {
        if !self.is_subreaper {
            return;
        }
        for orphan in processes.iter().filter(|it| it.is_zombie && is_orphan(it, pause)) {
            // Since it was read it may have been reaped, and its ID reused for an own child.
            if Process::read(orphan.identity.id).is_none_or(|now| now.identity != orphan.identity) {
                continue;
            }
            let id = Pid::from_raw(orphan.identity.id);
            let _ = id.map(|id| rustix::process::waitpid(Some(id), WaitOptions::NOHANG));
        }
    }
}

impl TrackedServer {
    /// Records a process. Returns whether the watchdog record has to be updated, because the
    /// process has neither the group nor the spawn ID.
    fn learn(&mut self, process: &Process) -> bool {
        self.known.insert(process.identity);
        let mark = process.variable(VARIABLE);
        let is_found = process.group == self.group.number()
            || mark.is_some_and(|mark| self.spawn_id.is_in(&mark));
        !is_found && self.told.insert(process.identity)
    }
}

/// The processes of the machine at one moment, without those that belong to no server.
struct ProcessSurvey {
    ids: HashSet<i32>,
    related: HashMap<i32, Process>,
}

impl ProcessSurvey {
    fn begin(unrelated: &HashSet<i32>) -> Self {
        let ids: HashSet<i32> = procfs::ids().into_iter().collect();
        let related = ids.difference(unrelated).filter_map(|id| Some((*id, Process::read(*id)?)));
        let related = related.collect();
        Self { ids, related }
    }
}

fn survey_while_servers_run() {
    loop {
        thread::sleep(SURVEY_PERIOD);
        let unrelated = with(|tracker| {
            let has_servers = !tracker.servers.is_empty() || !tracker.orphans.is_empty();
            if !has_servers {
                tracker.unrelated.clear();
                tracker.has_surveyor = false;
            }
            has_servers.then(|| tracker.unrelated.clone())
        });
        let Some(unrelated) = unrelated else { return };
        // Reading thousands of processes takes long: only the update after it blocks starts of
        // servers.
        let survey = ProcessSurvey::begin(&unrelated);
        let pause = SpawnPause::begin();
        with(|tracker| tracker.update(survey, pause.as_ref()));
    }
}
