//! Dedicated connections: one per client to each server with `share: "per-client"`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::call::ClientContext;
use crate::config::{Config, Server, Share};
use crate::connection::{Connection, ConnectionOptions, OrphanProcess, State};
use crate::error::{Error, ErrorKind};
use crate::name::ServerName;
use crate::principal::{ClientId, Evictable, FairShare, Principal};
use crate::registry::{Shutdowns, end, start};

/// Limit of dedicated connections of all clients. One principal has at most half of them in use,
/// and each further one half of the rest.
const MAX_PRIVATE: usize = 256;

/// Failures that a slow receiver may lag behind before it misses some.
const MAX_UNHEARD: usize = 256;

/// The failure of a dedicated server that was ready.
#[derive(Clone, Debug)]
pub struct DedicatedServerFailure {
    /// The server.
    pub server: ServerName,
    /// The cause.
    pub error: Error,
    /// Whether the next call of its client starts a new process; otherwise it may recover by
    /// itself.
    pub is_replaced: bool,
}

/// The dedicated connections of all clients.
pub(super) struct DedicatedConnections {
    options: ConnectionOptions,
    ends: broadcast::Sender<DedicatedServerFailure>,
    connections: Mutex<DedicatedConnectionMap>,
    endings: Shutdowns,
}

/// By client and server.
type DedicatedConnectionMap = HashMap<(ClientId, ServerName), DedicatedConnection>;

struct DedicatedConnection {
    owner: Principal,
    connection: Arc<Connection>,
    /// The configured entry of the connection, or an equivalent one.
    entry: Arc<Server>,
    used: Instant,
    idle: Option<Duration>,
}

/// Whether two entries can share a connection: same transport, trust and redaction.
fn is_reached_alike(one: &Server, other: &Server) -> bool {
    one.fingerprint() == other.fingerprint()
        && one.trust == other.trust
        && one.behaviour.redact == other.behaviour.redact
}

impl DedicatedConnection {
    /// Whether it can serve another call. A server that needs intervention is replaced at the next
    /// call, because only its client would notice that it is down.
    fn is_usable(&self) -> bool {
        !self.connection.is_closed() && !self.connection.needs_intervention()
    }

    /// Whether the connection fits an entry. If so, the timeouts and restart policy of the entry
    /// apply from now on. Remembers the entry, to compare each only once.
    fn is_to(&mut self, entry: &Arc<Server>) -> bool {
        if Arc::ptr_eq(&self.entry, entry) {
            return true;
        }
        let is_same = is_reached_alike(&self.entry, entry);
        if is_same {
            self.connection.apply_settings(&entry.behaviour);
            self.entry = Arc::clone(entry);
        }
        is_same
    }
}

impl Evictable for DedicatedConnection {
    type LastUse = Instant;

    fn holder(&self) -> &Principal {
        &self.owner
    }

    /// Whether a request or subscription holds the connection.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.connection) > 1
    }

    fn last_use(&self) -> Instant {
        self.used
    }
}

/// Reports each failure of a server that was ready, while its connection exists. Holds it weakly: a
/// strong reference would count as use.
async fn report_failures(
    connection: Weak<Connection>,
    ends: broadcast::Sender<DedicatedServerFailure>,
) {
    let Some(mut status) = connection.upgrade().map(|it| it.watch()) else { return };
    let mut was_ready = false;
    while status.changed().await.is_ok() {
        let (state, error) = {
            let status = status.borrow_and_update();
            (status.state, status.last_error.clone())
        };
        if let (State::Failed, true, Some(error)) = (state, was_ready, error) {
            let Some(connection) = connection.upgrade() else { return };
            let server = connection.server().name.clone();
            // There may be no receiver.
            let _ = ends.send(DedicatedServerFailure {
                server,
                error,
                is_replaced: connection.needs_intervention(),
            });
        }
        was_ready = state == State::Ready;
    }
}

impl DedicatedConnections {
    pub(super) fn new(options: ConnectionOptions) -> Self {
        let ends = broadcast::Sender::new(MAX_UNHEARD);
        Self { options, ends, connections: Mutex::default(), endings: Shutdowns::default() }
    }

    /// Subscribes to failures of dedicated servers.
    pub(super) fn failures(&self) -> broadcast::Receiver<DedicatedServerFailure> {
        self.ends.subscribe()
    }

    /// The dedicated connection of a client to a server; `None` if the server is shared.
    pub(super) fn connection(
        &self,
        server: &Arc<Server>,
        client: Option<&ClientContext>,
    ) -> Result<Option<Arc<Connection>>, Error> {
        let Some(client) = client.filter(|_| server.behaviour.share == Share::PerClient) else {
            return Ok(None);
        };
        let key = (client.id.clone(), server.name.clone());
        let mut connections = lock(&self.connections);
        if !connections.get(&key).is_some_and(DedicatedConnection::is_in_use) {
            require_share(&connections, &client.owner).map_err(|busy| busy.of(&server.name))?;
        }
        let held = connections.get_mut(&key).filter(|held| held.is_usable());
        if let Some(held) = held.and_then(|held| held.is_to(server).then_some(held)) {
            held.used = Instant::now();
            return Ok(Some(Arc::clone(&held.connection)));
        }
        if let Some(over) = connections.remove(&key) {
            self.close_in_background(over);
        }
        if connections.len() >= MAX_PRIVATE {
            let message = format!("{MAX_PRIVATE} processes work for one client each already");
            let full = || Error::new(ErrorKind::Busy, message).of(&server.name);
            let ended = evict(&mut connections, &client.owner).ok_or_else(full)?;
            self.close_in_background(ended);
        }
        let mut options = self.options.clone().with_capabilities(client.capabilities.clone());
        if let Some(handler) = &client.handler {
            options = options.with_handler(Arc::clone(handler));
        }
        let connection = Arc::new(Connection::new(Server::clone(server), options));
        if let Some(level) = client.log_level {
            connection.set_log_level(level);
        }
        tokio::spawn(report_failures(Arc::downgrade(&connection), self.ends.clone()));
        let held = DedicatedConnection {
            owner: client.owner.clone(),
            connection: Arc::clone(&connection),
            entry: Arc::clone(server),
            used: Instant::now(),
            idle: client.idle,
        };
        connections.insert(key, held);
        Ok(Some(connection))
    }

    /// All dedicated connections of a client.
    pub(super) fn all_of(&self, client: &str) -> Vec<Arc<Connection>> {
        let connections = lock(&self.connections);
        let own = connections.iter().filter(|((id, _), _)| id.as_str() == client);
        own.map(|(_, held)| Arc::clone(&held.connection)).collect()
    }

    /// Closes the connections of a client that is gone.
    pub(super) async fn close_client(&self, client: &str) {
        self.close(|(id, _), _| id.as_str() == client).await;
    }

    /// Closes all dedicated connections to a server. The next calls open new ones.
    pub(super) async fn close_server(&self, server: &str) {
        self.close(|(_, name), _| name.as_str() == server).await;
    }

    /// Closes connections that have exceeded their idle timeout.
    pub(super) async fn close_idle(&self, now: Instant) {
        for held in lock(&self.connections).values_mut().filter(|held| held.is_in_use()) {
            held.used = now;
        }
        let is_idle = |held: &DedicatedConnection| {
            held.idle.is_some_and(|idle| now.duration_since(held.used) > idle)
        };
        self.close(|_, held| is_idle(held)).await;
    }

    /// Closes connections whose configured entry was changed, removed or disabled.
    pub(super) async fn follow(&self, config: &Config) {
        let is_same = |held: &DedicatedConnection| {
            let server = held.connection.server();
            let now = config.server(server.name.as_str()).filter(|now| now.enabled);
            now.is_some_and(|now| {
                is_reached_alike(now, server) && now.behaviour.share == Share::PerClient
            })
        };
        self.close(|_, held| !is_same(held)).await;
    }

    /// The processes that could not be ended with their servers, since the last call of this
    /// method.
    pub(super) fn take_remaining(&self) -> Vec<OrphanProcess> {
        self.options.take_orphans()
    }

    pub(super) async fn close_all(&self) {
        self.close(|_, _| true).await;
        self.endings.wait_for_all().await;
    }

    /// Closes a connection without waiting.
    fn close_in_background(&self, held: DedicatedConnection) {
        drop(start(held.connection, &[&self.endings]));
    }

    async fn close(&self, is_over: impl Fn(&(ClientId, ServerName), &DedicatedConnection) -> bool) {
        let over: Vec<_> = lock(&self.connections)
            .extract_if(|key, held| is_over(key, held))
            .map(|(_, held)| held.connection)
            .collect();
        end(over, &[&self.endings]).await;
    }
}

/// Checks the share of an owner. Connections in use cannot be closed, so that an owner gets no more
/// of them than it leaves to others.
fn require_share(connections: &DedicatedConnectionMap, owner: &Principal) -> Result<(), Error> {
    let items = connections.values();
    let share = FairShare::of_items_in_use(MAX_PRIVATE, items);
    if share.admits(owner) {
        return Ok(());
    }
    let message = format!(
        "{} of {MAX_PRIVATE} per-client processes are in use by this client or others with its token, \
         and no more are free for it; try again when a call has ended",
        share.held_by(owner)
    );
    Err(Error::new(ErrorKind::Busy, message))
}

/// Removes the least recently used idle connection, of the principal with the most connections
/// among the owner and those with idle ones.
fn evict(
    connections: &mut DedicatedConnectionMap,
    owner: &Principal,
) -> Option<DedicatedConnection> {
    let items = connections.values();
    let share = FairShare::of_evictable_items(MAX_PRIVATE, items, owner);
    let key = share.evict_for(owner, connections.iter())?.clone();
    connections.remove(&key)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EmptyResolver, parse};
    use crate::connection::{ChildOptions, HttpOptions};
    use crate::message::Raw;

    /// Dedicated connections to one server.
    struct ServerConnections {
        private: DedicatedConnections,
        server: Arc<Server>,
    }

    impl ServerConnections {
        fn new() -> Self {
            let child = ChildOptions::from_environment([]);
            let options =
                ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
            Self { private: DedicatedConnections::new(options), server: entry("x") }
        }

        fn connection(
            &self,
            (id, owner): (&str, &str),
            idle: Option<Duration>,
        ) -> Result<Arc<Connection>, Error> {
            let (id, owner) = (id.into(), Principal::Token(owner.into()));
            let capabilities = Raw::empty_object();
            let (handler, log_level) = (None, None);
            let client = ClientContext { id, owner, capabilities, handler, log_level, idle };
            self.private.connection(&self.server, Some(&client)).map(Option::unwrap)
        }
    }

    fn entry(command: &str) -> Arc<Server> {
        let entry = format!(r#"{{ "command": "{command}", "share": "per-client" }}"#);
        let text = format!(r#"{{ "mcpServers": {{ "a": {entry} }} }}"#);
        Arc::new(parse("test", text).config.server("a").unwrap().clone())
    }

    /// CFG-10: calls use the server of the current configuration, however long an old one takes to
    /// end.
    #[tokio::test]
    async fn changed_entry_gets_another_connection() {
        let mut owned = ServerConnections::new();
        let first = owned.connection(("ann", ""), None).unwrap();
        owned.server = entry("x");
        assert!(Arc::ptr_eq(&first, &owned.connection(("ann", ""), None).unwrap()), "the same");
        let mut patient = Server::clone(&owned.server);
        patient.behaviour.timeouts.call = Duration::from_secs(77);
        owned.server = Arc::new(patient);
        assert!(Arc::ptr_eq(&first, &owned.connection(("ann", ""), None).unwrap()), "the same");
        assert_eq!(first.behaviour().timeouts.call, Duration::from_secs(77));
        owned.server = entry("y");
        let second = owned.connection(("ann", ""), None).unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        owned.private.close_all().await;
        for ended in [first, second] {
            assert_eq!(ended.status().state, State::Stopped);
        }
    }

    #[tokio::test]
    async fn connection_in_use_is_never_idle() {
        let owned = ServerConnections::new();
        let (minute, now) = (Duration::from_secs(60), Instant::now());
        let used = owned.connection(("ann", ""), Some(minute)).unwrap();
        owned.private.close_idle(now + 2 * minute).await;
        assert!(!used.is_closed(), "a call waits");
        drop(used);
        owned.private.close_idle(now + minute * 5 / 2).await;
        assert_eq!(owned.private.all_of("ann").len(), 1, "it was in use a moment ago");
        owned.private.close_idle(now + 4 * minute).await;
        assert!(owned.private.all_of("ann").is_empty());
    }

    /// A connection of one of the clients with a token.
    fn numbered(
        owned: &ServerConnections,
        owner: &str,
        number: usize,
    ) -> Result<Arc<Connection>, Error> {
        owned.connection((&format!("{owner} {number}"), owner), None)
    }

    #[tokio::test]
    async fn eviction_takes_unused_connections_of_the_largest_owner() {
        let owned = ServerConnections::new();
        let connection = |owner: &str, number: usize| numbered(&owned, owner, number);
        let of_bob = connection("bob", 0).unwrap();
        let mut of_ann = Vec::new();
        for number in 1..MAX_PRIVATE {
            let connection = connection("ann", number).unwrap();
            if number <= 100 {
                of_ann.push(connection);
            }
        }
        connection("bob", 1).unwrap();
        assert!(owned.private.all_of("ann 101").is_empty(), "the oldest that is not in use");
        of_ann.drain(1..3);
        let _of_ann = connection("ann", 0).unwrap();
        assert!(owned.private.all_of("ann 2").is_empty());
        drop(of_bob);
        connection("ann", MAX_PRIVATE).unwrap();
        assert_eq!(owned.private.all_of("bob 0").len(), 1, "that of bob is not taken");
        owned.private.close_all().await;
    }

    /// Regression: a token whose calls hung took every process from all other tokens.
    #[tokio::test]
    async fn one_token_does_not_use_all_connections() {
        let owned = ServerConnections::new();
        let in_use = |owner: &str| -> Vec<_> {
            (0..MAX_PRIVATE).map_while(|it| numbered(&owned, owner, it).ok()).collect()
        };
        let (of_ann, of_bob) = (in_use("ann"), in_use("bob"));
        assert_eq!((of_ann.len(), of_bob.len()), (MAX_PRIVATE / 2, MAX_PRIVATE / 4));
        let busy = numbered(&owned, "ann", MAX_PRIVATE).err().unwrap();
        assert!(busy.kind().is_retryable(), "that passes: {busy}");
        assert!(numbered(&owned, "ann", 0).is_ok(), "one that is in use is shared");
        assert!(numbered(&owned, "cy", 0).is_ok());
        owned.private.close_all().await;
    }

    #[tokio::test]
    async fn connections_that_were_unused_count_once_they_are_used() {
        let owned = ServerConnections::new();
        for number in 0..MAX_PRIVATE {
            numbered(&owned, "ann", number).unwrap();
        }
        let of_ann: Vec<_> =
            (0..MAX_PRIVATE).filter_map(|it| numbered(&owned, "ann", it).ok()).collect();
        assert_eq!(of_ann.len(), MAX_PRIVATE / 2);
        numbered(&owned, "bob", 0).unwrap();
        let oldest = format!("ann {}", MAX_PRIVATE / 2);
        assert!(owned.private.all_of(&oldest).is_empty(), "the oldest that is not in use");
        owned.private.close_all().await;
    }

    #[tokio::test]
    async fn connections_of_others_are_not_evicted_by_the_largest_owner() {
        let owned = ServerConnections::new();
        let of_ann: Vec<_> =
            (1..MAX_PRIVATE / 2).map(|it| numbered(&owned, "ann", it).unwrap()).collect();
        for number in 0..MAX_PRIVATE - of_ann.len() {
            numbered(&owned, &format!("user {number}"), 0).unwrap();
        }
        let full = numbered(&owned, "ann", MAX_PRIVATE).err().unwrap();
        assert!(full.kind().is_retryable(), "that passes: {full}");
        numbered(&owned, "bob", 0).unwrap();
        assert!(owned.private.all_of("user 0 0").is_empty(), "a newcomer gets one");
        owned.private.close_all().await;
    }
}
