//! A connection: one server and the actor that starts, serves and stops it.

mod request_error;
mod state;
mod subscription;
mod server_notification;
mod handler;
mod client_meta;
mod param_headers;
mod pagination;
mod cache;
mod stream_source;
mod start_threads;
mod options;
mod session;
mod published;
mod references;
mod credentials;
mod handshake;
mod actor;
mod request;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{Instrument as _, info_span};

use crate::protocol::ProtocolVersion;
use state::{error_context, log_level::RequestedLogLevel, retry};

pub use crate::connection::handler::{CallHandler, HandlerFuture, NoopHandler, ServerRequest};
pub use crate::connection::param_headers::header_arguments;
pub(crate) use crate::connection::request::round_trips::{RoundOutcome, RoundTrips};
pub use crate::connection::request::{InputRequired, OutgoingRequest};
pub use crate::connection::request_error::RequestError;
pub use crate::connection::state::log_level::LogLevel;
pub use crate::connection::state::status::{RejectedItem, State, Status};
pub(crate) use client_meta::META_KEYS;
pub use client_meta::client_meta;
pub(crate) use credentials::login_auth;
pub use options::{ConnectionOptions, OrphanProcess};
pub use server_notification::ServerNotification;
pub use stream_source::{StreamFuture, StreamRequest, StreamSource};
pub use subscription::{ResourceSubscription, TaskSubscription};

pub use crate::transport::{
    ChildOptions, HttpOptions, MAX_MESSAGE_BYTES, ProcessEvent, ProcessStderr, ProgramLaunch,
    Proxies, RemainingProcess, ServerStream, StdioProcess, StreamEnd,
};

use crate::config::{Fingerprint, Protocol, Restart, Server, ServerSettings, Transport};
use crate::error::{Error, ErrorKind};
use crate::item::{Item, ItemKind};
use crate::message::Notification;
use crate::principal::{FairSlots, Requester};
use actor::rare_events::{CancelSender, RareEvents};
use actor::subscriptions::Subscriptions;
use actor::{Command, ServerActor};
use cache::CacheWrites;
use handshake::closing::SessionClosings;
use published::PublishedState;
use request::list_requests::ListRequests;
use session::{RequestIds, closed_error};
use subscription::HoldSender;

/// Commands that may queue up while the actor is busy.
const MAX_COMMANDS: usize = 256;

/// Notifications that a slow receiver may lag behind before it misses some.
const MAX_UNHEARD: usize = 256;

/// A server and the actor that owns it. Dropping it ends both, but not gracefully: call
/// [`Connection::close`] before.
pub struct Connection {
    server: Arc<Server>,
    /// Limits and settings, which may change while it runs.
    behaviour: watch::Sender<Arc<ServerSettings>>,
    fingerprint: Fingerprint,
    ids: Arc<RequestIds>,
    commands: mpsc::Sender<Command>,
    abandoned: CancelSender,
    holds: HoldSender,
    log_level: watch::Sender<Option<RequestedLogLevel>>,
    published: Arc<PublishedState>,
    told: broadcast::Sender<Arc<ServerNotification>>,
    /// Concurrency slots for calls, and their number.
    slots: Mutex<Option<(u32, Arc<FairSlots>)>>,
    /// List requests in flight, for callers with a short timeout.
    refreshes: ListRequests,
    /// The number of writes to the disk cache that have not ended.
    cache_writes: watch::Receiver<usize>,
}

impl Connection {
    /// Creates a connection. The server is started when it is needed; if the options have a cache
    /// directory, the tools that the server listed last are available at once.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, unless the options have one.
    pub fn new(server: Server, options: ConnectionOptions) -> Self {
        let (commands, for_task) = mpsc::channel(MAX_COMMANDS);
        let (log_level, log_level_for_task) = watch::channel(None);
        let told = broadcast::Sender::new(MAX_UNHEARD);
        let mut fingerprint = server.fingerprint();
        if server.runs_in_host_directory() {
            // A relative path is another program in another directory.
            fingerprint = fingerprint.within(&options.resolver().working_directory());
        }
        let remembered = options.cache().load(&fingerprint);
        let lists = remembered.map(|remembered| remembered.lists).unwrap_or_default();
        let published = Arc::new(PublishedState::new(lists));
        let behaviour = watch::Sender::new(Arc::new(server.behaviour.clone()));
        let (abandoned, holds, rare_events) = RareEvents::channels(&log_level, &behaviour);
        let writing = CacheWrites::new(options.cache_write_delay());
        let cache_writes = writing.pending();
        let (server, ids) = (Arc::new(server), Arc::new(RequestIds::default()));
        let task = ServerActor {
            server: Arc::clone(&server),
            behaviour: behaviour.subscribe(),
            fingerprint,
            options,
            ids: Arc::clone(&ids),
            commands: for_task,
            watched: Subscriptions::new(holds.clone()),
            rare_events,
            log_level: log_level_for_task,
            published: Arc::clone(&published),
            told: told.clone(),
            fading: JoinSet::new(),
            endings: SessionClosings::default(),
            writing,
        };
        let span = info_span!("server", server = task.server.name.as_str());
        let runtime = task.options.runtime();
        runtime.spawn(task.run().instrument(span));
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
            cache_writes,
        }
    }

    /// The server as it was configured when the connection was created. Limits and settings may
    /// have changed since.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The current limits and settings.
    pub(crate) fn behaviour(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.behaviour.borrow())
    }

    /// Applies other limits and settings. Requests in flight keep those they started with.
    pub(crate) fn apply_settings(&self, behaviour: &ServerSettings) {
        self.behaviour.send_replace(Arc::new(behaviour.clone()));
    }

    /// The fingerprint of the server's transport.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The current status of the server.
    pub fn status(&self) -> Status {
        self.published.status()
    }

    /// Whether a request that failed with this kind of error may succeed later without
    /// intervention.
    pub fn is_retryable(&self, kind: ErrorKind) -> bool {
        retry::is_retryable(self.current(), &self.published.watch().borrow(), kind)
    }

    /// Whether a server that is unavailable may recover without intervention.
    pub fn will_recover(&self) -> bool {
        retry::will_recover(self.current(), &self.published.watch().borrow())
    }

    /// The transport, and the current restart setting.
    fn current(&self) -> (&Transport, Restart) {
        (&self.server.transport, self.behaviour().restart)
    }

    /// Whether the server has failed and will not recover without intervention.
    pub(crate) fn needs_intervention(&self) -> bool {
        self.published.watch().borrow().state == State::Failed && !self.will_recover()
    }

    /// Concurrency slots for calls; new ones when the limit changes.
    pub(crate) fn slots(&self, limit: u32) -> Arc<FairSlots> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || (limit, FairSlots::new(limit as usize));
        let known = slots.take().filter(|(known, _)| *known == limit);
        Arc::clone(&slots.insert(known.unwrap_or_else(made)).1)
    }

    /// The number of calls that wait because `concurrency` of the server is reached.
    pub fn waiting_calls(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.as_ref().map_or(0, |(_, slots)| slots.waiting())
    }

    /// Masks the secrets that the server received in a text of the server, for logs and other
    /// messages of the host (SEC-2).
    pub fn masked(&self, text: &str) -> String {
        self.published.mask().masked(text)
    }

    /// Whether the server's session uses version 2026-07-28, or did the last time.
    pub(crate) fn is_modern(&self) -> bool {
        self.published.speaks(ProtocolVersion::MODERN)
    }

    /// Whether the server also supports the legacy era over HTTP: it lists a legacy version, and
    /// the configuration permits either.
    pub(crate) fn speaks_both_eras(&self) -> bool {
        self.may_speak_both_eras() && self.published.speaks_both_eras()
    }

    /// Whether the server has sent a request in the modern era over HTTP, where no response can be
    /// sent.
    pub(crate) fn sends_unanswerable(&self) -> bool {
        self.published.sends_unanswerable()
    }

    /// Whether the configuration permits both eras: a remote server with `protocol` `auto`.
    pub(crate) fn may_speak_both_eras(&self) -> bool {
        let is_remote = matches!(self.server.transport, Transport::Remote(_));
        is_remote && self.server.behaviour.protocol == Protocol::Auto
    }

    /// Requests the log level that was requested of another connection.
    pub(crate) fn copy_log_level(&self, other: &Self) {
        let wanted = other.log_level.borrow().clone();
        if let Some((level, _)) = wanted {
            self.set_log_level(level);
        }
    }

    /// Forwards the notifications of another connection to the receivers of this one, except those
    /// that the server also sends here.
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
                if !is_sent_on_every_connection(&notification.notification.method) {
                    // There may be no receiver.
                    let _ = told.send(notification);
                }
            }
        });
    }

    /// The revision of the server's tool list: changes with every session and every change of the
    /// tools; zero if the server is not ready.
    pub fn tools_revision(&self) -> u64 {
        self.published.tools_revision()
    }

    /// Waits until the lists that are known have been written to the cache directory, or cannot be: then the status has the
    /// reason.
    pub async fn cache_written(&self) {
        // The writes end with the actor.
        let _ = self.cache_writes.clone().wait_for(|pending| *pending == 0).await;
    }

    /// The status of the server, now and whenever it changes. Quick successive changes may be
    /// merged.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.published.watch()
    }

    /// The known tools of the server, ordered by name; empty if it failed.
    pub fn tools(&self) -> Arc<[Arc<Item>]> {
        self.list(ItemKind::Tool)
    }

    /// The known items of a kind, ordered by name. Tools are listed when a server starts, other
    /// kinds by [`list_fresh`](Self::list_fresh).
    pub fn list(&self, kind: ItemKind) -> Arc<[Arc<Item>]> {
        self.published.listed(kind).items
    }

    /// The items of a kind, listed again if they are unknown or stale: the server reported a
    /// change, or their TTL has expired (CON-9). If that fails, an older list is returned if there
    /// is one.
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

    /// Whether the list of a kind is known and not stale.
    pub fn is_fresh(&self, kind: ItemKind) -> bool {
        self.published.is_fresh(kind)
    }

    /// Whether the server may have items of a kind: it declares the capability, or has not declared
    /// any yet.
    pub fn offers(&self, kind: ItemKind) -> bool {
        self.published.offers(kind)
    }

    /// Whether a kind was ever listed. Such a list is refreshed automatically when the server
    /// reports a change.
    pub fn is_loaded(&self, kind: ItemKind) -> bool {
        self.published.listed(kind).is_known
    }

    /// Waits until the list is another one than `known`.
    pub async fn list_changed(&self, kind: ItemKind, known: &Arc<[Arc<Item>]>) {
        let mut listed = self.published.watch_list(kind);
        // The channel cannot close meanwhile: `self` holds the sender.
        let _ = listed.wait_for(|listed| !Arc::ptr_eq(&listed.items, known)).await;
    }

    /// Notifications of the server from now on, in order: resource updates, list changes, log
    /// messages that belong to no request, and custom notifications. Each names the only client it
    /// can concern, if it is about a call.
    pub fn notifications(&self) -> broadcast::Receiver<Arc<ServerNotification>> {
        self.told.subscribe()
    }

    /// Sends a notification to the server if it runs. A stopped server is not started for it.
    /// Delivery is not confirmed.
    pub async fn notify(&self, notification: Notification) -> Result<(), Error> {
        self.notify_for(&Requester::default(), notification).await
    }

    /// Sends a notification on behalf of a client. For a while, server messages without a request
    /// ID may be attributed to that client.
    pub async fn notify_for(
        &self,
        requester: &Requester,
        notification: Notification,
    ) -> Result<(), Error> {
        self.send_command(Command::Notify(Box::new((notification, requester.clone())))).await
    }

    /// Requests log messages of this level and above, now and after every restart. The lowest level
    /// of all requests applies.
    ///
    /// Legacy servers send the same messages to all clients, and receive one `logging/setLevel`.
    /// Modern ones receive the level in the `_meta` of each request: for them this has no effect.
    pub fn set_log_level(&self, level: LogLevel) {
        self.raise_log_level(level, None);
    }

    /// Requests a log level on behalf of a client: server messages about the request reach no other
    /// client.
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

    /// Starts the server, if it does not run, without waiting.
    pub fn start(&self) {
        let (done, _) = oneshot::channel();
        // If the queue is full, the server is being started already.
        let _ = self.commands.try_send(Command::Connect(done));
    }

    /// Stops the server. When this returns, none of its processes is running, and its pending calls
    /// have failed with an error. The next use starts it again (CON-10).
    pub async fn close(&self) {
        let (done, stopped) = oneshot::channel();
        if self.send_command(Command::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
    }

    /// Shuts the server down for good: the connection cannot be used again.
    pub(crate) async fn shut_down(&self) {
        let (done, closed) = oneshot::channel();
        if self.send_command(Command::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }

    /// Whether the connection was shut down for good, with its host or its configuration.
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// Waits for the result of a request that the actor makes itself.
    async fn within_timeout<T, E: From<Error>>(
        &self,
        answer: oneshot::Receiver<Result<T, E>>,
    ) -> Result<T, E> {
        // A start also lists the tools.
        let bound = self.timeout_with_start() + self.behaviour().timeouts.list * 2;
        match timeout(bound, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(self.closed_error().into())),
            Err(_) => {
                let status = self.status();
                let late = error_context::list_timeout(self.behaviour().timeouts.list);
                let error = error_context::with_server_stderr(late, &status.stderr, status.noise);
                Err(error.of(&self.server.name).into())
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

/// Whether a server sends this notification on every one of its connections.
fn is_sent_on_every_connection(method: &str) -> bool {
    !ItemKind::list_changed_method(method).is_empty() || method == "notifications/resources/updated"
}
