//! All servers of a configuration: each with its own connection, none in the way of another.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::config::Config;
use crate::connection::{Connection, Options};
use crate::error::Error;
use crate::name::ServerName;

/// The servers of a configuration that are switched on.
pub struct Registry {
    connections: BTreeMap<ServerName, Arc<Connection>>,
}

impl Registry {
    /// Makes a connection to every server that is switched on. Nothing is started before it is
    /// needed.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(config: &Config, options: &Options) -> Self {
        let servers = config.servers().filter(|server| server.enabled);
        let connection = |server: &crate::config::Server| {
            let connection = Connection::new(server.clone(), options.clone());
            (server.name.clone(), Arc::new(connection))
        };
        Self { connections: servers.map(connection).collect() }
    }

    /// All connections, in the order of the servers' names.
    pub fn connections(&self) -> impl ExactSizeIterator<Item = &Arc<Connection>> {
        self.connections.values()
    }

    /// The connection to a server.
    pub fn get(&self, server: &str) -> Option<&Arc<Connection>> {
        self.connections.get(server)
    }

    /// Starts every server at the same time, and waits until each is ready or has failed (CON-3).
    /// Returns why those failed that did; their status says it as well.
    pub async fn connect_all(&self) -> Vec<Error> {
        let mut starts = JoinSet::new();
        for connection in self.connections.values() {
            let connection = Arc::clone(connection);
            starts.spawn(async move { connection.connect().await });
        }
        let results = starts.join_all().await;
        results.into_iter().filter_map(Result::err).collect()
    }

    /// Ends every server. When this returns, nothing of them is left running (CON-10).
    pub async fn close_all(&self) {
        let mut ends = JoinSet::new();
        for connection in self.connections.values() {
            let connection = Arc::clone(connection);
            ends.spawn(async move { connection.close().await });
        }
        ends.join_all().await;
    }
}
