//! Legacy connections to dual-era servers over HTTP, for legacy callers, and for all callers of a
//! server that sends requests.
//!
//! A dual-era server may send requests to clients of either era. Over HTTP, revision 2026-07-28 has
//! no response to them, so that a sampling or elicitation request could not reach a caller that
//! supports it. A connection in the caller's era needs no translation. Modern callers, and those
//! that support no server requests, use the modern connection until the server has sent a request
//! on it: that call fails, and later ones use the legacy era. A legacy session declares
//! capabilities once, so there is one connection for each set of capabilities. Over stdio both eras
//! can respond, and a second process would have its own state, so there is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::OlderEra;
use crate::config::{Protocol, ServerSettings};
use crate::connection::{Connection, ConnectionOptions};
use crate::message::Raw;
use crate::name::{ServerName, digest};
use crate::principal::{Evictable, FairShare, Principal};
use crate::registry::{Shutdowns, end, start};

/// Limit of legacy connections. Clients of one kind declare the same capabilities, so there are few
/// sets. One principal has at most half of the connections in use, and each further one half of the
/// rest.
const MAX_SECOND_CONNECTIONS: usize = 64;

/// Idle time after which a legacy connection is closed. The next call opens it again.
const SECOND_CONNECTION_IDLE: Duration = Duration::from_secs(600);

/// Limit on the bytes of a set of capabilities. Real clients have a few hundred; a client with more
/// uses the modern connection.
const MAX_CAPABILITIES_BYTES: usize = 4096;

/// Characters of the digest of a set of capabilities.
const DIGEST: usize = 32;

/// The legacy connections of all dual-era servers.
pub(super) struct LegacyConnections {
    options: ConnectionOptions,
    connections: Mutex<LegacyConnectionMap>,
    endings: Shutdowns,
}

/// By server and capabilities.
type LegacyConnectionMap = HashMap<(ServerName, String), LegacyConnection>;

struct LegacyConnection {
    /// The modern connection. The legacy one does not outlive it.
    first: Weak<Connection>,
    connection: Arc<Connection>,
    /// The settings of the modern connection, which apply to this one too.
    behaviour: Arc<ServerSettings>,
    /// The principal that first used the connection since it was last idle.
    owner: Principal,
    used: Instant,
}

impl LegacyConnection {
    fn is_beside(&self, first: &Arc<Connection>) -> bool {
        std::ptr::eq(self.first.as_ptr(), Arc::as_ptr(first))
    }

    /// Applies the current settings of the modern connection.
    fn follow(&mut self, first: &Connection) {
        let behaviour = first.behaviour();
        if !Arc::ptr_eq(&behaviour, &self.behaviour) {
            self.connection.apply_settings(&in_older_era(&behaviour));
            self.behaviour = behaviour;
        }
    }
}

impl Evictable for LegacyConnection {
    type LastUse = Instant;

    fn holder(&self) -> &Principal {
        &self.owner
    }

    /// Whether a request holds the connection.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.connection) > 1
    }

    fn last_use(&self) -> Instant {
        self.used
    }
}

impl LegacyConnections {
    pub(super) fn new(options: ConnectionOptions) -> Self {
        Self { options, connections: Mutex::default(), endings: Shutdowns::default() }
    }

    /// The legacy connection beside a modern one, if the server is dual-era over HTTP, and a caller
    /// with these capabilities needs it. `None` also at the limit or beyond the principal's share:
    /// the caller then uses the modern connection.
    pub(super) fn connection_beside(
        &self,
        first: &Arc<Connection>,
        OlderEra { capabilities, is_own }: OlderEra<'_>,
        principal: &Principal,
    ) -> Option<Arc<Connection>> {
        let is_needed = first.sends_unanswerable() || (is_own && can_be_asked(capabilities));
        let is_short = capabilities.bytes().len() <= MAX_CAPABILITIES_BYTES;
        if !first.speaks_both_eras() || !is_needed || !is_short {
            return None;
        }
        let key = (first.server().name.clone(), digest(&[capabilities.bytes()], DIGEST));
        let mut connections = lock(&self.connections);
        let is_in_use = connections.get(&key).is_some_and(LegacyConnection::is_in_use);
        if !is_in_use && !has_share(&connections, principal) {
            return None;
        }
        let is_usable = |it: &&mut LegacyConnection| {
            it.is_beside(first) && !it.connection.is_closed() && !it.connection.needs_intervention()
        };
        if let Some(second) = connections.get_mut(&key).filter(is_usable) {
            second.used = Instant::now();
            if !is_in_use {
                second.owner = principal.clone();
            }
            second.follow(first);
            return Some(Arc::clone(&second.connection));
        }
        let over = connections.remove(&key).or_else(|| evict(&mut connections, principal));
        if let Some(over) = over {
            drop(start(over.connection, &[&self.endings]));
        }
        if connections.len() >= MAX_SECOND_CONNECTIONS {
            return None;
        }
        let connection = self.open(first, capabilities);
        let second = LegacyConnection {
            first: Arc::downgrade(first),
            connection: Arc::clone(&connection),
            behaviour: first.behaviour(),
            owner: principal.clone(),
            used: Instant::now(),
        };
        connections.insert(key, second);
        Some(connection)
    }

    fn open(&self, first: &Arc<Connection>, capabilities: &Raw) -> Arc<Connection> {
        let mut server = first.server().clone();
        server.behaviour = in_older_era(&first.behaviour());
        let options = self.options.clone().with_capabilities(capabilities.clone());
        let connection = Arc::new(Connection::new(server, options));
        connection.copy_log_level(first);
        first.forward_notifications_of(&connection);
        connection
    }

    /// The legacy connections to a server.
    pub(super) fn all_of(&self, server: &ServerName) -> Vec<Arc<Connection>> {
        let connections = lock(&self.connections);
        let own = connections.iter().filter(|((name, _), _)| name == server);
        own.map(|(_, second)| Arc::clone(&second.connection)).collect()
    }

    /// Closes the connections whose modern connection is not in this list.
    pub(super) async fn follow(&self, firsts: &[Arc<Connection>]) {
        self.close(|second| !firsts.iter().any(|first| second.is_beside(first))).await;
    }

    /// Closes connections that have exceeded the idle timeout.
    pub(super) async fn close_idle(&self, now: Instant) {
        let is_idle = |it: &LegacyConnection| now.duration_since(it.used) > SECOND_CONNECTION_IDLE;
        self.close(|second| is_idle(second) && !second.is_in_use()).await;
    }

    /// Closes the legacy connections to a server. Later calls open new ones.
    pub(super) async fn close_server(&self, server: &str) {
        self.close(|second| second.connection.server().name.as_str() == server).await;
    }

    pub(super) async fn close_all(&self) {
        self.close(|_| true).await;
        self.endings.wait_for_all().await;
    }

    async fn close(&self, is_over: impl Fn(&LegacyConnection) -> bool) {
        let over: Vec<_> = lock(&self.connections)
            .extract_if(|_, second| is_over(second))
            .map(|(_, second)| second.connection)
            .collect();
        end(over, &[&self.endings]).await;
    }
}

fn in_older_era(behaviour: &ServerSettings) -> ServerSettings {
    ServerSettings { protocol: Protocol::Legacy, ..behaviour.clone() }
}

/// Whether a principal may use another connection; connections in use cannot be closed.
fn has_share(connections: &LegacyConnectionMap, principal: &Principal) -> bool {
    let items = connections.values();
    FairShare::of_items_in_use(MAX_SECOND_CONNECTIONS, items).admits(principal)
}

/// Removes the least recently used idle connection of the principal with the most, if the limit is
/// reached.
fn evict(connections: &mut LegacyConnectionMap, principal: &Principal) -> Option<LegacyConnection> {
    if connections.len() < MAX_SECOND_CONNECTIONS {
        return None;
    }
    let items = connections.values();
    let share = FairShare::of_evictable_items(MAX_SECOND_CONNECTIONS, items, principal);
    let key = share.evict_for(principal, connections.iter())?.clone();
    connections.remove(&key)
}

/// Whether a client with these capabilities supports any server request.
fn can_be_asked(capabilities: &Raw) -> bool {
    let asked = capabilities.get_all(["sampling", "elicitation", "roots"]);
    asked.iter().any(Option::is_some)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EmptyResolver, parse};
    use crate::connection::{ChildOptions, HttpOptions};

    fn second_connection(owner: &str) -> LegacyConnection {
        let text = r#"{ "mcpServers": { "a": { "url": "http://127.0.0.1:9/mcp" } } }"#;
        let server = parse("test", text).config.server("a").unwrap().clone();
        let child = ChildOptions::from_environment([]);
        let options =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
        let connection = Arc::new(Connection::new(server, options));
        LegacyConnection {
            first: Weak::new(),
            behaviour: connection.behaviour(),
            connection,
            owner: Principal::Token(owner.into()),
            used: Instant::now(),
        }
    }

    fn key(number: usize) -> (ServerName, String) {
        (ServerName::new("a").unwrap(), number.to_string())
    }

    #[tokio::test]
    async fn one_token_does_not_use_all_second_connections() {
        let [ann, bob] = ["ann", "bob"].map(|name| Principal::Token(name.into()));
        let (mut connections, mut in_use) = (LegacyConnectionMap::new(), Vec::new());
        for number in 0..MAX_SECOND_CONNECTIONS / 2 {
            assert!(has_share(&connections, &ann), "{number}");
            let second = second_connection("ann");
            in_use.push(Arc::clone(&second.connection));
            connections.insert(key(number), second);
        }
        assert!(!has_share(&connections, &ann));
        assert!(has_share(&connections, &bob));
        assert!(evict(&mut connections, &bob).is_none(), "there is room");
        for number in MAX_SECOND_CONNECTIONS / 2..MAX_SECOND_CONNECTIONS {
            connections.insert(key(number), second_connection("bob"));
        }
        let cy = Principal::Token("cy".into());
        assert_eq!(evict(&mut connections, &cy).unwrap().owner, bob, "the others are in use");
    }
}
