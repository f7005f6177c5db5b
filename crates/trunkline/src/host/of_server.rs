//! A host of one server of another host, over the same connection.

use std::collections::{BTreeMap, BTreeSet};

use super::{Host, HostConfig, HostOptions};
use crate::config::Access;

impl Host {
    /// A host of one server of this host, over the same connection, for a client that has rules and names of its
    /// own: its items keep their upstream names, and no rule of this host applies. `None` if there is no such
    /// server. Both hosts have to be [shut down](Host::shutdown).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn of_server(&self, name: &str) -> Option<Self> {
        let config = self.config().of_server(name)?;
        let [_, connections] = &self.shared.connections;
        let options = HostOptions {
            reserved: BTreeSet::new(),
            registry: Some(self.servers().registry().clone()),
            max_access: Access::ReadWrite,
            restart: None,
            toggle_store: None,
            connections: connections.clone(),
        };
        let host = HostConfig { config, agents: BTreeMap::new(), diagnostics: Vec::new() };
        Some(Self::start_with(host, options))
    }
}
