//! Processes as read from `/proc`.

use std::fs::{self, File};
use std::io::Read as _;

use rustix::process::{Pid, PidfdFlags, Signal};

/// Limit on the bytes that are read of the environment of a process. Linux allows 128 KiB for one
/// variable; the spawn ID is among the first few kilobytes unless a process hides it on purpose.
const MAX_ENVIRONMENT_BYTES: u64 = 256 * 1024;

/// More than `/proc/ID/stat` ever has: 52 numbers and a name of at most 64 bytes. The kernel returns it with one
/// read if the buffer is large enough.
const MAX_STAT_BYTES: usize = 2048;

/// A process, distinguished from later ones with the same ID by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessIdentity {
    pub(crate) id: i32,
    /// Clock ticks since boot.
    pub(crate) started: u64,
}

/// A process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) identity: ProcessIdentity,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Whether it has exited and was not reaped yet.
    pub(crate) is_zombie: bool,
}

impl Process {
    /// The process with this ID, if there is one.
    pub(crate) fn read(id: i32) -> Option<Self> {
        let mut stat = [0; MAX_STAT_BYTES];
        let length = File::open(format!("/proc/{id}/stat")).ok()?.read(&mut stat).ok()?;
        Self::parse(id, &String::from_utf8_lossy(&stat[..length]))
    }

    fn parse(id: i32, stat: &str) -> Option<Self> {
        // The name is in parentheses, and may contain anything.
        let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
        let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { identity: ProcessIdentity { id, started }, parent, group, session, is_zombie })
    }

    /// Sends it a signal, unless its ID was reused.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(id) = Pid::from_raw(self.identity.id) else { return };
        // The pidfd pins the process, so that the one compared is the one signalled.
        let descriptor = rustix::process::pidfd_open(id, PidfdFlags::empty());
        if Self::read(self.identity.id).is_none_or(|now| now.identity != self.identity) {
            return;
        }
        // A process that is gone is fine; one without permission is found running later.
        let _ = match descriptor {
            Ok(descriptor) => rustix::process::pidfd_send_signal(descriptor, signal),
            // Before Linux 5.3.
            Err(_) => rustix::process::kill_process(id, signal),
        };
    }

    /// The value of a variable when its program was started.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let file = File::open(format!("/proc/{}/environ", self.identity.id)).ok()?;
        let mut environment = Vec::new();
        file.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut environment).ok()?;
        let value = |entry: &[u8]| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        environment.split(|byte| *byte == 0).find_map(value)
    }

    /// The name of its program, without arguments: those may contain secrets.
    pub(crate) fn name(&self) -> String {
        let name = fs::read(format!("/proc/{}/comm", self.identity.id)).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end().to_owned()
    }
}

/// The IDs of all processes.
pub(crate) fn ids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let rest = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2 3";
        let process = Process::parse(5, &format!("5 (a) Z 1 1 1\n (b)) {rest}")).unwrap();
        let identity = ProcessIdentity { id: 5, started: 4711 };
        let expected = Process { identity, parent: 7, group: 8, session: 9, is_zombie: false };
        assert_eq!(process, expected);
        for cut in ["", "5 (a", "5 (a) ", "5 (a) S 1 2", "5 (a) S 1 2 x 4"] {
            assert_eq!(Process::parse(5, cut), None);
        }
    }

    #[test]
    fn our_own_process_is_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(ids().contains(&own));
        let process = Process::read(own).unwrap();
        assert!(!process.is_zombie && !process.name().is_empty());
        assert_eq!(process.variable("PATH"), std::env::var("PATH").ok());
        assert_eq!(process.variable("NO_SUCH_VARIABLE"), None);
    }
}
