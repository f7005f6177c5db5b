//! Process groups, to signal a process and its descendants as one.

/// A process group, identified by its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) struct ProcessGroup {
    #[cfg(unix)]
    leader: rustix::process::Pid,
}

/// A signal to a process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum GroupSignal {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

#[cfg(unix)]
impl ProcessGroup {
    /// The group of a process that leads one.
    pub(in crate::transport) fn led_by(process: u32) -> Option<Self> {
        let leader = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw)?;
        Some(Self { leader })
    }

    /// The process group ID.
    pub(in crate::transport) fn number(self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// Signals every process of the group. An empty group is no error.
    pub(in crate::transport) fn signal(self, order: GroupSignal) {
        let signal = match order {
            GroupSignal::Terminate => rustix::process::Signal::TERM,
            GroupSignal::Kill => rustix::process::Signal::KILL,
        };
        let _ = rustix::process::kill_process_group(self.leader, signal);
    }

    /// Reaps the leader, which is a child of this process and has ended or is about to.
    pub(in crate::transport) fn reap_leader(self) {
        use rustix::process::{WaitOptions, waitpid};
        let reap = || waitpid(Some(self.leader), WaitOptions::empty());
        while reap().is_err_and(|error| error == rustix::io::Errno::INTR) {}
    }

    /// Whether any process of the group exists, including a zombie.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::transport) fn is_alive(self) -> bool {
        rustix::process::test_kill_process_group(self.leader).is_ok()
    }
}

/// Systems without process groups: a child is stopped alone.
#[cfg(not(unix))]
impl ProcessGroup {
    pub(in crate::transport) fn led_by(_: u32) -> Option<Self> {
        None
    }

    pub(in crate::transport) fn number(self) -> i32 {
        0
    }

    pub(in crate::transport) fn signal(self, _: GroupSignal) {}

    pub(in crate::transport) fn reap_leader(self) {}

    pub(in crate::transport) fn is_alive(self) -> bool {
        false
    }
}
