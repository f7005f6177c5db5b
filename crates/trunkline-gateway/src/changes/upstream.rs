//! Forwards the notifications of all shared servers to one task.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use trunkline::config::Share;
use trunkline::connection::{Connection, ServerNotification};
use trunkline::host::Host;
use trunkline::name::ServerName;

use super::TaskGuard;

/// The channel to that task.
type NotificationSender = mpsc::Sender<(ServerName, Arc<ServerNotification>)>;

pub(super) type UpstreamListeners = HashMap<ServerName, UpstreamListener>;

/// The listener of one server.
pub(super) struct UpstreamListener {
    connection: Weak<Connection>,
    /// The last known `share` mode.
    share: Share,
    _listening: TaskGuard,
}

/// Starts a listener for each connection. Returns connections that are new or whose `share` mode
/// has changed.
pub(super) fn sync_listeners(
    ears: &mut UpstreamListeners,
    host: &Host,
    heard: &NotificationSender,
) -> Vec<(Weak<Connection>, Share)> {
    let mut new = Vec::new();
    let (connections, config) = (host.servers().connections(), host.config());
    ears.retain(|name, _| connections.iter().any(|it| it.server().name == *name));
    for connection in connections {
        let server = connection.server();
        // A change of `share` alone keeps the connection, so the mode is read from the
        // configuration.
        let server = config.server(server.name.as_str()).unwrap_or(server);
        let (name, share) = (&server.name, server.behaviour.share);
        match ears.get_mut(name).filter(|ear| ear.hears(&connection)) {
            Some(ear) if ear.share == share => continue,
            Some(ear) => ear.share = share,
            None => {
                ears.insert(name.clone(), UpstreamListener::to(&connection, share, heard.clone()));
            }
        }
        new.push((Arc::downgrade(&connection), share));
    }
    new
}

impl UpstreamListener {
    fn to(connection: &Arc<Connection>, share: Share, heard: NotificationSender) -> Self {
        let server = connection.server().name.clone();
        let mut notifications = connection.notifications();
        let task = tokio::spawn(async move {
            loop {
                match notifications.recv().await {
                    Ok(received) => {
                        if heard.send((server.clone(), received)).await.is_err() {
                            return;
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
        let (connection, listening) = (Arc::downgrade(connection), TaskGuard(task.abort_handle()));
        Self { connection, share, _listening: listening }
    }

    fn hears(&self, connection: &Arc<Connection>) -> bool {
        std::ptr::eq(self.connection.as_ptr(), Arc::as_ptr(connection))
    }
}
