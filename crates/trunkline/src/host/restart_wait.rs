//! Calls to a server that is being restarted wait for that attempt (CON-5).

use std::time::Duration;

use tokio::time::timeout;

use super::Host;
use crate::connection::{State, Status};
use crate::name::ServerName;
use crate::view::{RouteError, View};

impl Host {
    /// The view of a caller after the next restart attempt of a server, where a name cannot be
    /// routed because the server is down and restarts automatically. Waits no longer than the
    /// timeout of the call.
    pub(super) async fn wait_for_restart(
        &self,
        view: &View,
        none: &RouteError<'_>,
        bound: Option<Duration>,
    ) -> Option<View> {
        let RouteError::Denied(reason) = none else { return None };
        let server = reason.unavailable()?;
        self.attempted(server, bound).await?;
        self.shared.refresh.request().await;
        self.with_current_rules(view).ok()
    }

    /// Waits until a server that restarts automatically is ready, or has failed once more.
    async fn attempted(&self, server: &ServerName, bound: Option<Duration>) -> Option<()> {
        let connection = self.shared.servers.get(server.as_str())?;
        let before = connection.status();
        let is_coming = before.state == State::Starting || before.next_attempt.is_some();
        // It may have been restarted already.
        if !is_coming && before.state != State::Ready {
            return None;
        }
        let is_settled = |now: &Status| match now.state {
            State::Starting => false,
            State::Failed => now.next_attempt.is_none() || now.restarts > before.restarts,
            State::Idle | State::Ready | State::Stopped => true,
        };
        let call = connection.server().behaviour.timeouts.call;
        let bound = bound.map_or(call, |own| own.min(call));
        let mut watch = connection.watch();
        let _ = timeout(bound, watch.wait_for(is_settled)).await;
        Some(())
    }
}
