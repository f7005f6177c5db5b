//! Options of a host: connections, reserved names, and limits on the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::toggle_store::ToggleStore;
use crate::config::{Access, Restart};
use crate::connection::ConnectionOptions;
use crate::registry::Registry;

/// Options of a host.
#[derive(Clone)]
pub struct HostOptions {
    /// The options of connections.
    pub connections: ConnectionOptions,
    /// Names of tools of the embedding application (TOOL-13).
    pub reserved: BTreeSet<Box<str>>,
    /// Registry that shares connections with other hosts, for example one per project directory
    /// (CFG-12). Without one, the host creates its own. The connection options of the registry
    /// apply.
    pub registry: Option<Registry>,
    /// The most access that any configuration may allow (TOOL-5). No file can raise it.
    pub max_access: Access,
    /// The restart policy where none is configured, and the most that any configuration may request
    /// (CON-5). Absent for [`Restart::default`], beyond which a configuration may request more.
    pub restart: Option<Restart>,
    /// Keeps the toggles of conversations (TOOL-9). Without one they last as long as the host.
    pub toggle_store: Option<Arc<dyn ToggleStore>>,
}

impl HostOptions {
    /// Default options with these connection options.
    pub fn new(connections: ConnectionOptions) -> Self {
        Self {
            connections,
            reserved: BTreeSet::new(),
            registry: None,
            max_access: Access::ReadWrite,
            restart: None,
            toggle_store: None,
        }
    }
}
