//! Binds a catalog entry to the connection that serves it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{Host, refresh_error};
use crate::call::{Authorizer as _, CallError, CallOptions, OlderEra, Route};
use crate::catalog::Entry;
use crate::connection::{Connection, LogLevel};
use crate::name::ServerName;
use crate::principal::Requester;
use crate::view::View;

impl Host {
    /// Binds an entry to the connection that serves it: a dedicated one of the client if there is
    /// one, in the era of the caller where the server supports both.
    pub(super) async fn bind<'v>(
        &'v self,
        view: &'v View,
        entry: &'v Entry,
        options: &CallOptions<'_>,
    ) -> Result<Route<'v>, CallError> {
        self.authorize(view, entry)?;
        let name = &entry.server().name;
        let shared = self.shared.servers.get(name.as_str()).ok_or_else(|| refresh_error(name))?;
        // The settings may have changed since it was started.
        let server = self.shared.active.borrow().servers.get(name).cloned();
        let server = server.ok_or_else(|| refresh_error(name))?;
        let own = self.shared.dedicated.connection(&server, options.client)?;
        let is_own = own.is_some();
        let older = match options.older_era.filter(|_| !is_own) {
            Some(older_era) => {
                let older = self.legacy_connection(&shared, older_era, options).await;
                // The rules may have changed during the wait.
                self.authorize(view, entry)?;
                older
            }
            None => None,
        };
        let first = older.is_some().then(|| Arc::clone(&shared));
        let connection = own.or(older).unwrap_or(shared);
        Ok(Route { entry, connection, is_own, first, server, view, guard: self, read: None })
    }

    /// The legacy connection to a server that supports both eras. Its eras are known once it has
    /// been connected.
    async fn legacy_connection(
        &self,
        shared: &Arc<Connection>,
        older_era: OlderEra<'_>,
        options: &CallOptions<'_>,
    ) -> Option<Arc<Connection>> {
        let may_be_needed = older_era.is_own && shared.may_speak_both_eras();
        if may_be_needed && shared.tools_revision() == 0 {
            // The call itself reports why the server is unreachable.
            let connected = shared.connect();
            let _ = timeout(options.time_left().unwrap_or(Duration::MAX), connected).await;
        }
        let principal = options.requester.map(|it| it.principal.clone()).unwrap_or_default();
        self.shared.legacy.connection_beside(shared, older_era, &principal)
    }

    /// Requests log messages of this level and above from a server, on all its shared connections,
    /// on behalf of a client.
    pub fn set_log_level(&self, server: &ServerName, requester: &Requester, level: LogLevel) {
        let older = self.shared.legacy.all_of(server);
        for connection in self.shared.servers.get(server.as_str()).into_iter().chain(older) {
            connection.set_log_level_for(requester, level);
        }
    }
}
