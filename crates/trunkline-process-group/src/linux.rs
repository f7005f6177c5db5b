//! A child process that shares the memory of this one for as long as it runs, as `posix_spawn` creates it.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Once;
use std::{io, ptr};

/// Stack of the child, which makes one system call.
const STACK_BYTES: usize = 16 * 1024;

/// Aligned as all processors require.
#[repr(C, align(16))]
struct ChildStack([u8; STACK_BYTES]);

/// Blocks all signals of this thread until it is dropped: a handler that ran in the child would change the memory of
/// this process.
struct BlockedSignals {
    before: libc::sigset_t,
}

#[expect(unsafe_code, reason = "the standard library has no signal masks")]
impl BlockedSignals {
    fn new() -> io::Result<Self> {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it writes the set that the pointer refers to.
        let _ = unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: `all` was written; `before` may be written.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        match result {
            // SAFETY: it was written, because the call succeeded.
            0 => Ok(Self { before: unsafe { before.assume_init() } }),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

#[expect(unsafe_code, reason = "the standard library has no signal masks")]
impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: `before` is a set of signals; the earlier one is not asked for.
        let _ = unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

/// What the child does: it makes itself the leader of a group, and ends when this returns.
#[expect(unsafe_code, reason = "the standard library cannot create a group alone")]
extern "C" fn lead_group(_: *mut c_void) -> c_int {
    // SAFETY: a system call with numbers. A failure is written to `errno` of the thread that is suspended meanwhile.
    unsafe { libc::setpgid(0, 0) }
}

/// Makes the system keep the exit status of child processes, if this process was started with `SIGCHLD` ignored, as some
/// job runners do. The standard library panics without it when a program cannot be started.
#[expect(unsafe_code, reason = "the standard library has no signal handlers")]
pub fn keep_exit_status() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: it writes the action that the pointer refers to, and changes nothing.
        let read = unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), action.as_mut_ptr()) };
        // SAFETY: zeros are an action too, if nothing was written.
        let mut action = unsafe { action.assume_init() };
        let is_ignored =
            action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0;
        if read == 0 && is_ignored {
            action.sa_flags &= !libc::SA_NOCLDWAIT;
            if action.sa_sigaction == libc::SIG_IGN {
                action.sa_sigaction = libc::SIG_DFL;
            }
            // SAFETY: an action of the system, with the same handler or none.
            let _ = unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut()) };
        }
    });
}

/// Makes a child the leader of a group, also if it has ended, and reaps it if that fails.
#[expect(unsafe_code, reason = "the standard library cannot create a group alone")]
fn require_group(child: i32) -> io::Result<i32> {
    // SAFETY: a system call with numbers.
    if unsafe { libc::setpgid(child, child) } == 0 {
        return Ok(child);
    }
    let error = io::Error::last_os_error();
    // SAFETY: a system call with numbers; the status is not written.
    let _ = unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    Err(error)
}

#[expect(unsafe_code, reason = "the standard library creates a process only to run a program")]
pub(crate) fn create_ended_leader() -> io::Result<i32> {
    keep_exit_status();
    let mut stack = Box::<ChildStack>::new_uninit();
    let top = stack.as_mut_ptr().wrapping_add(1).cast::<c_void>();
    // Those of `vfork`. Sharing the open files would save time with many of them, but Valgrind ends a program that does.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let signals = BlockedSignals::new()?;
    // SAFETY: the stack grows downwards from `top`, which is aligned, and belongs to the child alone. The child shares
    // this memory, and with `CLONE_VFORK` this thread is suspended until the child has ended, so that the stack outlives
    // it. The child runs no code but one system call: it does not allocate, take locks or unwind, and handles no signal.
    let child = unsafe { libc::clone(lead_group, top, flags, ptr::null_mut()) };
    let result = if child < 0 { Err(io::Error::last_os_error()) } else { Ok(child) };
    drop((signals, stack));
    // The child cannot report a failure.
    result.and_then(require_group)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::{fs, thread};

    use rustix::process::{
        Pid, WaitId, WaitIdOptions, WaitOptions, test_kill_process_group, waitid, waitpid,
    };

    use super::*;

    /// The fields of `/proc/ID/stat` after the name: state, parent, group and so on.
    fn fields(id: i32) -> Vec<String> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
        fields.map(str::to_owned).collect()
    }

    fn reap(id: i32) {
        let (reaped, _) = waitpid(Pid::from_raw(id), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(reaped.as_raw_nonzero().get(), id);
    }

    #[test]
    fn the_leader_has_ended_and_its_group_can_be_joined() {
        let leader = create_ended_leader().unwrap();
        // It may still be ending.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_raw(leader).unwrap()), ended).unwrap();
        assert_eq!(fields(leader)[0], "Z");
        assert_eq!(fields(leader)[2], leader.to_string());
        let mut member = Command::new("sleep");
        let mut member = member.arg("1000").process_group(leader).spawn().unwrap();
        let id = i32::try_from(member.id()).unwrap();
        assert_eq!(fields(id)[2], leader.to_string());
        reap(leader);
        assert!(test_kill_process_group(Pid::from_raw(leader).unwrap()).is_ok());
        member.kill().unwrap();
        member.wait().unwrap();
        assert!(test_kill_process_group(Pid::from_raw(leader).unwrap()).is_err());
    }

    #[test]
    fn a_member_can_create_a_session() {
        let leader = create_ended_leader().unwrap();
        // `setsid` creates another process where it leads the group.
        let script = "import os; os.setsid()";
        let mut member = Command::new("python3");
        let member = member.args(["-c", script]).process_group(leader).stderr(Stdio::null());
        assert!(member.status().unwrap().success());
        reap(leader);
    }

    /// Other threads allocate and create processes at the same time.
    #[test]
    fn leaders_are_created_by_several_threads() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(|| {
                    for count in 0..200 {
                        let leader = create_ended_leader().unwrap();
                        let text = "x".repeat(count * 100);
                        assert_eq!(fields(leader)[2], leader.to_string());
                        reap(leader);
                        assert_eq!(text.len(), count * 100);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
    }

    #[test]
    fn the_signals_of_this_thread_stay_as_they_were() {
        let blocked = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            status.lines().find(|line| line.starts_with("SigBlk:")).unwrap().to_owned()
        };
        let before = blocked();
        let leader = create_ended_leader().unwrap();
        assert_eq!(blocked(), before);
        reap(leader);
    }
}
