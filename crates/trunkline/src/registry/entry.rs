//! A server of a configuration, and what makes it the same in another one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Fingerprint, Restart, Server, ServerSettings, StartPolicy, Timeouts, Trust};
use crate::connection::Connection;
use crate::name::ServerName;

/// The servers of a set, by name.
pub(super) type ServerEntries = Arc<BTreeMap<ServerName, ServerEntry>>;

/// A server of a set.
#[derive(Clone)]
pub(super) struct ServerEntry {
    pub(super) key: ServerKey,
    pub(super) connection: Arc<Connection>,
}

/// What makes two servers the same: name, how they are reached, and the rules their connection
/// follows. What may be seen of them is no part of it.
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
    /// The connection cleans what an untrusted server says.
    trust: Trust,
}

impl ServerKey {
    /// Whether a connection to one can follow the rules of the other. Masking and cleaning are part of
    /// an open connection: a change of `redact` or `trust` needs a new one.
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
