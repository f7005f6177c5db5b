//! The actor of a server: starts it when needed, forwards requests, and publishes its status.

pub(super) mod backoff;
pub(super) mod subscriptions;
mod list_refresh;
mod logging;
mod legacy_subscribe;
mod listen;
pub(super) mod rare_events;
mod run;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{OnceCell, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::cache::CacheWrites;
use super::handshake::closing::SessionClosings;
use super::handshake::{ConnectedServer, ServerConnector, StreamUse};
use super::options::ConnectionOptions;
use super::published::PublishedState;
use super::server_notification::ServerNotification;
use super::session::{MAX_PENDING_CALLS, RequestIds, SessionRequest, shutting_down};
use super::state::log_level::RequestedLogLevel;
use super::subscription::{HoldChange, SubscriptionSubject};
use crate::config::{Fingerprint, Server, ServerSettings, Transport};
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::{Notification, Response};
use crate::principal::{FairShare, Principal, Requester};
use crate::timer::wait_until;
use backoff::RestartAttempts;
use rare_events::{RareEvent, RareEvents};
use subscriptions::{SubscribeResult, Subscriptions};

/// Delay before a new session with a server that lost the last one, for the sake of subscriptions.
/// Prevents a busy loop with a server that loses every session.
const PAUSE_AFTER_FORGOTTEN: Duration = Duration::from_secs(1);

/// Timeout at shutdown for writing the disk cache.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(2);

/// A command to the actor. Small, because a channel allocates 32 of them at once.
pub(super) enum Command {
    /// Start the server; report when it is ready, or the error.
    Connect(oneshot::Sender<Result<(), Error>>),
    /// Forward a request.
    Request(Box<SessionRequest>),
    /// Respond to a server request of a session.
    RespondToServer { session: u64, response: Box<Response> },
    /// Send a notification on behalf of a client.
    Notify(Box<(Notification, Requester)>),
    /// Refresh a list; report when it is complete, or the error.
    Refresh(ItemKind, oneshot::Sender<Result<(), Error>>),
    /// Subscribe to a resource or a task.
    Subscribe(Box<(SubscriptionSubject, Requester)>, oneshot::Sender<SubscribeResult>),
    /// Stop the server, and report when none of its processes is left. The next use starts it
    /// again.
    Stop(oneshot::Sender<()>),
    /// Shut down for good, and report when none of its processes is left.
    Close(oneshot::Sender<()>),
}

impl Command {
    /// The principal whose share of the queue it uses.
    fn principal(&self) -> &Principal {
        match self {
            Self::Request(asked) => asked
                .requester
                .as_ref()
                .map_or(&Principal::Anonymous, |requester| &requester.principal),
            Self::Subscribe(wanted, _) => &wanted.1.principal,
            _ => &Principal::Anonymous,
        }
    }

    /// Whether it stops the server, until the next use or for good.
    fn ends_server(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Close(_))
    }

    /// Whether its caller has stopped waiting.
    fn is_cancelled(&self) -> bool {
        match self {
            Self::Connect(done) | Self::Refresh(_, done) => done.is_closed(),
            Self::Request(asked) => asked.reply.is_closed(),
            Self::Subscribe(.., reply) => reply.is_closed(),
            Self::RespondToServer { .. } | Self::Notify(..) | Self::Stop(_) | Self::Close(_) => {
                false
            }
        }
    }
}

/// The actor of one server.
pub(super) struct ServerActor {
    pub(super) server: Arc<Server>,
    /// Limits and settings, which may change while it runs.
    pub(super) behaviour: watch::Receiver<Arc<ServerSettings>>,
    pub(super) fingerprint: Fingerprint,
    pub(super) options: ConnectionOptions,
    pub(super) ids: Arc<RequestIds>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Subscriptions to resources and tasks, kept across sessions.
    pub(super) watched: Subscriptions,
    /// Cancellations, changes of holders of subscriptions, and others.
    pub(super) rare_events: RareEvents,
    /// The lowest log level that any client has requested.
    pub(super) log_level: watch::Receiver<Option<RequestedLogLevel>>,
    pub(super) published: Arc<PublishedState>,
    /// Receivers of the notifications of the server.
    pub(super) told: broadcast::Sender<Arc<ServerNotification>>,
    /// Sessions that the server lost, in which requests are still pending. They end with the actor.
    pub(super) fading: JoinSet<()>,
    /// Sessions of failed handshakes that are closing.
    pub(super) endings: SessionClosings,
    /// Writes to the disk cache in progress.
    pub(super) writing: CacheWrites,
}

/// Why the actor stops serving a session.
enum ExitReason {
    /// The server ended.
    Server(Error),
    /// The idle timeout expired.
    Idle,
    /// The server lost the session, and a new one is needed.
    Forgotten,
    /// The server is unreachable. Requests that were sent before stay pending.
    OutOfReach(Error),
    /// The actor has to stop, by this command, or because every handle was dropped.
    Told(Option<Command>),
}

/// Why the server does not run.
enum DownReason {
    /// It is not needed.
    Idle,
    /// It failed, and is not restarted automatically.
    Failed(Error),
    /// It failed, and is restarted at this time.
    Until(Instant),
}

/// The state after a start, and perhaps a session.
enum NextState {
    /// The server does not run.
    Down(DownReason),
    /// The actor stops, by this command, or because every handle was dropped.
    Close(Option<Command>),
}

/// Why the actor starts the server, or ends.
enum WakeReason {
    /// The server is needed for these commands.
    By(Vec<Command>),
    Close(Option<Command>),
}

impl ServerActor {
    /// Runs until it is shut down. A panic ends the session and its pending requests, and leaves
    /// the server failed: it can be started again.
    pub(super) async fn run(mut self) {
        let mut down = DownReason::Idle;
        while AssertUnwindSafe(self.run_from(down)).catch_unwind().await.is_err() {
            let error = internal_error().of(&self.server.name);
            self.watched.fail(&error.clone().into());
            self.published.failed(&error, None, 0);
            down = DownReason::Failed(error);
        }
    }

    async fn run_from(&mut self, mut down: DownReason) {
        let mut attempts = RestartAttempts::new(self.behaviour().restart);
        loop {
            let waiting = match self.wait_until_wanted(&down, &mut attempts).await {
                WakeReason::By(waiting) => waiting,
                WakeReason::Close(Some(Command::Stop(done))) => {
                    down = self.idle_stopped(done, &mut attempts).await;
                    continue;
                }
                WakeReason::Close(close) => return self.stopped(close).await,
            };
            let after = match self.start(waiting).await {
                StartResult::Ready(opened, waiting) => {
                    self.serve(opened, waiting, &mut attempts).await
                }
                StartResult::Failed(error, waiting) => {
                    let error = error.of(&self.server.name);
                    let down = self.failed(&error, &mut attempts);
                    // The state is published first, so that a caller that receives the error sees
                    // the server down.
                    refuse_all(waiting, &error);
                    NextState::Down(down)
                }
                StartResult::Closed(close) => NextState::Close(close),
            };
            match after {
                NextState::Down(now) => down = now,
                NextState::Close(Some(Command::Stop(done))) => {
                    down = self.idle_stopped(done, &mut attempts).await;
                }
                NextState::Close(close) => return self.stopped(close).await,
            }
        }
    }

    /// Waits until the server is needed, or every handle was dropped.
    async fn wait_until_wanted(
        &mut self,
        down: &DownReason,
        attempts: &mut RestartAttempts,
    ) -> WakeReason {
        let mut waiting = Vec::new();
        let until = match down {
            DownReason::Until(time) => Some(*time),
            DownReason::Idle | DownReason::Failed(_) => None,
        };
        loop {
            let command = tokio::select! {
                command = self.commands.recv() => command,
                event = self.rare_events.next() => match event {
                    RareEvent::Hold(hold) => {
                        let is_wanted = matches!(*hold, HoldChange::Begun(..));
                        self.watched.settle(*hold);
                        // A holder does not request the subscription again.
                        if is_wanted && until.is_none() && self.may_return() {
                            return WakeReason::By(waiting);
                        }
                        continue;
                    }
                    // The cancelled request has not been sent. Log level and settings apply to a
                    // session from its start.
                    RareEvent::Cancelled(_) | RareEvent::LogLevel | RareEvent::Settings => continue,
                },
                () = wait_until(until) => return WakeReason::By(waiting),
            };
            match (command, down) {
                (None, _) => return WakeReason::Close(None),
                (Some(close), _) if close.ends_server() => {
                    refuse_all(waiting, &shutting_down());
                    return WakeReason::Close(Some(close));
                }
                // The session of the server request is closed; and a notification does not start a
                // server.
                (Some(Command::RespondToServer { .. } | Command::Notify(..)), _) => {}
                // An explicit connect starts the server now.
                (Some(connect @ Command::Connect(_)), _) => {
                    attempts.reset();
                    waiting.push(connect);
                    return WakeReason::By(waiting);
                }
                // A process that has exited stays down until an explicit connect (CON-5).
                (Some(command), DownReason::Failed(error)) if !self.may_return() => {
                    refuse(command, error);
                }
                // A remote server may be reachable again already.
                (Some(command), DownReason::Until(_)) if !self.may_return() => {
                    queue(command, &mut waiting);
                }
                (Some(command), _) => {
                    waiting.push(command);
                    return WakeReason::By(waiting);
                }
            }
        }
    }

    /// Starts the server, while commands queue up.
    async fn start(&mut self, mut waiting: Vec<Command>) -> StartResult {
        self.published.starting();
        let (stop, stopped) = watch::channel(false);
        let opener = ServerConnector {
            server: &self.server,
            behaviour: self.behaviour(),
            fingerprint: &self.fingerprint,
            options: &self.options,
            ids: &self.ids,
            published: &self.published,
            endings: &self.endings,
            stop: stopped,
            transport: OnceCell::new(),
            streams: StreamUse::default(),
            earlier: Mutex::default(),
        };
        // Boxed, because it is several times as large as everything that a server needs later.
        let mut opening = Box::pin(opener.open());
        let opened = tokio::select! {
            opened = &mut opening => opened,
            // A shutdown does not wait for the start of a server that hangs, but for its exit.
            close = close_requested(&mut self.commands, &mut waiting) => {
                stop.send_replace(true);
                refuse_all(waiting, &shutting_down());
                if let Ok(opened) = opening.await {
                    let patience = self.behaviour().timeouts.shutdown;
                    let remaining = Box::pin(opened.session.close(patience)).await;
                    self.published.record_orphans(&self.server.name, remaining, &self.options);
                }
                return StartResult::Closed(close);
            }
        };
        match opened {
            Ok(opened) => StartResult::Ready(Box::new(opened), waiting),
            Err(error) => StartResult::Failed(error, waiting),
        }
    }

    /// Whether a failed server is retried when it is needed. A remote server may be reachable
    /// again; a process that exited is gone.
    fn may_return(&self) -> bool {
        matches!(self.server.transport, Transport::Remote(_))
    }

    fn failed(&mut self, error: &Error, attempts: &mut RestartAttempts) -> DownReason {
        attempts.apply_settings(self.behaviour().restart);
        self.watched.fail(&error.clone().into());
        if self.may_return() && !self.watched.is_empty() {
            attempts.keep_reaching();
        }
        let pause = attempts.pause_after(error);
        self.published.failed(error, pause, attempts.consecutive());
        match pause {
            Some(pause) => DownReason::Until(Instant::now() + pause),
            None => DownReason::Failed(error.clone()),
        }
    }

    /// Reports that the server has been stopped until its next use, whatever its state was
    /// (CON-10).
    async fn idle_stopped(
        &mut self,
        done: oneshot::Sender<()>,
        attempts: &mut RestartAttempts,
    ) -> DownReason {
        self.fading.shutdown().await;
        self.endings.wait_for_all().await;
        self.finish_writing().await;
        attempts.reset();
        self.published.idle();
        let _ = done.send(());
        DownReason::Idle
    }

    /// Waits for the writes to the disk cache. A disk that hangs does not block a shutdown.
    async fn finish_writing(&mut self) {
        let _ = timeout(PATIENCE_WITH_DISK, self.writing.finish()).await;
    }

    /// Publishes that the server has been stopped, and completes the command that closed it.
    async fn stopped(&mut self, close: Option<Command>) {
        self.endings.wait_for_all().await;
        self.finish_writing().await;
        self.published.stopped();
        if let Some(Command::Close(done)) = close {
            let _ = done.send(());
        }
    }

    fn shutdown_timeout(&self) -> Duration {
        self.behaviour().timeouts.shutdown
    }

    /// The current limits and settings, which a reload may have changed.
    fn behaviour(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.behaviour.borrow())
    }
}

/// The result of a start.
enum StartResult {
    Ready(Box<ConnectedServer>, Vec<Command>),
    /// The start failed; these commands receive the error.
    Failed(Error, Vec<Command>),
    Closed(Option<Command>),
}

/// Waits for a command to stop, while others queue up. `None` when every handle was dropped.
async fn close_requested(
    commands: &mut mpsc::Receiver<Command>,
    waiting: &mut Vec<Command>,
) -> Option<Command> {
    loop {
        match commands.recv().await {
            Some(close) if close.ends_server() => return Some(close),
            Some(Command::RespondToServer { .. }) => {}
            Some(command) => queue(command, waiting),
            None => return None,
        }
    }
}

/// Queues a command, in place of a cancelled one if needed.
fn queue(command: Command, waiting: &mut Vec<Command>) {
    if !has_room(&command, waiting) {
        waiting.retain(|command| !command.is_cancelled());
        if !has_room(&command, waiting) {
            return refuse(command, &too_many());
        }
    }
    waiting.push(command);
}

/// Whether a command may be queued, by the share of its principal.
fn has_room(command: &Command, waiting: &[Command]) -> bool {
    // No principal can exceed its share of less than half.
    if waiting.len() < MAX_PENDING_CALLS / 2 {
        return true;
    }
    let holders = waiting.iter().map(Command::principal);
    FairShare::with_holders(MAX_PENDING_CALLS, holders).admits(command.principal())
}

fn refuse_all(commands: Vec<Command>, error: &Error) {
    commands.into_iter().for_each(|command| refuse(command, error));
}

/// Fails a command.
fn refuse(command: Command, error: &Error) {
    match command {
        Command::Connect(done) | Command::Refresh(_, done) => {
            let _ = done.send(Err(error.clone()));
        }
        Command::Request(asked) => {
            let _ = asked.reply.send(Err(error.clone().into()));
        }
        Command::Subscribe(.., reply) => {
            let _ = reply.send(Err(error.clone().into()));
        }
        Command::RespondToServer { .. } | Command::Notify(..) => {}
        Command::Stop(done) | Command::Close(done) => {
            let _ = done.send(());
        }
    }
}

fn internal_error() -> Error {
    let message = "a defect in Trunkline ended the connection to it; the log says where";
    Error::new(ErrorKind::Broken, message).with_hint("call again to start it again")
}

fn stale() -> Error {
    let message = "it has begun anew, or has other tools, since they were looked at";
    Error::new(ErrorKind::Stale, message).with_hint("look again at what it has")
}

fn queue_full() -> Error {
    let message = "it does not read what it is sent, and a lot waits for it already";
    Error::new(ErrorKind::Busy, message).with_hint("it may hang: end it and start it again")
}

fn too_many() -> Error {
    let message = format!(
        "too many calls wait for it already: one token or client may have half of \
         {MAX_PENDING_CALLS}, and less while others call it"
    );
    Error::new(ErrorKind::Busy, message).with_hint("try again when earlier calls are answered")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_beyond_the_queue_limit_is_retryable() {
        for error in [queue_full(), too_many()] {
            assert!(error.kind().is_retryable(), "{error}");
        }
    }
}
