//! What servers say that all share, heard by one task.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use trunkline::config::Share;
use trunkline::connection::{Connection, ServerNotification};
use trunkline::host::Host;
use trunkline::name::ServerName;

use super::TaskGuard;

/// Where it goes in what is heard.
type NotificationSender = mpsc::Sender<(ServerName, ServerNotification)>;

pub(super) type UpstreamListeners = HashMap<ServerName, UpstreamListener>;

/// Somebody who hears what one server says.
pub(super) struct UpstreamListener {
    connection: Weak<Connection>,
    /// Who has the server, when that was last looked at.
    share: Share,
    _listening: TaskGuard,
}

/// Listens to every connection there is, and returns those that are new, and those to servers that
/// are shared by now, or are no more.
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
        // A connection stays when nothing else is another in the entry of its server.
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
                    Ok(said) => {
                        if heard.send((server.clone(), said)).await.is_err() {
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
