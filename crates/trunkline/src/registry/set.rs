//! The servers of one configuration, and what a new configuration changes about them.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::entry::{ServerEntries, ServerEntry, ServerKey};
use super::watch::StatusWatch;
use super::{Registry, Shutdowns, end};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::Error;
use crate::name::ServerName;

/// The servers of a configuration that are switched on. Dropping it ends those that no other set
/// has, though not in order: use [`ServerSet::close`] for that.
pub struct ServerSet {
    registry: Registry,
    members: watch::Sender<ServerEntries>,
    /// Of the servers that this set had.
    endings: Shutdowns,
}

/// What a new configuration changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadSummary {
    /// Servers that were not there.
    pub added: Vec<ServerName>,
    /// Servers that are reached or kept in another way than before.
    pub changed: Vec<ServerName>,
    /// Servers that are not there any more, or are switched off.
    pub removed: Vec<ServerName>,
    /// Servers that went on as if nothing had happened.
    pub kept: Vec<ServerName>,
}

impl ServerSet {
    pub(super) fn new(registry: Registry, config: &Config) -> Self {
        let members = members(&registry, config, &ServerEntries::default());
        Self { registry, members: watch::Sender::new(members), endings: Shutdowns::default() }
    }

    /// All connections, in the order of the servers' names.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        let members = self.members.borrow();
        members.values().map(|member| Arc::clone(&member.connection)).collect()
    }

    /// The connection to a server.
    pub fn get(&self, server: &str) -> Option<Arc<Connection>> {
        self.members.borrow().get(server).map(|member| Arc::clone(&member.connection))
    }

    /// How the servers are doing: each at once, and then whenever one changes.
    pub fn watch(&self) -> StatusWatch {
        StatusWatch::new(self.members.subscribe())
    }

    /// Takes over another configuration. Servers that are the same in it do not notice; those that
    /// are gone or changed are ended, unless another set has them, before this returns.
    pub async fn reload(&self, config: &Config) -> ReloadSummary {
        let old = Arc::clone(&self.members.borrow());
        let new = members(&self.registry, config, &old);
        let old = self.members.send_replace(Arc::clone(&new));
        let reloaded = compare(&old, &new);
        // Each set holds each of its servers once, so those that stay are held twice just now.
        self.end(&old).await;
        reloaded
    }

    /// Starts every server at the same time, and waits until each is ready or has failed (CON-3).
    /// Returns why those failed that did; their status says it as well.
    pub async fn connect_all(&self) -> Vec<Error> {
        let mut starts = JoinSet::new();
        for connection in self.connections() {
            starts.spawn(async move { connection.connect().await });
        }
        let results = starts.join_all().await;
        results.into_iter().filter_map(Result::err).collect()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Ends every server that no other set has. When this returns, nothing of them is left running,
    /// nor of those that a reload was ending for which nobody waited (CON-10).
    pub async fn close(&self) {
        let old = self.members.send_replace(Arc::default());
        self.end(&old).await;
        self.endings.wait_for_all().await;
    }

    /// Gives servers back, and ends those that nobody else has.
    async fn end(&self, members: &ServerEntries) {
        end(self.released(members), &[&self.endings, &self.registry.inner.endings]).await;
    }

    /// Gives servers back. Returns those that nobody else has.
    fn released(&self, members: &ServerEntries) -> Vec<Arc<Connection>> {
        members
            .values()
            .filter_map(|member| self.registry.release(&member.key, &member.connection))
            .collect()
    }
}

impl Drop for ServerSet {
    fn drop(&mut self) {
        // Their tasks end when nobody can command them any more.
        let members = self.members.send_replace(Arc::default());
        drop(self.released(&members));
    }
}

/// Takes a connection to every server that is switched on: the one there was, where only bounds and
/// rules are other ones (CFG-10).
fn members(registry: &Registry, config: &Config, old: &ServerEntries) -> ServerEntries {
    let member = |server: &crate::config::Server| {
        let key = ServerKey::of(server);
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
