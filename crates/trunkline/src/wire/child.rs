//! A server's process: started with what it may know, stopped with everything it started.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use super::group::{Group, Order};
use super::guard::{self, Reserved};
use crate::config::{ResolvedStdio, Secret};
use crate::error::{Error, ErrorKind};

/// How long a server gets to end by itself once its input is closed, before it is told to.
const QUIET_END: Duration = Duration::from_millis(500);

/// How often it is looked whether a group is gone. There is nothing to wait on: grandchildren are
/// not our children.
const GROUP_POLL: Duration = Duration::from_millis(10);

/// How long after SIGKILL a group may still be seen; the kernel needs a moment.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Variables that every server gets, if the host has them (CON-7). None of them is a credential.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    // Windows programs do not start without these.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// What the host passes on to every child process.
#[derive(Clone, Debug, Default)]
pub struct ChildOptions {
    inherited: Vec<(OsString, OsString)>,
}

impl ChildOptions {
    /// Takes the variables of the host's environment that servers may see, and drops the others.
    pub fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let passes =
            |name: &OsString| INHERITED.iter().any(|known| name.eq_ignore_ascii_case(known));
        Self { inherited: variables.into_iter().filter(|(name, _)| passes(name)).collect() }
    }
}

/// A running process with everything it started.
pub(super) struct ServerProcess {
    child: Child,
    group: Option<Group>,
    /// What kept the group for it, until it is looked at.
    reserved: Option<Reserved>,
    /// The group that it has gone to by itself, once that was seen.
    left_for: Option<Group>,
    #[cfg(windows)]
    job: Option<super::job::ServerJob>,
    stopped: bool,
}

/// The streams of a process.
pub(super) struct Streams {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) errors: ChildStderr,
}

impl ServerProcess {
    pub(super) fn start(
        program: &ResolvedStdio,
        options: &ChildOptions,
    ) -> Result<(Self, Streams), Error> {
        let mut command = Command::new(program.command.expose());
        command
            .args(program.args.iter().map(Secret::expose))
            .env_clear()
            .envs(options.inherited.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &program.env {
            match value {
                Some(value) => command.env(&**name, value.expose()),
                None => command.env_remove(&**name),
            };
        }
        if let Some(directory) = &program.cwd {
            command.current_dir(directory.expose());
        }
        let (mut child, group, reserved) =
            spawn_in_group(&mut command).map_err(|error| start_error(program, &error))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(Error::new(ErrorKind::StartFailed, "the process has no streams"));
        };
        let process = Self {
            #[cfg(windows)]
            job: super::job::ServerJob::around(&child),
            child,
            group,
            reserved,
            left_for: None,
            stopped: false,
        };
        Ok((process, Streams { input, output, errors }))
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Looks whether it has left its group, as a process does that begins a session of its own. To
    /// be done while it runs: afterwards its number may be that of another.
    pub(super) fn look(&mut self) {
        // Long gone by the time that a server has spoken, so that this is no waiting.
        self.reserved = None;
        if let (Some(group), Some(id)) = (self.group, self.child.id())
            && let Some(now) = Group::of(id)
            && now != group
            && self.left_for != Some(now)
        {
            guard::watch(now);
            self.left_for = Some(now);
        }
    }

    /// Waits until the process itself has ended; what it started may live on.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Stops the process and everything it started: its input is closed already, then it is told
    /// to end, then it is made to (CON-6). When this returns, nothing of it is left.
    pub(super) async fn stop(mut self, patience: Duration) {
        self.look();
        let deadline = Instant::now() + patience;
        if !self.gone_by(Instant::now() + QUIET_END.min(patience)).await {
            self.tell(Order::Terminate);
            if !self.gone_by(deadline).await {
                self.tell(Order::Kill);
                self.gone_by(Instant::now() + AFTER_KILL).await;
            }
        }
        self.finish();
    }

    fn tell(&mut self, order: Order) {
        self.look();
        for group in self.groups() {
            group.tell(order);
        }
        if order == Order::Kill {
            #[cfg(windows)]
            drop(self.job.take());
            let _ = self.child.start_kill();
        }
    }

    /// Every group that is ours.
    fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        [self.group, self.left_for].into_iter().flatten()
    }

    /// Whether the process and its groups are gone by a time.
    async fn gone_by(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if timeout(left, self.child.wait()).await.is_err() {
            return false;
        }
        while self.groups().any(Group::is_alive) {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(GROUP_POLL).await;
        }
        true
    }

    fn finish(&mut self) {
        self.stopped = true;
        self.groups().for_each(guard::forget);
    }
}

impl Drop for ServerProcess {
    /// Nobody stopped it in order: a panic, an abandoned task. There is no time to be patient.
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        self.tell(Order::Kill);
        self.finish();
    }
}

/// Starts a process in a group that is watched before the process runs, where there can be one.
fn spawn_in_group(command: &mut Command) -> io::Result<(Child, Option<Group>, Option<Reserved>)> {
    let Some(mut reserved) = guard::reserve() else {
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn()?;
        let group = child.id().and_then(Group::led_by);
        group.inspect(|group| guard::watch(*group));
        return Ok((child, group, None));
    };
    let group = reserved.group();
    #[cfg(unix)]
    command.process_group(group.number());
    let spawned = command.spawn();
    // In this order: what the guard has forgotten must be over already.
    reserved.release();
    let child = spawned.inspect_err(|_| guard::forget(group))?;
    Ok((child, Some(group), Some(reserved)))
}

/// Why a process could not be started, and what to do about it.
fn start_error(program: &ResolvedStdio, error: &io::Error) -> Error {
    let directory = program.cwd.as_ref().map(Secret::expose);
    if directory.is_some_and(|directory| !Path::new(directory).is_dir()) {
        let message = "the directory to run in does not exist";
        return Error::new(ErrorKind::StartFailed, message).with_hint("correct `cwd`");
    }
    let command = program.command.expose();
    let name = &program.shown;
    match error.kind() {
        io::ErrorKind::NotFound if command.contains('/') && Path::new(command).exists() => {
            Error::new(ErrorKind::StartFailed, format!("{name}: its interpreter was not found"))
                .with_hint("look at the first line of the script")
        }
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::CommandNotFound, format!("{name}: not found"))
                .with_hint(missing_program_hint(name))
        }
        io::ErrorKind::PermissionDenied => {
            Error::new(ErrorKind::StartFailed, format!("{name}: not allowed to run it"))
                .with_hint("is it executable?")
        }
        _ => Error::new(ErrorKind::StartFailed, format!("{name}: {error}")),
    }
}

fn missing_program_hint(name: &str) -> &'static str {
    match name {
        "npx" | "node" | "npm" | "corepack" | "pnpm" | "yarn" => "is Node.js installed?",
        "uvx" | "uv" => "is uv installed?",
        "python" | "python3" | "pip" | "pipx" => "is Python installed?",
        "docker" | "podman" => "is a container engine installed?",
        "bun" | "bunx" => "is Bun installed?",
        "deno" => "is Deno installed?",
        _ => "is it installed, and on the PATH?",
    }
}
