//! Status of the servers of a set, as a stream of changes (CON-11).

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Weak};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::watch;

use super::entry::ServerEntries;
use crate::connection::{Connection, Status};
use crate::name::ServerName;

/// A change in the status of one server.
#[derive(Clone, Debug)]
pub struct StatusChange {
    /// The server.
    pub server: ServerName,
    /// The new status; `None` when the server was removed from the set.
    pub status: Option<Status>,
}

/// Status of the servers of a set: each one at once, then every change. Quick successive changes of
/// one server may be merged.
pub struct StatusWatch {
    members: watch::Receiver<ServerEntries>,
    /// Changes to report first.
    due: VecDeque<StatusChange>,
    /// The servers that are watched.
    watched: BTreeMap<ServerName, WatchedServer>,
    changing: FuturesUnordered<Pin<Box<dyn Future<Output = StatusReceiver> + Send>>>,
    last: u64,
}

/// A server that is watched.
struct WatchedServer {
    /// Identifies the current watch of this server.
    number: u64,
    connection: Weak<Connection>,
}

/// A change of a server that is watched.
struct StatusReceiver {
    server: ServerName,
    number: u64,
    /// `None` when the connection was dropped.
    status: Option<watch::Receiver<Status>>,
}

impl StatusWatch {
    pub(super) fn new(members: watch::Receiver<ServerEntries>) -> Self {
        let mut watch = Self {
            members,
            due: VecDeque::new(),
            watched: BTreeMap::new(),
            changing: FuturesUnordered::new(),
            last: 0,
        };
        watch.resubscribe();
        watch
    }

    /// The next change; `None` when the set was dropped.
    pub async fn next(&mut self) -> Option<StatusChange> {
        loop {
            if let Some(change) = self.due.pop_front() {
                return Some(change);
            }
            tokio::select! {
                // The removal of a server is reported before its stop.
                biased;
                looked = self.members.changed() => {
                    looked.ok()?;
                    self.resubscribe();
                }
                Some(changed) = self.changing.next(), if !self.changing.is_empty() => {
                    self.on_status(changed);
                }
            }
        }
    }

    /// A change that has happened already, if there is one.
    pub fn try_next(&mut self) -> Option<StatusChange> {
        self.next().now_or_never().flatten()
    }

    /// Compares the watched servers with the set: queues new, replaced and removed ones.
    fn resubscribe(&mut self) {
        let members = self.members.borrow_and_update().clone();
        let is_gone = |name: &&ServerName| !members.contains_key(name.as_str());
        let gone: Vec<_> = self.watched.keys().filter(is_gone).cloned().collect();
        for server in gone {
            self.watched.remove(server.as_str());
            self.due.push_back(StatusChange { server, status: None });
        }
        for (server, member) in members.iter() {
            let connection = Arc::downgrade(&member.connection);
            let before = self.watched.get(server.as_str());
            if before.is_some_and(|before| before.connection.ptr_eq(&connection)) {
                continue;
            }
            self.last += 1;
            self.watched.insert(server.clone(), WatchedServer { number: self.last, connection });
            let mut status = member.connection.watch();
            let now = status.borrow_and_update().clone();
            self.due.push_back(StatusChange { server: server.clone(), status: Some(now) });
            self.wait_for(server.clone(), self.last, status);
        }
    }

    fn wait_for(&self, server: ServerName, number: u64, mut status: watch::Receiver<Status>) {
        self.changing.push(Box::pin(async move {
            let is_there = status.changed().await.is_ok();
            StatusReceiver { server, number, status: is_there.then_some(status) }
        }));
    }

    fn on_status(&mut self, changed: StatusReceiver) {
        let StatusReceiver { server, number, status } = changed;
        // Ignores the watch of a connection that has been replaced.
        let counts = self.watched.get(server.as_str()).is_some_and(|it| it.number == number);
        if let Some(mut status) = status.filter(|_| counts) {
            let now = status.borrow_and_update().clone();
            self.due.push_back(StatusChange { server: server.clone(), status: Some(now) });
            self.wait_for(server, number, status);
        }
    }
}
