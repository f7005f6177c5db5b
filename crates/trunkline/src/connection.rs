//! One server, one task: handshake, generation, pending table, lists, state.

mod status;
mod options;
mod generation;
mod lists;
mod session;
mod handshake;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use lists::Tool;
pub use options::Options;
pub use status::{SetAside, State, Status};

pub use crate::wire::{ChildOptions, HttpOptions, Proxies};

use crate::config::Server;
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, RpcError};
use session::{Asked, Ids, gone};
use task::{Command, Task, Wait};

/// Commands that may wait for a task that is busy starting its server.
const MAX_COMMANDS: usize = 256;

/// A server and the task that owns it. Dropping it ends both, though not in order: use
/// [`Connection::close`] for that.
pub struct Connection {
    server: Arc<Server>,
    ids: Arc<Ids>,
    commands: mpsc::Sender<Command>,
    abandoned: mpsc::UnboundedSender<u64>,
    status: watch::Receiver<Status>,
    tools: watch::Receiver<Arc<[Tool]>>,
    failures: AtomicU64,
}

impl Connection {
    /// Makes a connection. Nothing is started before it is needed.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(server: Server, options: Options) -> Self {
        let (commands, for_task) = mpsc::channel(MAX_COMMANDS);
        let (abandoned, abandoned_for_task) = mpsc::unbounded_channel();
        let (status_sender, status) = watch::channel(Status::default());
        let no_tools: Arc<[Tool]> = Arc::new([]);
        let (tools_sender, tools) = watch::channel(no_tools);
        let (server, ids) = (Arc::new(server), Arc::new(Ids::default()));
        let task = Task {
            server: Arc::clone(&server),
            options,
            ids: Arc::clone(&ids),
            commands: for_task,
            abandoned: abandoned_for_task,
            status: status_sender,
            tools: tools_sender,
        };
        tokio::spawn(task.run());
        Self { server, ids, commands, abandoned, status, tools, failures: AtomicU64::new(0) }
    }

    /// The server as it is configured.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// How the server is doing now.
    pub fn status(&self) -> Status {
        let failures = self.failures.load(Ordering::Relaxed);
        Status { failures, ..self.status.borrow().clone() }
    }

    /// The server's tools, in the order of their names; none while it is not ready.
    pub fn tools(&self) -> Arc<[Tool]> {
        Arc::clone(&self.tools.borrow())
    }

    /// Starts the server, if it does not run, and waits until it is ready.
    pub async fn connect(&self) -> Result<(), Error> {
        let (done, ready) = oneshot::channel();
        self.command(Command::Connect(done)).await?;
        ready.await.unwrap_or_else(|_| Err(gone().of(&self.server.name)))
    }

    /// Asks the server something, starting it if it does not run. Dropping the future forgets the
    /// request and tells the server.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Result<Raw, RpcError>, Error> {
        match self.request_once(method, params.clone()).await {
            // It never looked at the request: a new session can.
            Err(error) if error.kind() == ErrorKind::SessionExpired => {
                self.request_once(method, params).await
            }
            answer => answer,
        }
    }

    async fn request_once(
        &self,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Result<Raw, RpcError>, Error> {
        let timeouts = &self.server.behaviour.timeouts;
        let starting = self.status.borrow().state != State::Ready;
        let patience = if starting {
            timeouts.call + timeouts.connect + timeouts.handshake
        } else {
            timeouts.call
        };
        let deadline = Instant::now() + patience;
        let (reply, answer) = oneshot::channel();
        let id = self.ids.next();
        let method = method.into();
        let asked = Asked { id, method, params, deadline, reply };
        let abandoned = self.abandoned.clone();
        let wait = Wait { id, answer, abandoned, deadline, answered: false };
        self.command(Command::Ask(asked)).await?;
        wait.answer().await.map_err(|error| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            self.explained(error)
        })
    }

    /// An error with whose it is and, for a call that took too long, how long that is.
    fn explained(&self, error: Error) -> Error {
        let bound = self.server.behaviour.timeouts.call;
        // An error that names its server already is about its start, not about the call.
        let error = match (error.kind(), error.server()) {
            (ErrorKind::TimedOut, None) => {
                let message = format!("it did not answer the call within {bound:?}");
                Error::new(ErrorKind::TimedOut, message).with_hint("`timeouts.call` is the bound")
            }
            _ => error,
        };
        error.of(&self.server.name)
    }

    async fn command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| gone().of(&self.server.name))
    }

    /// Ends the server. When this returns, nothing of it is left running (CON-10).
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.command(Command::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }
}
