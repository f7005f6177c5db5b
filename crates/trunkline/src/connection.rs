//! One server, one task: handshake, generation, pending table, lists, state.

mod state;
mod subscription;
mod server_notification;
mod handler;
mod client_meta;
mod param_headers;
mod pagination;
mod cache;
mod options;
mod session;
mod published;
mod handshake;
mod actor;
mod request;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::protocol::ProtocolVersion;
use handler::untrusted;
use state::{error_context, retry};

pub use crate::connection::handler::{CallHandler, HandlerFuture, NoopHandler, ServerRequest};
pub use crate::connection::param_headers::header_arguments;
pub(crate) use crate::connection::request::round_trips::{RoundOutcome, RoundTrips};
pub use crate::connection::request::{InputRequired, OutgoingRequest};
pub use crate::connection::state::log_level::LogLevel;
pub use crate::connection::state::status::{RejectedItem, State, Status};
pub(crate) use client_meta::META_KEYS;
pub use options::{ConnectionOptions, OrphanProcess};
pub use server_notification::ServerNotification;
use state::log_level::RequestedLogLevel;
pub use subscription::{ResourceSubscription, TaskSubscription};

pub use crate::transport::{
    ChildOptions, HttpOptions, MAX_MESSAGE_BYTES, Proxies, RemainingProcess,
};

use crate::config::{Fingerprint, Protocol, Restart, Server, ServerSettings, Transport};
use crate::error::{Error, ErrorKind};
use crate::item::{Item, ItemKind};
use crate::message::{Notification, RpcError};
use crate::principal::{FairSlots, Requester};
use actor::subscriptions::Subscriptions;
use actor::{Command, ServerActor};
use handler::CancelledRequest;
use handshake::closing::SessionClosings;
use published::PublishedState;
use request::list_requests::ListRequests;
use session::{RequestIds, closed_error};
use subscription::{HoldSender, SubscriptionGuard, SubscriptionSubject};

/// Commands that may wait for a task that is busy starting its server.
const MAX_COMMANDS: usize = 256;

/// Notifications that a slow listener may be behind before it misses some.
const MAX_UNHEARD: usize = 256;

/// A server and the task that owns it. Dropping it ends both, though not in order: use
/// [`Connection::close`] before that.
pub struct Connection {
    server: Arc<Server>,
    /// Bounds and rules, which may change while it runs.
    behaviour: watch::Sender<Arc<ServerSettings>>,
    fingerprint: Fingerprint,
    ids: Arc<RequestIds>,
    commands: mpsc::Sender<Command>,
    abandoned: mpsc::UnboundedSender<CancelledRequest>,
    holds: HoldSender,
    log_level: watch::Sender<Option<RequestedLogLevel>>,
    published: Arc<PublishedState>,
    told: broadcast::Sender<ServerNotification>,
    /// Slots for calls, and how many they are.
    slots: Mutex<Option<(u32, Arc<FairSlots>)>>,
    /// Lists that are being asked for, for those who wait for a while.
    refreshes: ListRequests,
}

impl Connection {
    /// Makes a connection. Nothing is started before it is needed; if the options have a memory,
    /// the tools the server had the last time are there at once.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(server: Server, options: ConnectionOptions) -> Self {
        let (commands, for_task) = mpsc::channel(MAX_COMMANDS);
        let (abandoned, abandoned_for_task) = mpsc::unbounded_channel();
        let (holds, holds_for_task) = mpsc::unbounded_channel();
        let (log_level, log_level_for_task) = watch::channel(None);
        let told = broadcast::Sender::new(MAX_UNHEARD);
        let mut fingerprint = server.fingerprint();
        if server.is_folder_independent() {
            // A relative path means another program in another folder.
            fingerprint = fingerprint.within(&options.resolver().working_directory());
        }
        let remembered = options.cache().load(&fingerprint);
        let remembered = remembered.map(|remembered| remembered.tools).unwrap_or_default();
        let published = Arc::new(PublishedState::new(remembered));
        let behaviour = watch::Sender::new(Arc::new(server.behaviour.clone()));
        let (server, ids) = (Arc::new(server), Arc::new(RequestIds::default()));
        let task = ServerActor {
            server: Arc::clone(&server),
            behaviour: behaviour.subscribe(),
            fingerprint,
            options,
            ids: Arc::clone(&ids),
            commands: for_task,
            abandoned: abandoned_for_task,
            watched: Subscriptions::new(holds.clone()),
            holds: holds_for_task,
            log_level: log_level_for_task,
            published: Arc::clone(&published),
            told: told.clone(),
            fading: JoinSet::new(),
            endings: SessionClosings::default(),
            writing: JoinSet::new(),
        };
        tokio::spawn(task.run());
        let (slots, refreshes) = (Mutex::default(), ListRequests::default());
        Self {
            server,
            behaviour,
            fingerprint,
            ids,
            commands,
            abandoned,
            holds,
            log_level,
            published,
            told,
            slots,
            refreshes,
        }
    }

    /// The server as it was configured when the connection was made. Bounds and rules may be other
    /// ones by now.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The bounds and rules of now.
    pub(crate) fn behaviour(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.behaviour.borrow())
    }

    /// Follows other bounds and rules from now on. What is under way keeps those it began with.
    pub(crate) fn apply_settings(&self, behaviour: &ServerSettings) {
        self.behaviour.send_replace(Arc::new(behaviour.clone()));
    }

    /// The fingerprint of how the server is reached.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// How the server is doing now.
    pub fn status(&self) -> Status {
        self.published.status()
    }

    /// Whether what went wrong with the server in this way may work later, though nobody does
    /// anything about it.
    pub fn is_retryable(&self, kind: ErrorKind) -> bool {
        retry::is_retryable(self.current(), &self.published.watch().borrow(), kind)
    }

    /// Whether the server, if it cannot be used, may be there later, though nobody does anything
    /// about it.
    pub fn will_recover(&self) -> bool {
        retry::will_recover(self.current(), &self.published.watch().borrow())
    }

    /// How the server is reached, and whether it is started again by the rules of now.
    fn current(&self) -> (&Transport, Restart) {
        (&self.server.transport, self.behaviour().restart)
    }

    /// Whether the server has failed and does not come back by itself.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.published.watch().borrow().state == State::Failed && !self.will_recover()
    }

    /// Slots for calls; other ones when their number has changed.
    pub(crate) fn slots(&self, limit: u32) -> Arc<FairSlots> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || (limit, FairSlots::new(limit as usize));
        let known = slots.take().filter(|(known, _)| *known == limit);
        Arc::clone(&slots.insert(known.unwrap_or_else(made)).1)
    }

    /// A text of the server without the secrets that the server was given, for logs and other places
    /// in which the host says something itself (SEC-2).
    pub fn masked(&self, text: &str) -> String {
        self.published.mask().masked(text)
    }

    /// Whether the server is spoken to in revision 2026-07-28, or was the last time.
    pub(crate) fn is_modern(&self) -> bool {
        self.published.speaks(ProtocolVersion::MODERN)
    }

    /// Whether the server may be reached over HTTP in the older era as well: it says so, and the
    /// configuration leaves it open.
    pub(crate) fn speaks_both_eras(&self) -> bool {
        self.may_speak_both_eras() && self.published.speaks_both_eras()
    }

    /// Whether the server has sent a request in an era that cannot answer it.
    pub(crate) fn sends_unanswerable(&self) -> bool {
        self.published.sends_unanswerable()
    }

    /// Whether that can be, as far as the configuration tells.
    pub(crate) fn may_speak_both_eras(&self) -> bool {
        let is_remote = matches!(self.server.transport, Transport::Remote(_));
        is_remote && self.server.behaviour.protocol == Protocol::Auto
    }

    /// Wants as much of the log as is wanted of another connection.
    pub(crate) fn copy_log_level(&self, other: &Self) {
        let wanted = other.log_level.borrow().clone();
        if let Some((level, _)) = wanted {
            self.set_log_level(level);
        }
    }

    /// Tells whoever listens to this connection what the server says on another one, but for what it
    /// says here as well.
    pub(crate) fn forward_notifications_of(&self, other: &Self) {
        let (mut said, told) = (other.notifications(), self.told.downgrade());
        tokio::spawn(async move {
            loop {
                let notification = match said.recv().await {
                    Ok(notification) => notification,
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                let Some(told) = told.upgrade() else { return };
                if !is_sent_per_request(&notification.notification.method) {
                    // There may be no listener.
                    let _ = told.send(notification);
                }
            }
        });
    }

    /// The edition of the server's tools that is known: another one whenever it begins anew or has other
    /// tools; zero, if it is not ready.
    pub fn tools_revision(&self) -> u64 {
        self.published.tools_revision()
    }

    /// How the server is doing, now and whenever that changes. Changes that follow each other
    /// quickly may be seen as one.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.published.watch()
    }

    /// The server's tools as far as they are known, in the order of their names; none if it
    /// failed.
    pub fn tools(&self) -> Arc<[Arc<Item>]> {
        self.list(ItemKind::Tool)
    }

    /// What the server has of a kind, as far as that is known, in the order of names. Tools are
    /// asked for when a server starts, all else by [`list_fresh`](Self::list_fresh).
    pub fn list(&self, kind: ItemKind) -> Arc<[Arc<Item>]> {
        self.published.listed(kind).items
    }

    /// What the server has of a kind, asked for again if that is not known or may have changed
    /// since: when the server said so, or when the time for which it holds is over (CON-9). If it
    /// cannot be had, but an older list is there, that is what there is.
    pub async fn list_fresh(&self, kind: ItemKind) -> Result<Arc<[Arc<Item>]>, Error> {
        let listed = self.published.listed(kind);
        if listed.is_fresh() {
            return Ok(listed.items);
        }
        let (done, refreshed) = oneshot::channel();
        self.send_command(Command::Refresh(kind, done)).await?;
        let refreshed = self.within_timeout(refreshed).await;
        let listed = self.published.listed(kind);
        match refreshed {
            Err(error) if !listed.is_known => Err(error.of(&self.server.name)),
            _ => Ok(listed.items),
        }
    }

    /// Whether what the server has of a kind need not be asked for again.
    pub fn is_fresh(&self, kind: ItemKind) -> bool {
        self.published.is_fresh(kind)
    }

    /// Whether the server may have things of a kind: it declares them, or has not said yet what it has.
    pub fn offers(&self, kind: ItemKind) -> bool {
        self.published.offers(kind)
    }

    /// Whether what the server has of a kind has ever been asked for. Such a list is asked for again by
    /// itself when the server says that it has changed.
    pub fn is_loaded(&self, kind: ItemKind) -> bool {
        self.published.listed(kind).is_known
    }

    /// Waits until a list is another one than this.
    pub async fn list_changed(&self, kind: ItemKind, known: &Arc<[Arc<Item>]>) {
        let mut listed = self.published.watch_list(kind);
        // It cannot end before us: we hold the other side.
        let _ = listed.wait_for(|listed| !Arc::ptr_eq(&listed.items, known)).await;
    }

    /// What the server says of its own accord from now on, in its order: that a resource changed,
    /// that a list did, a line of its log that belongs to no request, what the protocol does not
    /// know. Each says which client alone it can be about, if it is about a call.
    pub fn notifications(&self) -> broadcast::Receiver<ServerNotification> {
        self.told.subscribe()
    }

    /// Tells the server something, if it runs: one that does not is not started for that, and need
    /// not know. Nobody hears whether it took notice.
    pub async fn notify(&self, notification: Notification) -> Result<(), Error> {
        self.notify_for(&Requester::default(), notification).await
    }

    /// The same on behalf of a client: for a while, messages that the server sends without saying to
    /// what they belong may be about it.
    pub async fn notify_for(
        &self,
        requester: &Requester,
        notification: Notification,
    ) -> Result<(), Error> {
        self.send_command(Command::Notify(notification, requester.clone())).await
    }

    /// Wants to hear when a resource changes, starting the server if it does not run. While
    /// anybody holds what comes back, the server is asked to say so, also after it has been started
    /// again; and it is not stopped for being idle.
    ///
    /// A server that does not want to, or cannot, answers with an error.
    pub async fn subscribe(
        &self,
        uri: &str,
    ) -> Result<Result<ResourceSubscription, RpcError>, Error> {
        self.subscribe_for(&Requester::default(), uri).await
    }

    /// The same on behalf of a client. It uses the share of the client's principal of what may be
    /// watched, and messages of the server about it reach no other client.
    pub async fn subscribe_for(
        &self,
        requester: &Requester,
        uri: &str,
    ) -> Result<Result<ResourceSubscription, RpcError>, Error> {
        let held = self.hold(SubscriptionSubject::resource(uri), requester).await?;
        Ok(held.map(ResourceSubscription))
    }

    /// Wants to hear when a resource changes, for somebody who was promised that already: whether or
    /// not the server can be asked now. It is asked whenever it is there; at an address, it is tried
    /// until it is.
    pub fn resubscribe(&self, requester: &Requester, uri: &str) -> ResourceSubscription {
        let subject = SubscriptionSubject::resource(uri);
        ResourceSubscription(SubscriptionGuard::begin(subject, requester.clone(), &self.holds))
    }

    /// Wants to hear what becomes of a task of the server, by the id that the server gave it. Like
    /// [`subscribe`](Self::subscribe) otherwise; servers of the older generation cannot.
    pub async fn subscribe_to_task(
        &self,
        requester: &Requester,
        id: &str,
    ) -> Result<Result<TaskSubscription, RpcError>, Error> {
        Ok(self.hold(SubscriptionSubject::task(id), requester).await?.map(TaskSubscription))
    }

    async fn hold(
        &self,
        subject: SubscriptionSubject,
        requester: &Requester,
    ) -> Result<Result<SubscriptionGuard, RpcError>, Error> {
        let (reply, given) = oneshot::channel();
        self.send_command(Command::Subscribe(subject, requester.clone(), reply)).await?;
        let given =
            self.within_timeout(given).await.map_err(|error| error.of(&self.server.name))?;
        Ok(given.map_err(|error| untrusted::sanitized_error(self.server.trust, error)))
    }

    /// Wants to hear this much of the server's log, now and after it has been started again. Of
    /// what several want, the most is asked for.
    ///
    /// Servers of the older generation tell everybody the same, and are asked once. Modern ones
    /// are asked with each request, in its `_meta`: for them this does nothing.
    pub fn set_log_level(&self, level: LogLevel) {
        self.raise_log_level(level, None);
    }

    /// The same on behalf of a client: messages of the server about the request reach no other client.
    pub fn set_log_level_for(&self, requester: &Requester, level: LogLevel) {
        self.raise_log_level(level, Some(requester));
    }

    fn raise_log_level(&self, level: LogLevel, requester: Option<&Requester>) {
        self.log_level.send_if_modified(|wanted| {
            let is_more = wanted.as_ref().is_none_or(|(wanted, _)| level < *wanted);
            if is_more {
                *wanted = Some((level, requester.cloned()));
            }
            is_more
        });
    }

    /// Starts the server, if it does not run, and waits until it is ready.
    pub async fn connect(&self) -> Result<(), Error> {
        let (done, ready) = oneshot::channel();
        self.send_command(Command::Connect(done)).await?;
        ready.await.unwrap_or_else(|_| Err(self.closed_error()))
    }

    /// Starts the server, if it does not run, and does not wait.
    pub fn start(&self) {
        let (done, _) = oneshot::channel();
        // If that many commands wait already, it is being started.
        let _ = self.commands.try_send(Command::Connect(done));
    }

    /// Ends the server. When this returns, nothing of it is left running, and calls that it had are
    /// answered with an error. The next use starts it again (CON-10).
    pub async fn close(&self) {
        let (done, stopped) = oneshot::channel();
        if self.send_command(Command::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
    }

    /// Ends the server for good: the connection cannot be used again.
    pub(crate) async fn shut_down(&self) {
        let (done, closed) = oneshot::channel();
        if self.send_command(Command::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }

    /// Whether it has been ended for good, with the host or the configuration it was for.
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// What the task says to something that it asks the server for itself.
    async fn within_timeout<T>(
        &self,
        answer: oneshot::Receiver<Result<T, Error>>,
    ) -> Result<T, Error> {
        // The start lists the tools as well.
        let bound = self.timeout_with_start() + self.behaviour().timeouts.list * 2;
        match timeout(bound, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(self.closed_error())),
            Err(_) => {
                let status = self.status();
                let late = error_context::list_timeout(self.behaviour().timeouts.list);
                let error = error_context::with_server_stderr(late, &status.stderr, status.noise);
                Err(error.of(&self.server.name))
            }
        }
    }

    async fn send_command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| self.closed_error())
    }

    fn closed_error(&self) -> Error {
        closed_error().of(&self.server.name)
    }
}

/// Whether a server says something on every connection that it has.
fn is_sent_per_request(method: &str) -> bool {
    !ItemKind::list_changed_method(method).is_empty() || method == "notifications/resources/updated"
}
