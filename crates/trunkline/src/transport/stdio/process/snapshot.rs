//! A snapshot of all processes, and the search for those that descend from a server.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::spawn_id::{SpawnId, VARIABLE};
use crate::transport::stdio::procfs::{self, Process, ProcessIdentity};

/// All processes at one moment.
pub(super) struct Snapshot {
    begun: Instant,
    processes: Vec<Process>,
    /// The value of [`VARIABLE`] in the environment of the processes that have it.
    marks: HashMap<i32, String>,
}

/// The properties by which processes of a server are recognised.
pub(super) struct ServerTraits<'a> {
    pub(super) spawn_id: &'a SpawnId,
    /// The process group that was created for it, in the session of the host.
    pub(super) group: i32,
    /// Processes that are known to belong to it.
    pub(super) known: &'a HashSet<ProcessIdentity>,
    /// The processes in its cgroup.
    pub(super) in_cgroup: &'a [i32],
}

impl Snapshot {
    /// A snapshot that was started after a moment. Concurrent searches share one: all servers end
    /// together when the host does.
    pub(super) fn since(moment: Instant) -> Arc<Self> {
        static LAST: Mutex<Option<Arc<Snapshot>>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(last) if last.begun >= moment => Arc::clone(last),
            _ => Arc::clone(last.insert(Arc::new(Self::take()))),
        }
    }

    fn take() -> Self {
        let begun = Instant::now();
        let processes: Vec<_> = procfs::ids().into_iter().filter_map(Process::read).collect();
        let alive = processes.iter().filter(|process| !process.is_zombie);
        let marks = alive.filter_map(|it| Some((it.identity.id, it.variable(VARIABLE)?)));
        let marks = marks.collect();
        Self { begun, processes, marks }
    }

    pub(super) fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The processes of a server, without zombies.
    pub(super) fn of_server(&self, traits: &ServerTraits<'_>) -> Vec<Process> {
        let own_session = self.own().map(|own| own.session);
        self.with_descendants(|process| {
            let id = process.identity.id;
            traits.known.contains(&process.identity)
                || (process.group == traits.group && Some(process.session) == own_session)
                || traits.in_cgroup.contains(&id)
                || self.marks.get(&id).is_some_and(|mark| traits.spawn_id.is_in(mark))
        })
    }

    /// The recognised processes and their descendants, without zombies.
    pub(super) fn with_descendants(
        &self,
        is_recognised: impl Fn(&Process) -> bool,
    ) -> Vec<Process> {
        let Some(own) = self.own() else { return Vec::new() };
        let others = self.processes.iter().filter(|it| it.identity != own.identity);
        let mut rest: Vec<_> = others.collect();
        let mut found: Vec<Process> = Vec::new();
        let mut parents = HashSet::new();
        // A session other than that of the host was created by a process of a server, so all its
        // processes descend from that one. A process cannot join a session from outside.
        let mut sessions = HashSet::new();
        loop {
            let before = rest.len();
            rest.retain(|process| {
                let is_found = is_recognised(process)
                    || parents.contains(&process.parent)
                    || sessions.contains(&process.session);
                if is_found {
                    parents.insert(process.identity.id);
                    if process.session != own.session {
                        sessions.insert(process.session);
                    }
                    found.push((*process).clone());
                }
                !is_found
            });
            if rest.len() == before {
                break;
            }
        }
        found.retain(|process| !process.is_zombie);
        found
    }

    fn own(&self) -> Option<&Process> {
        let id = i32::try_from(std::process::id()).ok()?;
        self.processes.iter().find(|process| process.identity.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The session of this test.
    const OURS: i32 = 50;

    fn process(id: i32, parent: i32, group: i32, session: i32) -> Process {
        let identity = ProcessIdentity { id, started: 1 };
        Process { identity, parent, group, session, is_zombie: false }
    }

    fn own() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    fn found(
        processes: Vec<Process>,
        marks: &[(i32, &str)],
        known: &[ProcessIdentity],
    ) -> Vec<i32> {
        let marks = marks.iter().map(|(id, mark)| (*id, (*mark).to_owned())).collect();
        let host = process(own(), 1, OURS, OURS);
        let processes = [vec![host], processes].concat();
        let snapshot = Snapshot { begun: Instant::now(), processes, marks };
        let spawn_id = SpawnId::generate().unwrap();
        let known = known.iter().copied().collect();
        let traits =
            ServerTraits { spawn_id: &spawn_id, group: 1000, known: &known, in_cgroup: &[] };
        let mut ids: Vec<_> =
            snapshot.of_server(&traits).iter().map(|process| process.identity.id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn descendants_are_found_whatever_group_and_session_they_are_in() {
        let processes = vec![
            process(1_000_004, 1_000_003, 1_000_004, 1_000_004),
            process(1_000_003, 1_000_001, 1_000_003, OURS),
            process(1_000_001, own(), 1000, OURS),
            // Its parent is gone, but another process of its session is known.
            process(1_000_005, 1, 1_000_005, 1_000_004),
            process(1_000_006, 1, 1_000_006, 1_000_006),
            process(1_000_007, own(), 1_000_007, OURS),
        ];
        assert_eq!(found(processes, &[], &[]), [1_000_001, 1_000_003, 1_000_004, 1_000_005]);
    }

    #[test]
    fn server_in_our_group_does_not_include_us_or_our_children() {
        let server = process(1_000_001, own(), OURS, OURS);
        let other = process(1_000_002, own(), OURS, OURS);
        let known = [server.identity];
        assert_eq!(found(vec![server, other], &[], &known), [1_000_001]);
    }

    #[test]
    fn numbers_that_belong_to_others_by_now_are_not_found() {
        let later = process(1_000_001, 1, 1_000_001, 1_000_001);
        let earlier = ProcessIdentity { id: 1_000_001, started: 0 };
        // A group with the same number in another session is a different group.
        let stranger = process(1_000_002, 1, 1000, 77);
        assert_eq!(found(vec![later, stranger], &[], &[earlier]), [0; 0]);
    }

    #[test]
    fn processes_with_another_mark_are_not_found() {
        let marked = process(1_000_001, 1, 1_000_001, 1_000_001);
        assert_eq!(found(vec![marked], &[(1_000_001, "0123")], &[]), [0; 0]);
    }
}
