//! All servers of all configurations: each with its own connection, equal ones with the same.
//!
//! A [`Registry`] knows every connection there is. [`Registry::open`] gives the [`ServerSet`] of a
//! configuration; sets of several configurations, one for each project folder for example, share
//! the servers that are configured equally in them (CFG-12).
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
//! // One that cannot be started says why, and is in nobody's way.
//! let errors = servers.connect_all().await;
//! assert!(errors[0].to_string().starts_with("server `docs`: no-such-program: not found"));
//! assert_eq!(servers.get("docs").unwrap().status().state, State::Failed);
//! servers.close().await;
//! # });
//! ```

mod shutdown;
mod entry;
mod watch;
mod set;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use set::{ReloadSummary, ServerSet};
pub(crate) use shutdown::{Shutdowns, end, start};
pub use watch::{StatusChange, StatusWatch};

use self::entry::ServerKey;
use crate::config::{Config, Server, StartPolicy};
use crate::connection::{Connection, ConnectionOptions, OrphanProcess, State};

/// All connections there are. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<RegistryInner>,
}

struct RegistryInner {
    options: ConnectionOptions,
    leases: Mutex<HashMap<ServerKey, Lease>>,
    /// Of all sets.
    endings: Shutdowns,
}

/// A connection, and in how many sets it is.
struct Lease {
    connection: Arc<Connection>,
    holders: usize,
}

impl Registry {
    /// A registry without connections. Those it will make share these options.
    pub fn new(options: ConnectionOptions) -> Self {
        let (leases, endings) = (Mutex::default(), Shutdowns::default());
        Self { inner: Arc::new(RegistryInner { options, leases, endings }) }
    }

    /// The servers of a configuration that are switched on. Those that are to be connected at the
    /// start are being started when this returns; the others when they are needed (CON-3).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn open(&self, config: &Config) -> ServerSet {
        ServerSet::new(self.clone(), config)
    }

    /// Ends every server of every set. When this returns, nothing of them is left running
    /// (CON-10).
    pub async fn close_all(&self) {
        let leases: Vec<_> = self.leases().drain().collect();
        end(leases.into_iter().map(|(_, lease)| lease.connection), &[]).await;
        self.inner.endings.wait_for_all().await;
    }

    /// The processes that could not be ended with their servers, since this was asked last.
    pub fn take_orphans(&self) -> Vec<OrphanProcess> {
        self.inner.options.take_orphans()
    }

    /// The connection to a server: one that is there already, or a new one.
    fn take(&self, key: &ServerKey, server: &Server) -> Arc<Connection> {
        let mut leases = self.leases();
        // One that somebody has closed by itself is of no use to anybody.
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

    /// Lets a connection that nobody else has follow other rules, in the place of a new one. Says
    /// whether it does: one that has failed waits by its old rules, and a new one starts at once.
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

    /// Gives a connection back. It is returned if nobody else has it, to be closed.
    fn release(&self, key: &ServerKey, connection: &Arc<Connection>) -> Option<Arc<Connection>> {
        let mut leases = self.leases();
        // After everything was closed, the same key may be somebody else's.
        let lease = leases.get_mut(key).filter(|it| Arc::ptr_eq(&it.connection, connection))?;
        lease.holders -= 1;
        if lease.holders > 0 {
            return None;
        }
        leases.remove(key).map(|lease| lease.connection)
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<ServerKey, Lease>> {
        self.inner.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
