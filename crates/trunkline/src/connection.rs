//! One server, one task: handshake, generation, pending table, lists, state.

mod status;
mod caller;
mod generation;
mod parameters;
mod lists;
mod memory;
mod options;
mod session;
mod handshake;
mod shadow;
mod backoff;
mod task;
mod asking;

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, oneshot, watch};

pub use asking::Ask;
pub use caller::{Answering, Caller, Question, Unattended};
pub use lists::Tool;
pub use options::Options;
pub use status::{SetAside, State, Status};

pub use crate::wire::{ChildOptions, HttpOptions, Proxies};

use crate::config::{Fingerprint, Server};
use crate::error::Error;
use crate::message::Notification;
use session::{Ids, gone};
use shadow::Shadow;
use task::{Command, Task};

/// Commands that may wait for a task that is busy starting its server.
const MAX_COMMANDS: usize = 256;

/// Notifications that a slow listener may be behind before it misses some.
const MAX_UNHEARD: usize = 256;

/// A server and the task that owns it. Dropping it ends both, though not in order: use
/// [`Connection::close`] for that.
pub struct Connection {
    server: Arc<Server>,
    fingerprint: Fingerprint,
    ids: Arc<Ids>,
    commands: mpsc::Sender<Command>,
    abandoned: mpsc::UnboundedSender<u64>,
    shadow: Arc<Shadow>,
    told: broadcast::Sender<Notification>,
}

impl Connection {
    /// Makes a connection. Nothing is started before it is needed; if the options have a memory,
    /// the tools the server had the last time are there at once.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(server: Server, options: Options) -> Self {
        let (commands, for_task) = mpsc::channel(MAX_COMMANDS);
        let (abandoned, abandoned_for_task) = mpsc::unbounded_channel();
        let told = broadcast::Sender::new(MAX_UNHEARD);
        let fingerprint = server.fingerprint();
        let remembered = options.memory().recall(&fingerprint);
        let remembered = remembered.map(|remembered| remembered.tools).unwrap_or_default();
        let shadow = Arc::new(Shadow::new(remembered));
        let (server, ids) = (Arc::new(server), Arc::new(Ids::default()));
        let task = Task {
            server: Arc::clone(&server),
            fingerprint,
            options,
            ids: Arc::clone(&ids),
            commands: for_task,
            abandoned: abandoned_for_task,
            shadow: Arc::clone(&shadow),
            told: told.clone(),
        };
        tokio::spawn(task.run());
        Self { server, fingerprint, ids, commands, abandoned, shadow, told }
    }

    /// The server as it is configured.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The fingerprint of how the server is reached.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// How the server is doing now.
    pub fn status(&self) -> Status {
        self.shadow.status()
    }

    /// How the server is doing, now and whenever that changes. Changes that follow each other
    /// quickly may be seen as one.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.shadow.watch()
    }

    /// The server's tools as far as they are known, in the order of their names; none if it
    /// failed.
    pub fn tools(&self) -> Arc<[Tool]> {
        self.shadow.listed().tools
    }

    /// The server's tools, asked for again if they are not known or may have changed since: when
    /// the server said so, or when the time for which they hold is over (CON-9). If they cannot be
    /// had, but an older list is there, that is what there is.
    pub async fn fresh_tools(&self) -> Result<Arc<[Tool]>, Error> {
        let listed = self.shadow.listed();
        if listed.is_fresh() {
            return Ok(listed.tools);
        }
        let (done, refreshed) = oneshot::channel();
        self.command(Command::Refresh(done)).await?;
        let refreshed = refreshed.await.unwrap_or_else(|_| Err(self.gone()));
        match (refreshed, self.shadow.listed().tools) {
            (Err(error), tools) if tools.is_empty() => Err(error.of(&self.server.name)),
            (_, tools) => Ok(tools),
        }
    }

    /// Waits until the list of tools is another one than this.
    pub async fn tools_changed(&self, known: &Arc<[Tool]>) {
        let mut listed = self.shadow.watch_tools();
        // It cannot end before us: we hold the other side.
        let _ = listed.wait_for(|listed| !Arc::ptr_eq(&listed.tools, known)).await;
    }

    /// What the server says of its own accord from now on, in its order: that a resource changed,
    /// that a list did, a line of its log that belongs to no request.
    pub fn notifications(&self) -> broadcast::Receiver<Notification> {
        self.told.subscribe()
    }

    /// Starts the server, if it does not run, and waits until it is ready.
    pub async fn connect(&self) -> Result<(), Error> {
        let (done, ready) = oneshot::channel();
        self.command(Command::Connect(done)).await?;
        ready.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Starts the server, if it does not run, and does not wait.
    pub fn start(&self) {
        let (done, _) = oneshot::channel();
        // If that many commands wait already, it is being started.
        let _ = self.commands.try_send(Command::Connect(done));
    }

    /// Ends the server. When this returns, nothing of it is left running (CON-10).
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.command(Command::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }

    async fn command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| self.gone())
    }

    fn gone(&self) -> Error {
        gone().of(&self.server.name)
    }
}
