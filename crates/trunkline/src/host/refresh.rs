//! Refreshes lists of the servers that are unknown or stale.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{Host, WaitFor, refresh_error};
use crate::call::CallError;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::name::ServerName;
use crate::view::View;

impl Host {
    /// Requests the lists of some kinds from every server, where they are unknown or stale,
    /// starting servers that do not run. Returns the reasons for missing lists; the others are in
    /// the catalog.
    pub async fn refresh(&self, kinds: &[ItemKind], patience: WaitFor) -> Vec<Error> {
        self.refresh_connections(self.shared.servers.connections(), kinds, patience).await
    }

    /// The same for some servers only. Unknown names are ignored.
    pub async fn refresh_servers(
        &self,
        servers: &[ServerName],
        kinds: &[ItemKind],
        patience: WaitFor,
    ) -> Vec<Error> {
        let connections = servers.iter().filter_map(|name| self.shared.servers.get(name.as_str()));
        self.refresh_connections(connections.collect(), kinds, patience).await
    }

    /// The view of the same caller after the tools of some servers were refreshed, for a call by a
    /// name that cannot be routed yet. Starts servers that do not run, and waits for the next
    /// attempt of those that restart automatically (CON-5), no longer than `time_left`.
    pub(super) async fn view_after_refresh(
        &self,
        view: &View,
        servers: &[ServerName],
        time_left: Option<Duration>,
    ) -> Result<View, CallError> {
        let refresh = self.refresh_servers(servers, &[ItemKind::Tool], WaitFor::AllReady);
        // Without the lists, the name is judged by those that are known.
        let _ = timeout(time_left.unwrap_or(Duration::MAX), refresh).await;
        self.with_current_rules(view)
    }

    async fn refresh_connections(
        &self,
        connections: Vec<Arc<Connection>>,
        kinds: &[ItemKind],
        patience: WaitFor,
    ) -> Vec<Error> {
        let gathered = connections.iter().map(|connection| refreshed(connection, kinds, patience));
        let results = join_all(gathered).await;
        self.shared.refresh.request().await;
        let mut failures: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
        // A stable order, independent of timing.
        failures.sort_by(|one, other| one.server().cmp(&other.server()));
        failures
    }
}

/// Requests lists from one server, and waits for them as `patience` specifies. Returns the reason
/// for a missing one.
async fn refreshed(
    connection: &Arc<Connection>,
    kinds: &[ItemKind],
    patience: WaitFor,
) -> Result<(), Error> {
    let server = connection.server();
    let grace = connection.behaviour().timeouts.grace;
    // All lists are requested before the first is awaited.
    let asked: Vec<_> = kinds
        .iter()
        .map(|kind| (connection.is_recorded(*kind), connection.refresh(*kind)))
        .collect();
    for (is_remembered, mut refresh) in asked {
        let deadline = match patience {
            WaitFor::AllReady => None,
            WaitFor::Grace if !is_remembered => refresh.since().checked_add(grace),
            WaitFor::Grace | WaitFor::NoWait => Some(refresh.since()),
        };
        match (refresh.finish(deadline).await, deadline) {
            (Some(result), _) => result?,
            (None, Some(_)) if is_remembered => {}
            (None, Some(_)) => return Err(not_ready(&server.name)),
            (None, None) => return Err(refresh_error(&server.name)),
        }
    }
    Ok(())
}

fn not_ready(server: &ServerName) -> Error {
    Error::new(ErrorKind::TimedOut, "it is not ready yet; what it has comes later").of(server)
}
