//! From an entry of a view to the connection that it is called on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{Host, refresh_error};
use crate::call::{Authorizer as _, CallError, CallOptions, Route};
use crate::catalog::Entry;
use crate::connection::{Connection, LogLevel};
use crate::message::Raw;
use crate::name::ServerName;
use crate::principal::Requester;
use crate::view::View;

impl Host {
    /// Binds an entry to the connection that serves it, to this client if each has its own, in the era of
    /// the caller where the server speaks both.
    pub(super) async fn bind<'v>(
        &'v self,
        view: &'v View,
        entry: &'v Entry,
        options: &CallOptions<'_>,
    ) -> Result<Route<'v>, CallError> {
        self.authorize(view, entry)?;
        let name = &entry.server().name;
        let shared = self.shared.servers.get(name.as_str()).ok_or_else(|| refresh_error(name))?;
        // The rules for it may be other ones than when it was started.
        let server = self.shared.active.borrow().servers.get(name).cloned();
        let server = server.ok_or_else(|| refresh_error(name))?;
        let own = self.shared.dedicated.connection(&server, options.client)?;
        let is_own = own.is_some();
        let older = match options.older_era.filter(|_| !is_own) {
            Some(capabilities) => {
                let older = self.legacy_connection(&shared, capabilities, options).await;
                // The rules may be other ones after the wait.
                self.authorize(view, entry)?;
                older
            }
            None => None,
        };
        let first = older.is_some().then(|| Arc::clone(&shared));
        let connection = own.or(older).unwrap_or(shared);
        Ok(Route { entry, connection, is_own, first, server, view, guard: self, read: None })
    }

    /// The connection to a server in the older era, if it speaks both. Which it speaks is known once it has
    /// been reached.
    async fn legacy_connection(
        &self,
        shared: &Arc<Connection>,
        capabilities: &Raw,
        options: &CallOptions<'_>,
    ) -> Option<Arc<Connection>> {
        if shared.may_speak_both_eras() && shared.tools_revision() == 0 {
            // Why it cannot be reached in time is said by the call.
            let connected = shared.connect();
            let _ = timeout(options.time_left().unwrap_or(Duration::MAX), connected).await;
        }
        let principal = options.requester.map(|it| it.principal.clone()).unwrap_or_default();
        self.shared.legacy.connection_beside(shared, capabilities, &principal)
    }

    /// Wants a server to log at least from a level on, on all connections that clients share, on behalf
    /// of a client.
    pub fn set_log_level(&self, server: &ServerName, requester: &Requester, level: LogLevel) {
        let older = self.shared.legacy.all_of(server);
        for connection in self.shared.servers.get(server.as_str()).into_iter().chain(older) {
            connection.set_log_level_for(requester, level);
        }
    }
}
