//! Stops servers of a host: one or all, until the next use or for good (CON-10).

use futures_util::future::join_all;
use tokio::time::Instant;

use super::Host;
use crate::connection::OrphanProcess;

impl Host {
    /// Stops a server, including dedicated connections and those shared with other hosts of the
    /// registry. When this returns, none of its processes is running. The next use starts it again
    /// (CON-10). An unknown server is ignored.
    pub async fn close(&self, server: &str) {
        let shared = async {
            if let Some(connection) = self.shared.servers.get(server) {
                connection.close().await;
            }
        };
        let older_era = self.shared.legacy.close_server(server);
        tokio::join!(shared, self.shared.dedicated.close_server(server), older_era);
    }

    /// Stops every server in the same way.
    pub async fn close_all(&self) {
        let connections = self.shared.servers.connections();
        let closing = connections.iter().map(|it| self.close(it.server().name.as_str()));
        join_all(closing).await;
    }

    /// Shuts down every server for good. When this returns, none of their processes is running
    /// (CON-10), except the returned ones, which could not be ended.
    pub async fn shutdown(&self) -> Vec<OrphanProcess> {
        self.shared.shutdown.send_replace(true);
        self.shared.catalog_task.abort();
        tokio::join!(
            self.shared.servers.close(),
            self.shared.dedicated.close_all(),
            self.shared.legacy.close_all()
        );
        for oauth in self.shared.connections.iter().filter_map(|options| options.oauth()) {
            oauth.finish().await;
        }
        self.take_orphans()
    }

    /// The processes that could not be ended with their servers, since the last call.
    pub fn take_orphans(&self) -> Vec<OrphanProcess> {
        let mut remaining = self.shared.servers.registry().take_orphans();
        remaining.extend(self.shared.dedicated.take_remaining());
        remaining
    }

    /// Closes the dedicated servers of a client that has disconnected.
    pub async fn close_client(&self, client: &str) {
        self.shared.dedicated.close_client(client).await;
    }

    /// Closes dedicated and legacy connections that have exceeded their idle timeout.
    pub async fn close_idle(&self) {
        let now = Instant::now();
        tokio::join!(self.shared.dedicated.close_idle(now), self.shared.legacy.close_idle(now));
    }
}
