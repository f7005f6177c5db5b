//! Starts the service in the background, and waits until it listens. The service reports over a pipe that
//! it is ready, or why not.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use trunkline::config::Environment as _;

use super::lock::StartLock;
use crate::environment::ProcessEnv;
use crate::output::terminal::Terminal;
use crate::socket::runtime_dir::{RuntimeDir, shown};

/// How long the service may take to listen. Another one may be ending.
const READY: Duration = Duration::from_secs(30);

/// Limit on the line that reports the start.
const MAX_REPORT: u64 = 64 * 1024;

/// The variables of the service itself: its folders, the keychain and the log.
const VARIABLES: [&str; 19] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_SDK_DISABLED",
    "OTEL_SERVICE_NAME",
    "PATH",
    "TMPDIR",
    "TRUNKLINE_LOG",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// The line that a service writes to standard output when it listens, or cannot.
#[derive(Deserialize, Serialize)]
struct StartReport {
    error: Option<String>,
}

/// The path of the service's log.
pub(crate) fn log_file(environment: &ProcessEnv) -> Result<PathBuf> {
    let folder = environment.state_directory();
    let folder =
        folder.context("there is no folder for the log of the service; set XDG_STATE_HOME")?;
    Ok(folder.join("service.log"))
}

/// Starts the service unless it runs. Of several processes that do this at once, one starts it.
pub(crate) fn start(folder: &RuntimeDir, environment: &ProcessEnv) -> Result<()> {
    let Some(_lock) = StartLock::acquire(folder)? else { return Ok(()) };
    if UnixStream::connect(folder.socket()).is_ok() {
        return Ok(());
    }
    let program = environment.program().context("the path of this program is not known")?;
    let log = log_file(environment)?;
    let mut command = Command::new(program);
    command.args(["up", "--detach"]).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
    // The service works in the environment of each client. Its own has no credentials of the first one.
    let variables = VARIABLES.iter().filter_map(|it| Some((*it, environment.variable(it)?)));
    command.env_clear().envs(variables);
    // A service without a log is better than none.
    command.stderr(open_log(&log).unwrap_or_else(|_| Stdio::null()));
    let mut child = command.spawn().context("the service cannot be started")?;
    let output = child.stdout.take().context("invariant: its output is piped")?;
    let report = first_line(output);
    // It has started the service and ended.
    let _ = child.wait();
    match report? {
        Some(StartReport { error: None }) => Ok(()),
        Some(StartReport { error: Some(error) }) => {
            Err(anyhow!("the service did not start: {error}"))
        }
        None => bail!("the service ended before it listened; its messages are in {}", shown(&log)),
    }
}

/// Reads the report; `None` if there is none.
fn first_line(output: impl io::Read + Send + 'static) -> Result<Option<StartReport>> {
    let (done, line) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(output.take(MAX_REPORT)).read_line(&mut line);
        done.send(read.map(|_| line))
    });
    let line = line
        .recv_timeout(READY)
        .map_err(|_| anyhow!("the service did not listen within {} seconds", READY.as_secs()))??;
    Ok(serde_json::from_str(&line).ok())
}

/// Opens the log for the service, which only its owner may read.
fn open_log(path: &Path) -> Result<Stdio> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be created", shown(folder)))?;
    }
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    Ok(log.with_context(|| format!("the log {} cannot be opened", shown(path)))?.into())
}

/// Continues as a process that belongs to no terminal and is no descendant of the one that started it:
/// hosts end their descendants. The pipe for the report is passed on.
pub(crate) fn detach(environment: &ProcessEnv) -> Result<()> {
    rustix::process::setsid().context("no session can be created")?;
    let program = environment.program().context("the path of this program is not known")?;
    let mut command = Command::new(program);
    command.args(["up", "--foreground", "--report", "-v"]);
    if let Ok(log) = log_file(environment) {
        command.arg("--log").arg(log);
    }
    command.spawn().context("the service cannot be started")?;
    Ok(())
}

/// Reports to the process that started this one, and closes the pipe.
pub(crate) fn report(error: Option<&str>) {
    let report = StartReport { error: error.map(str::to_owned) };
    let text = serde_json::to_string(&report).unwrap_or_default();
    Terminal::print_last_line(&text);
}
