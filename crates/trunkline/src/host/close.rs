//! Ending servers of a host: one or all, until the next use or for good (CON-10).

use std::time::Instant;

use futures_util::future::join_all;

use super::Host;
use crate::connection::OrphanProcess;

impl Host {
    /// Ends a server, also where clients have it for themselves or other hosts of the registry use it.
    /// When this returns, nothing of it is left running. The next use starts it again (CON-10). A server
    /// that there is not is none to end.
    pub async fn close(&self, server: &str) {
        let shared = async {
            if let Some(connection) = self.shared.servers.get(server) {
                connection.close().await;
            }
        };
        let older_era = self.shared.legacy.close_server(server);
        tokio::join!(shared, self.shared.dedicated.close_server(server), older_era);
    }

    /// Ends every server in the same way.
    pub async fn close_all(&self) {
        let connections = self.shared.servers.connections();
        let closing = connections.iter().map(|it| self.close(it.server().name.as_str()));
        join_all(closing).await;
    }

    /// Ends every server for good. When this returns, nothing of them is left running (CON-10), except for the
    /// processes that are returned: those could not be ended.
    pub async fn shutdown(&self) -> Vec<OrphanProcess> {
        self.shared.shutdown.send_replace(true);
        self.shared.catalog_task.abort();
        tokio::join!(
            self.shared.servers.close(),
            self.shared.dedicated.close_all(),
            self.shared.legacy.close_all()
        );
        self.take_orphans()
    }

    /// The processes that could not be ended with their servers, since this was asked last.
    pub fn take_orphans(&self) -> Vec<OrphanProcess> {
        let mut remaining = self.shared.servers.registry().take_orphans();
        remaining.extend(self.shared.dedicated.take_remaining());
        remaining
    }

    /// Ends the servers that a client has for itself, because it is gone.
    pub async fn close_client(&self, client: &str) {
        self.shared.dedicated.close_client(client).await;
    }

    /// Ends the servers that clients have for themselves and have not used for as long as they may.
    pub async fn close_idle(&self) {
        let now = Instant::now();
        tokio::join!(self.shared.dedicated.close_idle(now), self.shared.legacy.close_idle(now));
    }
}
