//! The set of servers of one configuration, and its reload.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::entry::{ServerEntries, ServerEntry};
use super::watch::StatusWatch;
use super::{Registry, Shutdowns, end};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::Error;
use crate::name::ServerName;

/// The enabled servers of a configuration. Dropping it ends the servers that no other set holds,
/// but not gracefully: use [`ServerSet::close`] for that.
pub struct ServerSet {
    registry: Registry,
    members: watch::Sender<ServerEntries>,
    /// Shutdowns of the servers of this set.
    endings: Shutdowns,
}

/// The changes that a reload made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadSummary {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers whose transport or connection settings changed.
    pub changed: Vec<ServerName>,
    /// Servers that are no longer configured, or are disabled.
    pub removed: Vec<ServerName>,
    /// Servers whose connection was kept.
    pub kept: Vec<ServerName>,
}

impl ServerSet {
    pub(super) fn new(registry: Registry, config: &Config) -> Self {
        let members = members(&registry, config, &ServerEntries::default());
        Self { registry, members: watch::Sender::new(members), endings: Shutdowns::default() }
    }

    /// All connections, ordered by server name.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        let members = self.members.borrow();
        members.values().map(|member| Arc::clone(&member.connection)).collect()
    }

    /// The connection to a server.
    pub fn get(&self, server: &str) -> Option<Arc<Connection>> {
        self.members.borrow().get(server).map(|member| Arc::clone(&member.connection))
    }

    /// Watches the status of the servers: reports each one at once, and then every change.
    pub fn watch(&self) -> StatusWatch {
        StatusWatch::new(self.members.subscribe())
    }

    /// Applies another configuration. Unchanged servers are not affected; removed and changed ones
    /// are shut down before this returns, unless another set holds them.
    pub async fn reload(&self, config: &Config) -> ReloadSummary {
        let old = Arc::clone(&self.members.borrow());
        let new = members(&self.registry, config, &old);
        let old = self.members.send_replace(Arc::clone(&new));
        let reloaded = compare(&old, &new);
        // A set holds each of its servers once, so the servers that stay are held twice at this
        // point.
        self.end(&old).await;
        reloaded
    }

    /// Starts all servers concurrently, and waits until each one is ready or has failed (CON-3).
    /// Returns the errors of those that failed, which their status contains as well.
    pub async fn connect_all(&self) -> Vec<Error> {
        let mut starts = JoinSet::new();
        for connection in self.connections() {
            starts.spawn(async move { connection.connect().await });
        }
        let results = starts.join_all().await;
        results.into_iter().filter_map(Result::err).collect()
    }

    /// Waits until the known lists of all servers have been written to the cache directory, or cannot be: then their status
    /// has the reason.
    pub async fn cache_written(&self) {
        for connection in self.connections() {
            connection.cache_written().await;
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Shuts down every server that no other set holds. When this returns, none of their processes
    /// is running, including those of a reload whose future was dropped (CON-10).
    pub async fn close(&self) {
        let old = self.members.send_replace(Arc::default());
        self.end(&old).await;
        self.endings.wait_for_all().await;
    }

    /// Releases servers, and shuts down those that no other set holds.
    async fn end(&self, members: &ServerEntries) {
        end(self.released(members), &[&self.endings, &self.registry.inner.endings]).await;
    }

    /// Releases servers. Returns those that no other set holds.
    fn released(&self, members: &ServerEntries) -> Vec<Arc<Connection>> {
        members
            .values()
            .filter_map(|member| self.registry.release(&member.key, &member.connection))
            .collect()
    }
}

impl Drop for ServerSet {
    fn drop(&mut self) {
        // The actor of a connection ends when its last handle is dropped.
        let members = self.members.send_replace(Arc::default());
        drop(self.released(&members));
    }
}

/// Leases a connection to every enabled server. The existing connection is kept if only limits and
/// settings changed (CFG-10).
fn members(registry: &Registry, config: &Config, old: &ServerEntries) -> ServerEntries {
    let member = |server: &crate::config::Server| {
        let key = registry.key(server);
        let same = old.get(server.name.as_str()).filter(|it| {
            it.key != key
                && it.key.can_follow(&key)
                && registry.apply_settings((&it.key, &key), &it.connection, server)
        });
        let connection = match same {
            Some(member) => Arc::clone(&member.connection),
            None => registry.take(&key, server),
        };
        (server.name.clone(), ServerEntry { key, connection })
    };
    Arc::new(config.servers().filter(|server| server.enabled).map(member).collect())
}

fn compare(old: &ServerEntries, new: &ServerEntries) -> ReloadSummary {
    let mut reloaded = ReloadSummary::default();
    for (name, member) in new.iter() {
        let list = match old.get(name.as_str()) {
            None => &mut reloaded.added,
            Some(before) if Arc::ptr_eq(&before.connection, &member.connection) => {
                &mut reloaded.kept
            }
            Some(_) => &mut reloaded.changed,
        };
        list.push(name.clone());
    }
    let is_gone = |name: &&ServerName| !new.contains_key(name.as_str());
    reloaded.removed = old.keys().filter(is_gone).cloned().collect();
    reloaded
}
