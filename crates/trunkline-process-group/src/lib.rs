//! Process groups whose leader has ended.
//!
//! A process can only join a group that exists, and a group exists as long as a process is in it, also one that has
//! ended and was not reaped yet. A server is therefore started in a group whose leader has ended: the group is known
//! before the server runs, and the server does not lead it, so that it may create a session.
//!
//! The standard library can create such a leader only by starting a program, which costs more than ten times as much:
//! its memory is set up and taken down again.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::keep_exit_status;

/// Creates a process that leads a new process group and has ended or is about to, and returns its process ID. The group
/// exists until that process is reaped, and after that for as long as other processes are in it.
///
/// The caller reaps it, with `waitpid`. If this process ignores `SIGCHLD`, the signal gets its default action at the first
/// call: otherwise nothing waits for the caller to reap it, and the group does not exist.
///
/// # Errors
///
/// If the system does not permit another process, or is not Linux.
pub fn create_ended_leader() -> std::io::Result<i32> {
    #[cfg(target_os = "linux")]
    return linux::create_ended_leader();
    #[cfg(not(target_os = "linux"))]
    return Err(std::io::ErrorKind::Unsupported.into());
}
