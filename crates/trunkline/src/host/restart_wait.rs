//! Calls to a server that is being started again wait for that attempt (CON-5).

use std::time::Duration;

use tokio::time::timeout;

use super::Host;
use crate::connection::{State, Status};
use crate::name::ServerName;
use crate::view::{RouteError, View};

impl Host {
    /// What a caller sees after the next attempt to start a server, where it is down and started again by
    /// itself, and that is why a name leads nowhere. Waits no longer than the call may take.
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

    /// Waits until a server that is started again by itself is ready, or has failed once more.
    async fn attempted(&self, server: &ServerName, bound: Option<Duration>) -> Option<()> {
        let connection = self.shared.servers.get(server.as_str())?;
        let before = connection.status();
        let is_coming = before.state == State::Starting || before.next_attempt.is_some();
        // The end of it may have been followed by a start already.
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
