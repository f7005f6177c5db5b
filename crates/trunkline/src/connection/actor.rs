//! The task that owns a server: it starts it when needed, passes requests on, and says how it is.

pub(super) mod backoff;
pub(super) mod subscriptions;
mod list_refresh;
mod logging;
mod legacy_subscribe;
mod listen;
mod run;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{OnceCell, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::handler::Abandoned;
use super::handshake::closing::SessionEndings;
use super::handshake::{Opened, Opener};
use super::options::Options;
use super::published::Shadow;
use super::server_notification::ServerNotification;
use super::session::{Asked, Ids, MAX_PENDING_CALLS, at, stopping};
use super::state::log_level::WantedLog;
use super::subscription::{Hold, Subject};
use crate::config::{Behaviour, Fingerprint, Server, Transport};
use crate::error::{Error, ErrorKind};
use crate::item::Kind;
use crate::message::{Notification, Response};
use crate::principal::{FairShare, Principal, Requester};
use backoff::Attempts;
use subscriptions::{Given, Watched};

/// The pause before a server that has forgotten us is spoken to again for the sake of what is
/// watched. One that forgets every time is not asked without end.
const PAUSE_AFTER_FORGOTTEN: Duration = Duration::from_secs(1);

/// How long we wait at the end for what is written down for the next time.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(2);

/// What the task can be told.
pub(super) enum Command {
    /// Be ready; say when, or why not.
    Connect(oneshot::Sender<Result<(), Error>>),
    /// Pass a request on.
    Ask(Asked),
    /// Answer a question the server asked in a session.
    Respond { session: u64, response: Response },
    /// Tell the server something.
    Tell(Notification),
    /// Ask for a list again; say when it is there, or why not.
    Refresh(Kind, oneshot::Sender<Result<(), Error>>),
    /// Let somebody hear of a resource or a task.
    Watch(Subject, Requester, oneshot::Sender<Given>),
    /// End the server, and say when nothing of it is left. The next use starts it again.
    Stop(oneshot::Sender<()>),
    /// End for good, and say when nothing is left.
    Close(oneshot::Sender<()>),
}

impl Command {
    /// The principal whose share of what may wait it uses.
    fn principal(&self) -> &Principal {
        match self {
            Self::Ask(Asked { requester: Some(requester), .. }) => &requester.principal,
            Self::Watch(_, holder, _) => &holder.principal,
            _ => &Principal::Anonymous,
        }
    }

    /// Whether it ends the server, for now or for good.
    fn ends_server(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Close(_))
    }

    /// Whether nobody waits for what comes of it any more.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Connect(done) | Self::Refresh(_, done) => done.is_closed(),
            Self::Ask(asked) => asked.reply.is_closed(),
            Self::Watch(.., reply) => reply.is_closed(),
            Self::Respond { .. } | Self::Tell(_) | Self::Stop(_) | Self::Close(_) => false,
        }
    }
}

/// The task of one server.
pub(super) struct Task {
    pub(super) server: Arc<Server>,
    /// Bounds and rules, which may change while it runs.
    pub(super) behaviour: watch::Receiver<Arc<Behaviour>>,
    pub(super) fingerprint: Fingerprint,
    pub(super) options: Options,
    pub(super) ids: Arc<Ids>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Requests that nobody waits for any more.
    pub(super) abandoned: mpsc::UnboundedReceiver<Abandoned>,
    /// The resources and tasks that somebody wants to hear of, in this conversation and the next.
    pub(super) watched: Watched,
    /// What somebody does not hold any more.
    pub(super) holds: mpsc::UnboundedReceiver<Hold>,
    /// The most of its log that anybody wants.
    pub(super) log_level: watch::Receiver<Option<WantedLog>>,
    pub(super) shadow: Arc<Shadow>,
    /// Whoever wants to hear what the server says of its own accord.
    pub(super) told: broadcast::Sender<ServerNotification>,
    /// Conversations that the server has forgotten, in which somebody still waits. They end with us.
    pub(super) fading: JoinSet<()>,
    /// Sessions that came to nothing, and are ending.
    pub(super) endings: SessionEndings,
    /// What is being written down for the next time.
    pub(super) writing: JoinSet<()>,
}

/// Why the task stops serving a session.
enum End {
    /// The server ended.
    Server(Error),
    /// Nobody has needed it for so long.
    Idle,
    /// The server has forgotten us, and has to be spoken to anew.
    Forgotten,
    /// The server cannot be reached any more. What it has been asked before goes on.
    OutOfReach(Error),
    /// We were told to end, by this command if nobody was lost.
    Told(Option<Command>),
}

/// Why the server does not run.
enum Down {
    /// Nobody needs it.
    Idle,
    /// It failed, and stays down until somebody asks for it.
    Failed(Error),
    /// It failed, and is started again then.
    Until(Instant),
}

/// What comes after a server was started, and perhaps served.
enum After {
    /// It does not run.
    Down(Down),
    /// We end, for this command if nobody was lost.
    Close(Option<Command>),
}

/// What brings a server up, or the task to its end.
enum Wanted {
    /// It is wanted, for the sake of these.
    By(Vec<Command>),
    Close(Option<Command>),
}

impl Task {
    /// Runs until it is told to end. A panic ends the conversation and what waits for it, and leaves
    /// the server failed: it can be started again.
    pub(super) async fn run(mut self) {
        let mut down = Down::Idle;
        while AssertUnwindSafe(self.run_from(down)).catch_unwind().await.is_err() {
            let error = defect().of(&self.server.name);
            self.watched.fail(&Err(error.clone()));
            self.shadow.failed(&error, None, 0);
            down = Down::Failed(error);
        }
    }

    async fn run_from(&mut self, mut down: Down) {
        let mut attempts = Attempts::new(self.behaviour().restart);
        loop {
            let waiting = match self.wanted(&down, &mut attempts).await {
                Wanted::By(waiting) => waiting,
                Wanted::Close(Some(Command::Stop(done))) => {
                    down = self.stopped_for_now(done, &mut attempts).await;
                    continue;
                }
                Wanted::Close(close) => return self.stopped(close).await,
            };
            let after = match self.start(waiting).await {
                Started::Ready(opened, waiting) => {
                    self.serve(*opened, waiting, &mut attempts).await
                }
                Started::Failed(error, waiting) => {
                    let error = error.of(&self.server.name);
                    let down = self.failed(&error, &mut attempts);
                    // Whoever hears why sees that it is down.
                    refuse_all(waiting, &error);
                    After::Down(down)
                }
                Started::Closed(close) => After::Close(close),
            };
            match after {
                After::Down(now) => down = now,
                After::Close(Some(Command::Stop(done))) => {
                    down = self.stopped_for_now(done, &mut attempts).await;
                }
                After::Close(close) => return self.stopped(close).await,
            }
        }
    }

    /// Waits until the server is wanted, or nobody can want it any more.
    async fn wanted(&mut self, down: &Down, attempts: &mut Attempts) -> Wanted {
        let mut waiting = Vec::new();
        let until = match down {
            Down::Until(time) => Some(*time),
            Down::Idle | Down::Failed(_) => None,
        };
        loop {
            let command = tokio::select! {
                command = self.commands.recv() => command,
                // Nothing of it has been sent.
                Some(_) = self.abandoned.recv() => continue,
                Some(hold) = self.holds.recv() => {
                    let is_wanted = matches!(hold, Hold::Begun(..));
                    self.watched.settle(hold);
                    // Whoever holds something does not ask again.
                    if is_wanted && until.is_none() && self.may_return() {
                        return Wanted::By(waiting);
                    }
                    continue;
                }
                () = at(until) => return Wanted::By(waiting),
            };
            match (command, down) {
                (None, _) => return Wanted::Close(None),
                (Some(close), _) if close.ends_server() => {
                    refuse_all(waiting, &stopping());
                    return Wanted::Close(Some(close));
                }
                // The session it was asked in is over; and nobody is started to be told something.
                (Some(Command::Respond { .. } | Command::Tell(_)), _) => {}
                // Whoever asks for it by name wants it now.
                (Some(connect @ Command::Connect(_)), _) => {
                    attempts.forget();
                    waiting.push(connect);
                    return Wanted::By(waiting);
                }
                // Once a process has ended it stays down until somebody asks for it (CON-5).
                (Some(command), Down::Failed(error)) if !self.may_return() => {
                    refuse(command, error);
                }
                // What is at an address may be back already.
                (Some(command), Down::Until(_)) if !self.may_return() => {
                    queue(command, &mut waiting);
                }
                (Some(command), _) => {
                    waiting.push(command);
                    return Wanted::By(waiting);
                }
            }
        }
    }

    /// Starts the server, while commands queue up.
    async fn start(&mut self, mut waiting: Vec<Command>) -> Started {
        self.shadow.starting();
        let (stop, stopped) = watch::channel(false);
        let opener = Opener {
            server: &self.server,
            behaviour: self.behaviour(),
            fingerprint: &self.fingerprint,
            options: &self.options,
            ids: &self.ids,
            shadow: &self.shadow,
            endings: &self.endings,
            stop: stopped,
            transport: OnceCell::new(),
            earlier: Mutex::default(),
        };
        let mut opening = std::pin::pin!(opener.open());
        let opened = tokio::select! {
            opened = &mut opening => opened,
            // Whoever wants us to end does not wait for a server that hangs at its start, but for
            // its end.
            close = told_to_close(&mut self.commands, &mut waiting) => {
                stop.send_replace(true);
                refuse_all(waiting, &stopping());
                if let Ok(opened) = opening.await {
                    let patience = self.behaviour().timeouts.shutdown;
                    let remaining = opened.session.close(patience).await;
                    self.shadow.left_behind(&self.server.name, remaining, &self.options);
                }
                return Started::Closed(close);
            }
        };
        match opened {
            Ok(opened) => Started::Ready(Box::new(opened), waiting),
            Err(error) => Started::Failed(error, waiting),
        }
    }

    /// Whether a server that failed is tried again when it is needed. What failed on the network
    /// may be back; a process that ended is not.
    fn may_return(&self) -> bool {
        matches!(self.server.transport, Transport::Remote(_))
    }

    fn failed(&mut self, error: &Error, attempts: &mut Attempts) -> Down {
        attempts.follow(self.behaviour().restart);
        self.watched.fail(&Err(error.clone()));
        if self.may_return() && !self.watched.is_empty() {
            attempts.keep_reaching();
        }
        let pause = attempts.pause_after(error);
        self.shadow.failed(error, pause, attempts.in_a_row());
        match pause {
            Some(pause) => Down::Until(Instant::now() + pause),
            None => Down::Failed(error.clone()),
        }
    }

    /// Says that the server has been ended until its next use, whatever it was before (CON-10).
    async fn stopped_for_now(
        &mut self,
        done: oneshot::Sender<()>,
        attempts: &mut Attempts,
    ) -> Down {
        self.fading.shutdown().await;
        self.endings.over().await;
        self.finish_writing().await;
        attempts.forget();
        self.shadow.idle();
        let _ = done.send(());
        Down::Idle
    }

    /// Waits for what is written down for the next time. A disk that hangs does not keep anybody from
    /// ending.
    async fn finish_writing(&mut self) {
        let written = async { while self.writing.join_next().await.is_some() {} };
        let _ = timeout(PATIENCE_WITH_DISK, written).await;
    }

    /// Says that the server has been ended, and to whoever asked for it that it is done.
    async fn stopped(&mut self, close: Option<Command>) {
        self.endings.over().await;
        self.finish_writing().await;
        self.shadow.stopped();
        if let Some(Command::Close(done)) = close {
            let _ = done.send(());
        }
    }

    fn shutdown_patience(&self) -> Duration {
        self.behaviour().timeouts.shutdown
    }

    /// The bounds and rules of now: a new configuration may have other ones.
    fn behaviour(&self) -> Arc<Behaviour> {
        Arc::clone(&self.behaviour.borrow())
    }
}

/// What came of a start.
enum Started {
    Ready(Box<Opened>, Vec<Command>),
    /// It came to nothing; these are to be told.
    Failed(Error, Vec<Command>),
    Closed(Option<Command>),
}

/// Waits for the command to close, while others queue up. `None` when nobody can command any more.
async fn told_to_close(
    commands: &mut mpsc::Receiver<Command>,
    waiting: &mut Vec<Command>,
) -> Option<Command> {
    loop {
        match commands.recv().await {
            Some(close) if close.ends_server() => return Some(close),
            Some(Command::Respond { .. }) => {}
            Some(command) => queue(command, waiting),
            None => return None,
        }
    }
}

/// Lets a command wait, in the place of one that nobody waits for any more if need be.
fn queue(command: Command, waiting: &mut Vec<Command>) {
    if !has_room(&command, waiting) {
        waiting.retain(|command| !command.is_abandoned());
        if !has_room(&command, waiting) {
            return refuse(command, &too_many());
        }
    }
    waiting.push(command);
}

/// Whether a command may wait with others, by the share of its principal.
fn has_room(command: &Command, waiting: &[Command]) -> bool {
    // No principal has more than its share of less than half.
    if waiting.len() < MAX_PENDING_CALLS / 2 {
        return true;
    }
    let holders = waiting.iter().map(Command::principal);
    FairShare::with_holders(MAX_PENDING_CALLS, holders).admits(command.principal())
}

fn refuse_all(commands: Vec<Command>, error: &Error) {
    commands.into_iter().for_each(|command| refuse(command, error));
}

/// Answers a command that came to nothing.
fn refuse(command: Command, error: &Error) {
    match command {
        Command::Connect(done) | Command::Refresh(_, done) => {
            let _ = done.send(Err(error.clone()));
        }
        Command::Ask(asked) => {
            let _ = asked.reply.send(Err(error.clone()));
        }
        Command::Watch(.., reply) => {
            let _ = reply.send(Err(error.clone()));
        }
        Command::Respond { .. } | Command::Tell(_) => {}
        Command::Stop(done) | Command::Close(done) => {
            let _ = done.send(());
        }
    }
}

fn defect() -> Error {
    let message = "a defect in Trunkline ended the connection to it; the log says where";
    Error::new(ErrorKind::Broken, message).with_hint("call again to start it again")
}

fn begun_anew() -> Error {
    let message = "it has begun anew, or has other tools, since they were looked at";
    Error::new(ErrorKind::BegunAnew, message).with_hint("look again at what it has")
}

fn unread() -> Error {
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
    fn whoever_comes_when_too_much_waits_may_come_again() {
        for error in [unread(), too_many()] {
            assert!(error.kind().is_retryable(), "{error}");
        }
    }
}
