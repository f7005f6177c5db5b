//! A small process that outlives us by a moment, to stop our servers if we are killed.
//!
//! SIGKILL cannot be caught, so somebody else has to notice. The guard is a shell that reads which
//! groups of processes are ours. Its input ends when we do, however we end; then it stops what is
//! left. A death signal set in the child would be simpler and does not do: it needs unsafe code,
//! follows the thread instead of the process, and does not reach grandchildren.

use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::group::{Group, Order};

/// What the guard does. Groups are told apart by spaces on both sides; those that are gone by the
/// time we are need no order. Two seconds are for servers that clean up when asked to.
const SCRIPT: &str = r#"
trap '' HUP INT TERM PIPE
groups=' '
while read -r word group; do
  case $word in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
[ "$groups" = ' ' ] && exit 0
for group in $groups; do kill -s TERM -- "-$group" 2>/dev/null; done
sleep 2
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"#;

/// The guard of this process. It starts with the first server and ends with us.
static GUARD: OnceLock<Option<Mutex<Guard>>> = OnceLock::new();

struct Guard {
    input: ChildStdin,
    /// Kept so that it is known to be ours; it ends when `input` closes, which is when we end.
    _process: Child,
}

/// A group that is watched before a server is in it.
///
/// A group is named after its first process, so one that a server leads can be watched only when the
/// server runs. If we were killed before that, nobody would know of it. The first process of this
/// group is a shell that does nothing, and ends once the server has joined. Until it is waited for,
/// which is when this is dropped, it counts as a process of the group.
///
/// It has to be a program of its own: nothing else makes a group before a server is in it, not even
/// job control, for which most shells want a terminal, and then take it from us.
pub(super) struct Reserved {
    group: Group,
    first: Child,
}

/// A group for a server that is about to be started. There is none where there are no groups, or no
/// shell; then a server leads its own.
pub(super) fn reserve() -> Option<Reserved> {
    let first = shell("read -r line").ok()?;
    let group = Group::led_by(first.id())?;
    if tell('+', group) {
        // It is there to be there. Standing still, it does not even load, which is most of what it
        // costs. Only where the guard knows of it: paused, it does not see our end by itself.
        group.tell(Order::Pause);
    }
    Some(Reserved { group, first })
}

impl Reserved {
    pub(super) fn group(&self) -> Group {
        self.group
    }

    /// Ends the first process, without waiting until it is gone: when many servers start, that takes
    /// as long as starting it did.
    pub(super) fn release(&mut self) {
        let _ = self.first.kill();
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.release();
        let _ = self.first.wait();
    }
}

/// Says that a group is ours, and has to go when we do.
pub(super) fn watch(group: Group) {
    tell('+', group);
}

/// Says that a group is gone. Its number may be somebody else's soon.
pub(super) fn forget(group: Group) {
    tell('-', group);
}

/// Says whether there is a guard to hear it. Without one we go on as before: servers end when their
/// input does.
fn tell(word: char, group: Group) -> bool {
    let Some(guard) = GUARD.get_or_init(start) else { return false };
    let mut guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(guard.input, "{word} {}", group.number()).is_ok()
}

fn start() -> Option<Mutex<Guard>> {
    let mut process = shell(SCRIPT).ok()?;
    let input = process.stdin.take()?;
    Some(Mutex::new(Guard { input, _process: process }))
}

/// A shell that knows nothing of our surroundings, in a group of its own.
#[cfg(unix)]
fn shell(script: &str) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    Command::new("/bin/sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Apart from us, so that what is sent to our group does not reach it.
        .process_group(0)
        .spawn()
}

#[cfg(not(unix))]
fn shell(_: &str) -> io::Result<Child> {
    Err(io::ErrorKind::Unsupported.into())
}
