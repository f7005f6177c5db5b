//! The processes of stdio servers that commands use one after another: each is started as the command would start
//! it, and waits for the next command that needs the same.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};
use trunkline::connection::{
    ChildOptions, ProcessEvent, ProcessStderr, ProgramLaunch, StdioProcess,
};
use trunkline::error::{Error, ErrorKind};
use trunkline_gateway::LineReader;

use super::process_relay::{RelayEnd, relay};
use super::process_session::ProcessSession;
use crate::environment::limits::InheritedLimits;
use crate::socket::hello::{CommandTraits, ProcessRequest, StderrSource};
use crate::socket::process_frames::end_frame;
use crate::socket::source_files::{SourceFile, are_current};

/// How long a process waits for the next command.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// The interval of looking at the files that a process was started from.
const SOURCE_CHECK: Duration = Duration::from_secs(2);

/// Limit on processes that wait. The one that has waited longest is ended for another.
const MAX_IDLE: usize = 16;

/// Servers of processes that have ended whose standard error is kept.
const MAX_ENDED: usize = 16;

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
    /// The last lines of processes that have ended, by server and directory, the newest last.
    ended: Vec<(String, StderrSource)>,
    last_id: u64,
    last_used: Option<Instant>,
    is_closed: bool,
}

/// A process in the pool.
struct PoolEntry {
    id: u64,
    server: String,
    launch: ProgramLaunch,
    /// Its directory without values of references.
    directory: Option<String>,
    client: CommandTraits,
    /// The files that it was started from.
    sources: Vec<SourceFile>,
    /// The process, once it has started.
    started: Option<(Option<u32>, ProcessStderr)>,
    /// Takes the process from the task that waits with it; `None` while a command uses it.
    taker: Option<oneshot::Sender<oneshot::Sender<PooledProcess>>>,
    /// Dropped with the entry, which ends the use of the process.
    removal: watch::Sender<()>,
    since: Instant,
}

/// A process with its session.
struct PooledProcess {
    entry: u64,
    process: StdioProcess,
    session: ProcessSession,
    idle_timeout: Duration,
    shutdown_timeout: Duration,
}

/// A process in use by a command.
pub(crate) struct ProcessLease {
    pool: ProcessPool,
    pooled: PooledProcess,
    /// Closed when the entry is removed.
    removal: watch::Receiver<()>,
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
        if request.limits != InheritedLimits::of_process() {
            let message =
                "the command has another umask, priority, limits or sandbox than the service";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let launch = request.launch();
        let id = match self.take(request, &launch)? {
            TakenEntry::New(id) => id,
            TakenEntry::Waiting(waiting) => match waiting.await {
                Ok(pooled) => return Ok(self.lease_of(pooled)),
                // It has just ended.
                Err(_) => self.state().add(request, &launch),
            },
        };
        self.start(request, &launch, id).inspect_err(|_| self.state().forget(id))
    }

    /// Takes a process that waits, or adds an entry for a new one.
    fn take(&self, request: &ProcessRequest, launch: &ProgramLaunch) -> Result<TakenEntry, Error> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Error::new(ErrorKind::ShuttingDown, "the service ends"));
        }
        state.last_used = Some(Instant::now());
        let is_same = |it: &PoolEntry| it.is_for(request, launch);
        if !state.entries.iter().any(is_same) {
            return Ok(TakenEntry::New(state.add(request, launch)));
        }
        let mut same = state.entries.iter_mut().filter(|it| is_same(it));
        let idle = same.find_map(|entry| entry.taker.take().map(|taker| (entry, taker)));
        let Some((entry, taker)) = idle else {
            return Err(Error::new(ErrorKind::Busy, "another command uses the process"));
        };
        entry.since = Instant::now();
        let (sender, receiver) = oneshot::channel();
        // If the process has just ended, the receiver says so.
        let _ = taker.send(sender);
        Ok(TakenEntry::Waiting(receiver))
    }

    /// Starts the process of an entry.
    fn start(
        &self,
        request: &ProcessRequest,
        launch: &ProgramLaunch,
        id: u64,
    ) -> Result<ProcessLease, Error> {
        let process = StdioProcess::start(launch, &self.shared.options)?;
        info!(server = request.server, process = process.id(), "process started for commands");
        if let Some(entry) = self.state().entries.iter_mut().find(|it| it.id == id) {
            entry.started = Some((process.id(), process.stderr()));
        }
        let idle_timeout = request.idle_timeout.unwrap_or(IDLE).min(IDLE);
        let session = ProcessSession::new();
        let shutdown_timeout = request.shutdown_timeout;
        let pooled = PooledProcess { entry: id, process, session, idle_timeout, shutdown_timeout };
        Ok(self.lease_of(pooled))
    }

    fn lease_of(&self, pooled: PooledProcess) -> ProcessLease {
        let state = self.state();
        let entry = state.entries.iter().find(|it| it.id == pooled.entry);
        // Without an entry, it has been removed already.
        let removal = entry.map_or_else(|| watch::channel(()).1, |it| it.removal.subscribe());
        ProcessLease { pool: self.clone(), pooled, removal }
    }

    /// Waits with a process for the next command.
    fn keep(&self, pooled: PooledProcess) {
        let mut state = self.state();
        if state.is_closed {
            return end_in(&mut state, pooled);
        }
        while state.tasks.try_join_next().is_some() {}
        let idle = state.entries.iter().filter(|it| it.taker.is_some());
        let longest = idle.clone().min_by_key(|it| it.since).map(|it| it.id);
        if let Some(longest) = longest.filter(|_| idle.count() >= MAX_IDLE) {
            // The task that waits with it ends it.
            state.forget(longest);
        }
        let (taker, taken) = oneshot::channel();
        let Some(entry) = state.entries.iter_mut().find(|it| it.id == pooled.entry) else {
            return end_in(&mut state, pooled);
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
        let changed = self.source_change(pooled.entry);
        let mut changed = pin!(changed);
        loop {
            tokio::select! {
                taker = &mut taken => match taker {
                    // It began a line that it has not completed.
                    Ok(_) if pooled.process.has_partial_line() => break,
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
                () = &mut changed => break,
            }
        }
        self.state().forget(pooled.entry);
        close(pooled).await;
    }

    /// Waits until a file that a process was started from has changed.
    fn source_change(&self, entry: u64) -> impl Future<Output = ()> + use<> {
        let state = self.state();
        let entry = state.entries.iter().find(|it| it.id == entry);
        let sources: Arc<[SourceFile]> =
            entry.map(|it| it.sources.clone().into()).unwrap_or_default();
        async move {
            loop {
                sleep(SOURCE_CHECK).await;
                let looked_at = Arc::clone(&sources);
                // The disk may be slow.
                let is_current = spawn_blocking(move || are_current(&looked_at)).await;
                if !is_current.unwrap_or(true) {
                    return;
                }
            }
        }
    }

    /// Ends a process in the background.
    fn end(&self, pooled: PooledProcess) {
        end_in(&mut self.state(), pooled);
    }

    /// Ends the processes of a server that wait. Returns their directories; `None` if there never was a process.
    pub(crate) fn restart(&self, server: &str) -> Option<Vec<String>> {
        let mut state = self.state();
        let has_ended = state.ended.iter().any(|(name, _)| name == server);
        // The use of one ends as well: a server that hangs is a reason to restart it.
        let of_server = state.entries.iter().filter(|it| it.server == server);
        let (ids, directories): (Vec<_>, Vec<_>) =
            of_server.map(|it| (it.id, it.directory.clone())).unzip();
        ids.iter().for_each(|id| state.forget(*id));
        let mut directories: Vec<_> = directories.into_iter().flatten().collect();
        directories.sort();
        directories.dedup();
        (has_ended || !ids.is_empty()).then_some(directories)
    }

    /// The last lines that processes of a server wrote to standard error, also those that have ended.
    pub(crate) fn stderr(&self, server: &str) -> Vec<StderrSource> {
        let state = self.state();
        let ended = state.ended.iter().filter(|(name, _)| name == server);
        let running = state.entries.iter().filter(|it| it.server == server);
        ended.map(|(_, source)| source.clone()).chain(running.map(PoolEntry::stderr)).collect()
    }

    /// The servers of processes that have ended, and have left standard error.
    pub(crate) fn ended_servers(&self) -> Vec<String> {
        let mut servers: Vec<_> =
            self.state().ended.iter().map(|(server, _)| server.clone()).collect();
        servers.sort();
        servers.dedup();
        servers
    }

    /// All processes, for people.
    pub(crate) fn status(&self) -> Vec<Value> {
        let state = self.state();
        let status = |entry: &PoolEntry| {
            json!({
                "name": entry.server,
                "directory": entry.directory,
                "pid": entry.started.as_ref().and_then(|(id, _)| *id),
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

impl PoolState {
    /// Adds the entry of a process that is about to start.
    fn add(&mut self, request: &ProcessRequest, launch: &ProgramLaunch) -> u64 {
        self.last_id += 1;
        self.entries.push(PoolEntry {
            id: self.last_id,
            server: request.server.clone(),
            launch: launch.clone(),
            directory: request.shown_directory.clone(),
            client: request.client.clone(),
            sources: request.sources.clone(),
            started: None,
            taker: None,
            removal: watch::Sender::new(()),
            since: Instant::now(),
        });
        self.last_id
    }

    /// Removes an entry, and keeps what its process wrote last.
    fn forget(&mut self, entry: u64) {
        for gone in self.entries.extract_if(.., |it| it.id == entry) {
            let source = gone.stderr();
            if !source.lines.is_empty() {
                let is_same = |it: &StderrSource| it.directories == source.directories;
                self.ended.retain(|(server, it)| *server != gone.server || !is_same(it));
                self.ended.push((gone.server, source));
            }
        }
        let excess = self.ended.len().saturating_sub(MAX_ENDED);
        self.ended.drain(..excess);
    }
}

impl PoolEntry {
    /// Whether it is the process of a server that a command would start in the same way.
    fn is_for(&self, request: &ProcessRequest, launch: &ProgramLaunch) -> bool {
        self.server == request.server
            && self.client == request.client
            && self.sources == request.sources
            && self.launch.is_same(launch)
    }

    fn stderr(&self) -> StderrSource {
        let lines = self.started.as_ref().map(|(_, stderr)| stderr.lines()).unwrap_or_default();
        StderrSource { directories: self.directory.iter().cloned().collect(), lines }
    }
}

/// A process for a command.
enum TakenEntry {
    /// One that waits with a task, which hands it over.
    Waiting(oneshot::Receiver<PooledProcess>),
    /// The entry of one that has to be started.
    New(u64),
}

fn end_in(state: &mut PoolState, pooled: PooledProcess) {
    state.forget(pooled.entry);
    state.tasks.spawn(close(pooled));
}

async fn close(PooledProcess { process, shutdown_timeout, .. }: PooledProcess) {
    for remaining in process.close(shutdown_timeout).await {
        warn!(process = remaining.id, program = remaining.program, "a process could not be ended");
    }
}

impl ProcessLease {
    /// What the command has to know of the process.
    pub(crate) fn description(&self) -> Value {
        let PooledProcess { process, session, .. } = &self.pooled;
        json!({ "process": process.id(), "firstRequestId": session.first_request_id() })
    }

    /// Relays messages between the command and the process, until the command ends, or the service with an error
    /// for the command. Then the process waits for the next command, if it can be used again.
    pub(crate) async fn relay(
        mut self,
        lines: &mut LineReader<impl AsyncRead + Unpin>,
        writer: &mut (impl AsyncWrite + Unpin),
        stop: impl Future<Output = Error>,
    ) -> io::Result<()> {
        let (copies, stderr) = mpsc::channel(MAX_STDERR_PARTS);
        self.pooled.process.stderr().copy_to(copies);
        let process = (&mut self.pooled.process, &mut self.pooled.session);
        let relayed = tokio::select! {
            relayed = relay(process, lines, (&mut *writer, stderr)) => relayed,
            error = stop => Ok(RelayEnd::Process(error)),
            // It is never sent to.
            _ = self.removal.changed() => Ok(RelayEnd::Process(restarted())),
        };
        let Self { pool, mut pooled, .. } = self;
        let end = match relayed {
            Ok(RelayEnd::Command) => {
                // The rest of a line would be the beginning of the first one for the next command.
                match pooled.session.finish().filter(|_| !pooled.process.has_partial_line()) {
                    Some(last) => {
                        last.into_iter().for_each(|line| pooled.process.send(line));
                        pool.keep(pooled);
                    }
                    // The command says that its servers have ended, and waits for it.
                    None => {
                        pool.state().forget(pooled.entry);
                        close(pooled).await;
                    }
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

/// The error of a command whose process was restarted.
fn restarted() -> Error {
    let message = "its process was ended by `trunkline restart`";
    Error::new(ErrorKind::Exited, message).with_hint("the next command starts another")
}
