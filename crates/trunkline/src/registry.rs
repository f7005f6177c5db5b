//! Connections to the servers of all configurations: one per distinct server, shared by
//! configurations that define it equally.
//!
//! A [`Registry`] owns all connections. [`Registry::open`] returns the [`ServerSet`] of a
//! configuration; sets of several configurations, for example one per project directory, share the
//! servers that they configure equally (CFG-12).
//!
//! ```
//! use std::sync::Arc;
//! use trunkline::config::{self, EmptyResolver};
//! use trunkline::connection::{ChildOptions, HttpOptions, ConnectionOptions, State};
//! use trunkline::registry::Registry;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let loaded = config::parse("mcp.json", r#"{ "mcpServers": {
//!     "docs": { "command": "no-such-program", "args": ["--stdio"] }
//! } }"#);
//! let child = ChildOptions::from_environment(std::env::vars_os());
//! let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
//! let servers = Registry::new(options).open(&loaded.config);
//!
//! // A server that cannot be started reports the reason and does not block the others.
//! let errors = servers.connect_all().await;
//! assert!(errors[0].to_string().starts_with("server `docs`: the program `no-such-program`"));
//! assert_eq!(servers.get("docs").unwrap().status().state, State::Failed);
//! servers.close().await;
//! # });
//! ```

mod shutdown;
mod entry;
mod watch;
mod set;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use set::{ReloadSummary, ServerSet};
pub(crate) use shutdown::{Shutdowns, end, start};
pub use watch::{StatusChange, StatusWatch};

use self::entry::ServerKey;
use crate::config::{Config, Server, StartPolicy};
use crate::connection::{Connection, ConnectionOptions, OrphanProcess, State};

/// Owns all connections. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<RegistryInner>,
}

/// Connections that the registries of several clients share. Each client has its own environment: a server
/// is shared by the clients for whom its entry means the same, with all references resolved.
#[derive(Clone, Default)]
pub struct ConnectionPool {
    leases: Arc<Mutex<HashMap<ServerKey, Lease>>>,
}

impl ConnectionPool {
    /// All connections, in any order.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        leases.values().map(|lease| Arc::clone(&lease.connection)).collect()
    }
}

struct RegistryInner {
    options: ConnectionOptions,
    pool: ConnectionPool,
    /// The project of the client, if clients with other environments share the pool.
    project: Option<PathBuf>,
    /// Shutdowns of the servers of all sets.
    endings: Shutdowns,
}

/// A connection, and the number of sets that hold it.
struct Lease {
    connection: Arc<Connection>,
    holders: usize,
}

impl Registry {
    /// A registry without connections. All connections it creates share these options.
    pub fn new(options: ConnectionOptions) -> Self {
        Self::with_pool(options, ConnectionPool::default(), None)
    }

    /// A registry for one client, which shares connections with others of the pool. Servers with `share:
    /// per-project` are shared within the project. Options only affect connections that it creates.
    pub fn in_pool(
        options: ConnectionOptions,
        pool: ConnectionPool,
        project: impl Into<PathBuf>,
    ) -> Self {
        Self::with_pool(options, pool, Some(project.into()))
    }

    fn with_pool(
        options: ConnectionOptions,
        pool: ConnectionPool,
        project: Option<PathBuf>,
    ) -> Self {
        let endings = Shutdowns::default();
        Self { inner: Arc::new(RegistryInner { options, pool, project, endings }) }
    }

    fn key(&self, server: &Server) -> ServerKey {
        let project = self.inner.project.as_deref();
        ServerKey::of(server, project.map(|project| (&self.inner.options, project)))
    }

    /// Opens the enabled servers of a configuration. Servers with an eager start policy are
    /// starting when this returns; the others start when they are needed (CON-3).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn open(&self, config: &Config) -> ServerSet {
        ServerSet::new(self.clone(), config)
    }

    /// Shuts down every server of every set, and of the pool. When this returns, none of their processes is running
    /// (CON-10).
    pub async fn close_all(&self) {
        let leases: Vec<_> = self.leases().drain().collect();
        end(leases.into_iter().map(|(_, lease)| lease.connection), &[]).await;
        self.inner.endings.wait_for_all().await;
    }

    /// The options that all connections share.
    pub(crate) fn options(&self) -> &ConnectionOptions {
        &self.inner.options
    }

    /// The orphan processes that could not be ended with their servers, since the last call.
    pub fn take_orphans(&self) -> Vec<OrphanProcess> {
        self.inner.options.take_orphans()
    }

    /// Leases the connection to a server, and creates it if there is none.
    fn take(&self, key: &ServerKey, server: &Server) -> Arc<Connection> {
        let mut leases = self.leases();
        // A connection that was closed on its own cannot be reused.
        if leases.get(key).is_some_and(|lease| lease.connection.is_closed()) {
            leases.remove(key);
        }
        let lease = leases.entry(key.clone()).or_insert_with(|| {
            let connection = Connection::new(server.clone(), self.inner.options.clone());
            if server.behaviour.connect == StartPolicy::Eager {
                connection.start();
            }
            Lease { connection: Arc::new(connection), holders: 0 }
        });
        lease.holders += 1;
        Arc::clone(&lease.connection)
    }

    /// Applies new settings to a connection that only one set holds, instead of creating a new one.
    /// Returns `false` if it cannot: a failed connection would wait out its old backoff, while a
    /// new one starts at once.
    fn apply_settings(
        &self,
        (old, new): (&ServerKey, &ServerKey),
        connection: &Connection,
        server: &Server,
    ) -> bool {
        let mut leases = self.leases();
        let has_ended = connection.is_closed() || connection.status().state == State::Failed;
        let is_free = !leases.contains_key(new) && !has_ended;
        let is_own = |lease: &Lease| {
            lease.holders == 1 && std::ptr::eq(Arc::as_ptr(&lease.connection), connection)
        };
        if !is_free || !leases.get(old).is_some_and(is_own) {
            return false;
        }
        if let Some(lease) = leases.remove(old) {
            leases.insert(new.clone(), lease);
        }
        connection.apply_settings(&server.behaviour);
        if server.behaviour.connect == StartPolicy::Eager {
            connection.start();
        }
        true
    }

    /// Releases a lease. Returns the connection if no other set holds it, so that it can be closed.
    fn release(&self, key: &ServerKey, connection: &Arc<Connection>) -> Option<Arc<Connection>> {
        let mut leases = self.leases();
        // After `close_all`, the same key may belong to a newer connection.
        let lease = leases.get_mut(key).filter(|it| Arc::ptr_eq(&it.connection, connection))?;
        lease.holders -= 1;
        if lease.holders > 0 {
            return None;
        }
        leases.remove(key).map(|lease| lease.connection)
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<ServerKey, Lease>> {
        self.inner.pool.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
