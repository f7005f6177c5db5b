//! The processes of stdio servers that commands use one after another: each is started as the command would start
//! it, and waits for the next command that needs the same.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};
use trunkline::connection::{
    ChildOptions, ProcessEvent, ProcessStderr, ProgramLaunch, StdioProcess,
};
use trunkline::error::{Error, ErrorKind};
use trunkline_gateway::{InputLine, LineReader};

use super::process_session::{LineRoute, ProcessSession};
use crate::socket::hello::{CommandTraits, ProcessRequest};
use crate::socket::process_frames::{end_frame, error_frames, output_frame};

/// How long a process waits for the next command.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// Limit on processes that wait. The one that has waited longest is ended for another.
const MAX_IDLE: usize = 16;

/// How long a process may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Parts of standard error that may wait for a command.
const MAX_STDERR_PARTS: usize = 256;

/// All processes. Clones are the same.
#[derive(Clone)]
pub(crate) struct ProcessPool {
    shared: Arc<PoolShared>,
}

struct PoolShared {
    options: ChildOptions,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    entries: Vec<PoolEntry>,
    /// Waits with processes, and ends them.
    tasks: JoinSet<()>,
    last_id: u64,
    last_used: Option<Instant>,
    is_closed: bool,
}

/// A process in the pool.
struct PoolEntry {
    id: u64,
    server: String,
    launch: ProgramLaunch,
    client: CommandTraits,
    process: Option<u32>,
    stderr: ProcessStderr,
    /// Takes the process from the task that waits with it; `None` while a command uses it.
    taker: Option<oneshot::Sender<oneshot::Sender<PooledProcess>>>,
    since: Instant,
}

/// A process with its session.
struct PooledProcess {
    entry: u64,
    process: StdioProcess,
    session: ProcessSession,
    idle_timeout: Duration,
}

/// A process in use by a command.
pub(crate) struct ProcessLease {
    pool: ProcessPool,
    pooled: PooledProcess,
}

impl ProcessPool {
    pub(crate) fn new(options: ChildOptions) -> Self {
        Self { shared: Arc::new(PoolShared { options, state: Mutex::default() }) }
    }

    /// A process for a command: one that waits, or a new one.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or another command uses the process: the command starts its own.
    pub(crate) async fn lease(&self, request: &ProcessRequest) -> Result<ProcessLease, Error> {
        let launch = request.launch();
        let waiting = self.take(&launch, &request.client)?;
        if let Some(waiting) = waiting
            && let Ok(pooled) = waiting.await
        {
            return Ok(ProcessLease { pool: self.clone(), pooled });
        }
        self.start(request, launch)
    }

    /// Takes a process that waits; `None` if there is none.
    fn take(
        &self,
        launch: &ProgramLaunch,
        client: &CommandTraits,
    ) -> Result<Option<oneshot::Receiver<PooledProcess>>, Error> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Error::new(ErrorKind::ShuttingDown, "the service ends"));
        }
        state.last_used = Some(Instant::now());
        let is_same = |it: &&mut PoolEntry| it.client == *client && it.launch.is_same(launch);
        let Some(entry) = state.entries.iter_mut().find(is_same) else { return Ok(None) };
        let Some(taker) = entry.taker.take() else {
            return Err(Error::new(ErrorKind::Busy, "another command uses the process"));
        };
        entry.since = Instant::now();
        let (sender, receiver) = oneshot::channel();
        // If the process has just ended, the receiver says so.
        let _ = taker.send(sender);
        Ok(Some(receiver))
    }

    fn start(
        &self,
        request: &ProcessRequest,
        launch: ProgramLaunch,
    ) -> Result<ProcessLease, Error> {
        let process = StdioProcess::start(&launch, &self.shared.options)?;
        info!(server = request.server, process = process.id(), "process started for commands");
        let mut state = self.state();
        state.last_id += 1;
        let id = state.last_id;
        state.entries.push(PoolEntry {
            id,
            server: request.server.clone(),
            launch,
            client: request.client.clone(),
            process: process.id(),
            stderr: process.stderr(),
            taker: None,
            since: Instant::now(),
        });
        let idle_timeout = request.idle_timeout.unwrap_or(IDLE).min(IDLE);
        let session = ProcessSession::new();
        let pooled = PooledProcess { entry: id, process, session, idle_timeout };
        Ok(ProcessLease { pool: self.clone(), pooled })
    }

    /// Waits with a process for the next command.
    fn keep(&self, pooled: PooledProcess) {
        let mut state = self.state();
        if state.is_closed {
            return self.end_in(&mut state, pooled);
        }
        while state.tasks.try_join_next().is_some() {}
        let idle = state.entries.iter().filter(|it| it.taker.is_some());
        let longest = idle.clone().min_by_key(|it| it.since).map(|it| it.id);
        if idle.count() >= MAX_IDLE {
            // The task that waits with it ends it.
            state.entries.retain(|it| Some(it.id) != longest);
        }
        let (taker, taken) = oneshot::channel();
        let Some(entry) = state.entries.iter_mut().find(|it| it.id == pooled.entry) else {
            return self.end_in(&mut state, pooled);
        };
        (entry.taker, entry.since) = (Some(taker), Instant::now());
        state.last_used = Some(Instant::now());
        state.tasks.spawn(self.clone().wait(pooled, taken));
    }

    /// Waits until a command takes the process, it ends, or no command has needed it for long.
    async fn wait(
        self,
        mut pooled: PooledProcess,
        mut taken: oneshot::Receiver<oneshot::Sender<PooledProcess>>,
    ) {
        let deadline = Instant::now() + pooled.idle_timeout;
        loop {
            tokio::select! {
                taker = &mut taken => match taker {
                    Ok(taker) => match taker.send(pooled) {
                        Ok(()) => return,
                        // The command is gone.
                        Err(returned) => {
                            pooled = returned;
                            break;
                        }
                    },
                    Err(_) => break,
                },
                event = pooled.process.next() => match event {
                    ProcessEvent::Line(line) => {
                        if let Some(answer) = ProcessSession::on_idle_line(&line) {
                            pooled.process.send(answer);
                        }
                    }
                    ProcessEvent::Ended(_) => break,
                },
                () = sleep_until(deadline) => break,
            }
        }
        self.forget(pooled.entry);
        close(pooled.process).await;
    }

    fn forget(&self, entry: u64) {
        self.state().entries.retain(|it| it.id != entry);
    }

    /// Ends a process in the background.
    fn end(&self, pooled: PooledProcess) {
        self.end_in(&mut self.state(), pooled);
    }

    fn end_in(&self, state: &mut PoolState, pooled: PooledProcess) {
        state.entries.retain(|it| it.id != pooled.entry);
        state.tasks.spawn(close(pooled.process));
    }

    /// Ends the processes of a server that wait. Returns whether there are any.
    pub(crate) fn restart(&self, server: &str) -> bool {
        let mut state = self.state();
        let has_any = state.entries.iter().any(|it| it.server == server);
        // One in use ends with its command.
        state.entries.retain(|it| it.server != server);
        has_any
    }

    /// The last lines that processes of a server wrote to standard error; `None` if there is none.
    pub(crate) fn stderr(&self, server: &str) -> Option<Vec<String>> {
        let state = self.state();
        let mut found = state.entries.iter().filter(|it| it.server == server).peekable();
        found.peek()?;
        Some(found.flat_map(|it| it.stderr.lines()).collect())
    }

    /// All processes, for people.
    pub(crate) fn status(&self) -> Vec<Value> {
        let state = self.state();
        let status = |entry: &PoolEntry| {
            json!({
                "name": entry.server,
                "directory": entry.launch.directory,
                "pid": entry.process,
                "inUse": entry.taker.is_none(),
                "seconds": entry.since.elapsed().as_secs(),
            })
        };
        state.entries.iter().map(status).collect()
    }

    /// Whether a command uses a process, and when one did last.
    pub(crate) fn use_state(&self) -> (bool, Option<Instant>) {
        let state = self.state();
        (state.entries.iter().any(|it| it.taker.is_none()), state.last_used)
    }

    /// Ends all processes for good. When this returns, none is running.
    pub(crate) async fn close_all(&self) {
        let mut tasks = {
            let mut state = self.state();
            state.is_closed = true;
            state.entries.clear();
            std::mem::take(&mut state.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn close(process: StdioProcess) {
    for remaining in process.close(PATIENCE).await {
        warn!(process = remaining.id, program = remaining.program, "a process could not be ended");
    }
}

impl ProcessLease {
    /// What the command has to know of the process.
    pub(crate) fn description(&self) -> Value {
        let PooledProcess { process, session, .. } = &self.pooled;
        json!({ "process": process.id(), "firstRequestId": session.first_request_id() })
    }

    /// Relays messages between the command and the process, until the command ends. Then the process waits for
    /// the next command, if it can be used again.
    pub(crate) async fn relay(
        mut self,
        lines: &mut LineReader<impl AsyncRead + Unpin>,
        writer: &mut (impl AsyncWrite + Unpin),
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let (copies, stderr) = mpsc::channel(MAX_STDERR_PARTS);
        self.pooled.process.stderr().copy_to(copies);
        let relayed = tokio::select! {
            relayed = self.pooled.relay(lines, (&mut *writer, stderr)) => relayed,
            () = stop => Ok(RelayEnd::Process(service_stops())),
        };
        let Self { pool, mut pooled } = self;
        let end = match relayed {
            Ok(RelayEnd::Command) => {
                match pooled.session.finish() {
                    Some(last) => {
                        last.into_iter().for_each(|line| pooled.process.send(line));
                        pool.keep(pooled);
                    }
                    None => pool.end(pooled),
                }
                return Ok(());
            }
            Ok(RelayEnd::Process(error)) => Ok(error),
            Err(error) => Err(error),
        };
        pool.end(pooled);
        let error = end?;
        // A line may have been written in part.
        writer.write_all(b"\n").await?;
        writer.write_all(&end_frame(&error)?).await
    }
}

/// Why a relay ends.
enum RelayEnd {
    /// The command has ended, or does not need the process any more.
    Command,
    /// The process cannot be used any more.
    Process(Error),
}

impl PooledProcess {
    async fn relay(
        &mut self,
        lines: &mut LineReader<impl AsyncRead + Unpin>,
        (writer, mut stderr): (&mut (impl AsyncWrite + Unpin), mpsc::Receiver<Bytes>),
    ) -> io::Result<RelayEnd> {
        loop {
            let is_full = self.process.is_full();
            let next = async {
                match is_full {
                    true => pending().await,
                    false => lines.next().await,
                }
            };
            tokio::select! {
                line = next => match line {
                    Ok(Some(InputLine::Message(line))) => match self.session.on_command_line(line) {
                        LineRoute::Forward(line) => self.process.send(line),
                        LineRoute::Respond(line) => writer.write_all(&output_frame(&line)).await?,
                        LineRoute::Drop => {}
                        LineRoute::Refuse => return Ok(RelayEnd::Process(other_handshake())),
                    },
                    _ => return Ok(RelayEnd::Command),
                },
                event = self.process.next() => match event {
                    ProcessEvent::Line(line) => {
                        if self.session.on_process_line(&line) {
                            writer.write_all(&output_frame(&line)).await?;
                        }
                    }
                    ProcessEvent::Ended(error) => {
                        while let Ok(part) = stderr.try_recv() {
                            writer.write_all(&error_frames(&part)).await?;
                        }
                        return Ok(RelayEnd::Process(error));
                    }
                },
                Some(part) = stderr.recv() => writer.write_all(&error_frames(&part)).await?,
            }
        }
    }
}

fn service_stops() -> Error {
    Error::new(ErrorKind::Exited, "the background service, which had its process, was stopped")
}

/// The command starts the server again after this error.
fn other_handshake() -> Error {
    Error::new(ErrorKind::ProtocolViolation, "its process was started for another client")
}
