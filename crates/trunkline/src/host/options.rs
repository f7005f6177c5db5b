//! ConnectionOptions of a host: what connections need, names it has itself, ceilings of configuration.

use std::collections::BTreeSet;

use crate::config::{Access, Restart};
use crate::connection::ConnectionOptions;
use crate::registry::Registry;

/// What a host is made with.
#[derive(Clone)]
pub struct HostOptions {
    /// What connections need.
    pub connections: ConnectionOptions,
    /// Names of tools that the embedding host has itself (TOOL-13).
    pub reserved: BTreeSet<Box<str>>,
    /// Where connections are shared with other hosts, one for each project folder for example
    /// (CFG-12); one of its own, if there is none. Its options are the registry's.
    pub registry: Option<Registry>,
    /// The most that any configuration may allow (TOOL-5). No file can raise it.
    pub max_access: Access,
    /// Whether and how servers are started again where nothing is configured, and the most that any
    /// configuration may ask for (CON-5). Absent for [`Restart::default`], of which configuration may
    /// ask for more.
    pub restart: Option<Restart>,
}

impl HostOptions {
    /// Only what connections need.
    pub fn new(connections: ConnectionOptions) -> Self {
        Self {
            connections,
            reserved: BTreeSet::new(),
            registry: None,
            max_access: Access::ReadWrite,
            restart: None,
        }
    }
}
