//! Runs a program to completion and kills its process group afterwards.

use std::fmt::{self, Display, Formatter};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// Exit status and output of a program.
pub(super) struct ProcessOutput {
    pub(super) status: ExitStatus,
    pub(super) printed: String,
    complaint: String,
}

impl Display for ProcessOutput {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}{}", self.status, self.printed, self.complaint)
    }
}

/// Runs a program to completion with this input. When the returned future completes or is dropped,
/// no process of its group is left.
///
/// # Panics
///
/// When the program cannot be started.
pub(super) async fn finish(mut command: Command, input: &str) -> ProcessOutput {
    // Bypasses proxies of the machine between a test and its server.
    command.env("NO_PROXY", "*").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = command.spawn();
    let mut child = started.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let _group = ProcessGroup::of(&child);
    let mut writer = child.stdin.take().expect("invariant: its input is a pipe");
    // A program may close its stdin without reading it.
    let _ = writer.write_all(input.as_bytes()).await;
    drop(writer);
    let output = child.wait_with_output().await.expect("its output can be read");
    ProcessOutput {
        status: output.status,
        printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        complaint: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The process group of a program, killed on drop.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self(leader.and_then(Pid::from_raw))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Fails if all processes have ended, which is expected.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    const POLL_INTERVAL: Duration = Duration::from_millis(50);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    async fn has_ended(process: &str) -> bool {
        for _ in 0..100 {
            let asked = Command::new("ps").args(["-o", "stat=", "-p", process]).output().await;
            let state = String::from_utf8(asked.unwrap().stdout).unwrap();
            // A zombie has ended, and only waits to be reaped.
            if state.is_empty() || state.starts_with('Z') {
                return true;
            }
            sleep(POLL_INTERVAL).await;
        }
        false
    }

    #[tokio::test]
    async fn program_gets_its_input_and_its_output_is_read() {
        let finished = finish(shell("cat; echo no >&2; exit 3"), "yes").await;
        assert_eq!((finished.status.code(), &*finished.printed), (Some(3), "yes"));
        assert!(finished.to_string().ends_with("yesno\n"), "{finished}");
    }

    #[tokio::test]
    async fn remaining_child_processes_are_killed() {
        let finished = finish(shell("sleep 1000 >/dev/null 2>&1 & echo $!"), "").await;
        assert!(has_ended(finished.printed.trim()).await);
    }

    #[tokio::test]
    async fn slow_program_is_killed_with_its_children() {
        let file = std::env::temp_dir().join(format!("trunkline-bounded-{}", std::process::id()));
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let started = async {
            loop {
                match std::fs::read_to_string(&file) {
                    Ok(started) if started.ends_with('\n') => return started,
                    _ => sleep(POLL_INTERVAL).await,
                }
            }
        };
        let started = tokio::select! {
            finished = finish(shell(&script), "") => panic!("it never ends: {finished}"),
            started = timeout(Duration::from_secs(60), started) => started.unwrap(),
        };
        std::fs::remove_file(&file).unwrap();
        assert!(has_ended(started.trim()).await);
    }
}
