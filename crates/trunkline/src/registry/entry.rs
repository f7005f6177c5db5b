//! Entries of a server set, and the key by which servers are equal across configurations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Fingerprint, Restart, Server, ServerSettings, StartPolicy, Timeouts, Trust};
use crate::connection::Connection;
use crate::name::ServerName;

/// The servers of a set, by name.
pub(super) type ServerEntries = Arc<BTreeMap<ServerName, ServerEntry>>;

/// An entry of a set.
#[derive(Clone)]
pub(super) struct ServerEntry {
    pub(super) key: ServerKey,
    pub(super) connection: Arc<Connection>,
}

/// Identity of a server: its name, its transport and the settings of its connection. Filters on its
/// items are not part of the identity.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ServerKey {
    name: ServerName,
    fingerprint: Fingerprint,
    rules: SettingsKey,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct SettingsKey {
    connect: StartPolicy,
    restart: Restart,
    timeouts: Timeouts,
    tools_ttl: Duration,
    idle_timeout: Option<Duration>,
    redact: bool,
    /// The connection sanitizes messages of untrusted servers.
    trust: Trust,
}

impl ServerKey {
    /// Whether a connection with this key can take the settings of the other. Redaction and
    /// sanitizing are fixed for an open connection: a change of `redact` or `trust` needs a new
    /// one.
    pub(super) fn can_follow(&self, other: &Self) -> bool {
        let (rules, new) = (&self.rules, &other.rules);
        self.name == other.name
            && self.fingerprint == other.fingerprint
            && (rules.redact, rules.trust) == (new.redact, new.trust)
    }

    pub(super) fn of(server: &Server) -> Self {
        let ServerSettings { connect, restart, timeouts, tools_ttl, idle_timeout, redact, .. } =
            server.behaviour;
        Self {
            name: server.name.clone(),
            fingerprint: server.fingerprint(),
            rules: SettingsKey {
                connect,
                restart,
                timeouts,
                tools_ttl,
                idle_timeout,
                redact,
                trust: server.trust,
            },
        }
    }
}
