//! The process of a stdio server: started with a limited environment, stopped with all its
//! descendants.

mod spawn_id;
mod ancestry;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod cgroup_move;
#[cfg(target_os = "linux")]
mod snapshot;
#[cfg(target_os = "linux")]
mod tracker;
mod processes;
mod child_env;

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::own_children;
use super::process_group::{GroupSignal, ProcessGroup};
use super::watchdog::{self, ReservedGroup};
use crate::config::{ResolvedStdio, Secret, is_command_line};
use crate::error::{Error, ErrorKind};
#[cfg(target_os = "linux")]
use cgroup_move::CgroupMove;
pub use child_env::ChildOptions;
pub use processes::RemainingProcess;
use processes::{AFTER_KILL, SEARCH_PAUSE, ServerProcesses};
use spawn_id::SpawnId;

/// Time for a server to exit after its input was closed, before SIGTERM.
const QUIET_END: Duration = Duration::from_millis(500);

/// Interval between kills of processes that do not end: they may start others meanwhile.
const KILL_PAUSE: Duration = Duration::from_millis(100);

/// A running process with its descendants.
pub(in crate::transport) struct ServerProcess {
    /// The move into its cgroup, until it is finished. Before `child`, because it is dropped first.
    #[cfg(target_os = "linux")]
    cgroup_move: Option<CgroupMove>,
    child: Child,
    /// Its tracked descendants. `None` once it was stopped.
    processes: Option<Arc<Mutex<ServerProcesses>>>,
    /// The process that reserves the group for the server, until the server has written output.
    reserved: Option<ReservedGroup>,
    #[cfg(windows)]
    job: Option<crate::transport::stdio::job::ServerJob>,
}

/// The standard streams of a process.
pub(in crate::transport) struct ChildStreams {
    pub(in crate::transport) input: ChildStdin,
    pub(in crate::transport) output: ChildStdout,
    pub(in crate::transport) errors: ChildStderr,
}

impl ServerProcess {
    pub(in crate::transport) fn start(
        program: &ResolvedStdio,
        options: &ChildOptions,
    ) -> Result<(Self, ChildStreams), Error> {
        let mut command = Command::new(program.command.expose());
        command.args(program.args.iter().map(Secret::expose));
        options.set_env(&mut command, program);
        if let Some(directory) = &program.cwd {
            command.current_dir(directory.expose());
        }
        Self::spawn(command, options).map_err(|error| start_error(program, &error))
    }

    /// Starts a command that has its arguments, directory and environment.
    pub(in crate::transport) fn spawn(
        mut command: Command,
        options: &ChildOptions,
    ) -> io::Result<(Self, ChildStreams)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, processes, reserved) = spawn_in_group(&mut command, options)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(io::Error::other("the process has no streams"));
        };
        let process = Self {
            #[cfg(target_os = "linux")]
            cgroup_move: processes.as_ref().zip(child.id()).and_then(|(it, id)| it.started(id)),
            #[cfg(windows)]
            job: crate::transport::stdio::job::ServerJob::around(&child),
            child,
            processes: processes.map(|processes| Arc::new(Mutex::new(processes))),
            reserved,
        };
        Ok((process, ChildStreams { input, output, errors }))
    }

    pub(in crate::transport) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Releases the reserved group after the first output of the server. Called while it runs;
    /// otherwise the exit of the process does the same.
    pub(in crate::transport) fn on_first_output(&mut self) {
        self.reserved = None;
    }

    /// Waits for the process itself to exit; its descendants may still run.
    pub(in crate::transport) async fn ended(&mut self) -> io::Result<ExitStatus> {
        #[cfg(target_os = "linux")]
        if let Some(cgroup_move) = &mut self.cgroup_move {
            cgroup_move.finished().await;
            self.cgroup_move = None;
        }
        self.child.wait().await
    }

    /// Stops the process and all its descendants: its input is closed already, then SIGTERM, then
    /// SIGKILL (CON-6). Returns the processes that could not be ended.
    pub(in crate::transport) async fn stop(mut self, patience: Duration) -> Vec<RemainingProcess> {
        self.reserved = None;
        let deadline = Instant::now() + patience;
        if !self.wait_until_gone(Instant::now() + QUIET_END.min(patience)).await {
            self.signal(GroupSignal::Terminate).await;
            if !self.wait_until_gone(deadline).await {
                let last = Instant::now() + AFTER_KILL;
                loop {
                    self.signal(GroupSignal::Kill).await;
                    let next = Instant::now() + KILL_PAUSE;
                    if self.wait_until_gone(next.min(last)).await || Instant::now() >= last {
                        break;
                    }
                }
            }
        }
        let Some(processes) = self.processes.take() else { return Vec::new() };
        let remaining = lock(&processes).seen();
        drop(processes);
        off_worker(move || processes::end_orphans(&remaining)).await
    }

    async fn signal(&mut self, order: GroupSignal) {
        self.with_processes(move |processes| processes.signal(order)).await;
        if order == GroupSignal::Kill {
            self.kill_child();
        }
    }

    fn kill_child(&mut self) {
        #[cfg(windows)]
        drop(self.job.take());
        let _ = self.child.start_kill();
    }

    /// Whether the process and its descendants are gone by the deadline.
    async fn wait_until_gone(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if timeout(left, self.ended()).await.is_err() {
            return false;
        }
        let mut pause = SEARCH_PAUSE;
        while self.with_processes(ServerProcesses::all_gone).await == Some(false) {
            if Instant::now() >= deadline {
                return false;
            }
            sleep_until((Instant::now() + pause).min(deadline)).await;
            pause = (pause * 2).min(KILL_PAUSE);
        }
        true
    }

    /// Runs an operation that scans all processes of the machine. If the future is dropped, the
    /// processes are still tracked and can be ended.
    async fn with_processes<T: Send + 'static>(
        &self,
        work: impl Fn(&mut ServerProcesses) -> T + Clone + Send + 'static,
    ) -> Option<T> {
        let processes = Arc::clone(self.processes.as_ref()?);
        Some(off_worker(move || work(&mut lock(&processes))).await)
    }
}

fn lock(processes: &Mutex<ServerProcesses>) -> MutexGuard<'_, ServerProcesses> {
    processes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs blocking work of some milliseconds outside of the async workers.
async fn off_worker<T: Send + 'static>(work: impl Fn() -> T + Clone + Send + 'static) -> T {
    // If the runtime is shutting down and does not accept it, blocking here delays no other task.
    tokio::task::spawn_blocking(work.clone()).await.unwrap_or_else(|_| work())
}

impl Drop for ServerProcess {
    /// Not stopped in order: a panic or a dropped task. Kills at once.
    fn drop(&mut self) {
        let Some(processes) = self.processes.take() else { return self.kill_child() };
        lock(&processes).signal(GroupSignal::Kill);
        self.kill_child();
        // Keeps the watchdog record until they are gone, because this process may be about to end.
        let wait = move || {
            let begun = Instant::now();
            while !lock(&processes).all_gone() && begun.elapsed() < AFTER_KILL {
                thread::sleep(SEARCH_PAUSE);
                lock(&processes).signal(GroupSignal::Kill);
            }
            drop(processes);
            processes::end_orphans(&[]);
        };
        drop(thread::Builder::new().name("trunkline-end".to_owned()).spawn(wait));
    }
}

/// Starts a process in a group that the watchdog knows before the process runs, where possible.
fn spawn_in_group(
    command: &mut Command,
    options: &ChildOptions,
) -> io::Result<(Child, Option<ServerProcesses>, Option<ReservedGroup>)> {
    if options.is_subreaper {
        processes::become_subreaper();
    }
    let spawn_id = SpawnId::generate().ok_or(io::ErrorKind::Unsupported)?;
    command.env(spawn_id::VARIABLE, spawn_id.below(options.outer.as_deref()));
    let begin = |group| ServerProcesses::begin(group, spawn_id, options.with_cgroups);
    let Some(reserved) = watchdog::reserve() else {
        #[cfg(unix)]
        command.process_group(0);
        let child = own_children::spawn(|| command.spawn(), Child::id)?;
        let processes = child.id().and_then(ProcessGroup::led_by).map(begin);
        return Ok((child, processes, None));
    };
    let processes = begin(reserved.group());
    #[cfg(unix)]
    command.process_group(reserved.group().number());
    match own_children::spawn(|| command.spawn(), Child::id) {
        Ok(child) => Ok((child, Some(processes), Some(reserved))),
        Err(error) => {
            drop(processes);
            // Those of servers that have ended meanwhile: they could have been processes of this one.
            processes::end_orphans(&[]);
            Err(error)
        }
    }
}

/// The error for a process that could not be started, with a hint.
fn start_error(program: &ResolvedStdio, error: &io::Error) -> Error {
    let directory = program.cwd.as_ref().map(Secret::expose);
    if directory.is_some_and(|directory| !Path::new(directory).is_dir()) {
        let shown = program.shown_cwd.as_deref().unwrap_or_default();
        let message = format!("the directory to run in does not exist: {shown}");
        return Error::new(ErrorKind::StartFailed, message).with_hint("correct `cwd`");
    }
    let command = program.command.expose();
    let name = &program.shown;
    match error.kind() {
        io::ErrorKind::NotFound if command.contains('/') && Path::new(command).exists() => {
            let message = format!("the interpreter of `{name}` was not found");
            Error::new(ErrorKind::StartFailed, message)
                .with_hint("install the interpreter that the first line of the script names")
        }
        io::ErrorKind::NotFound if is_command_line(command) => {
            let message = "no program has this name: `command` is a whole command line";
            Error::new(ErrorKind::CommandNotFound, message)
                .with_hint("write the program as `command`, and the rest as `args`")
        }
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::CommandNotFound, format!("the program `{name}` was not found"))
                .with_hint(missing_program_hint(name))
        }
        io::ErrorKind::PermissionDenied => {
            let message = format!("there is no permission to run `{name}`");
            Error::new(ErrorKind::StartFailed, message)
                .with_hint("make it executable, as with `chmod +x`, or correct `command`")
        }
        _ => Error::new(ErrorKind::StartFailed, format!("{name}: {error}")),
    }
}

fn missing_program_hint(name: &str) -> &'static str {
    match name {
        "npx" | "node" | "npm" | "corepack" | "pnpm" | "yarn" => {
            "install Node.js, or write the path of the program as `command`"
        }
        "uvx" | "uv" => "install uv, or write the path of the program as `command`",
        "python" | "python3" | "pip" | "pipx" => {
            "install Python, or write the path of the program as `command`"
        }
        "docker" | "podman" => "install it, or write the path of the program as `command`",
        "bun" | "bunx" => "install Bun, or write the path of the program as `command`",
        "deno" => "install Deno, or write the path of the program as `command`",
        _ => "install it on the PATH, or write its path as `command`",
    }
}
