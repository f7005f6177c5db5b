//! Subscriptions of legacy sessions: list changes, updates of resources, and log messages.

use std::borrow::Cow;
use std::sync::Arc;

use trunkline::connection::LogLevel;
use trunkline::host::RelayMethod;
use trunkline::message::{Message, Raw, RpcError};
use trunkline::name::MAX_URI_BYTES;
use trunkline::view::ResourceRoute;

use super::gateway::Gateway;
use crate::changes::{ListKinds, NotificationSource, ResourceSubscriptions};
use crate::client::caller::Caller;
use crate::client::session::Session;
use crate::request::errors::invalid;

impl Gateway {
    /// Starts change notifications for a session.
    pub(crate) fn start_notifications(&self, session: &Session) {
        session.listen(|| {
            let stream = Arc::clone(&session.stream);
            let tell =
                move |notification| stream.notify(Message::Notification(notification).write());
            let subscriptions = Arc::clone(&session.subscriptions);
            let scope = &session.identity.scope;
            self.changes.begin(&self.host, scope).tell(ListKinds::ALL, subscriptions, tell)
        });
    }

    /// Handles `logging/setLevel`.
    pub(crate) fn set_level(&self, caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
        let level = params.get("level");
        let level = level.as_ref().and_then(Raw::as_str).and_then(|it| LogLevel::parse(&it));
        let level = level.ok_or_else(|| invalid("`level` must be one of the levels of syslog"))?;
        if let Some(session) = &caller.session {
            session.set_level(level);
            for connection in self.host.dedicated_connections(session.id.as_str()) {
                connection.set_log_level(level);
            }
        }
        // A server without visible items has no log messages for this caller.
        let (view, requester) = (self.view(caller)?, caller.requester());
        for connection in self.host.servers().connections() {
            let server = &connection.server().name;
            if view.could_contain(server) {
                self.host.set_log_level(server, &requester, level);
            }
        }
        Ok(Raw::empty_object())
    }

    /// Handles `resources/subscribe`.
    pub(crate) async fn subscribe(&self, caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
        let Some(session) = &caller.session else { return Err(invalid("there is no session")) };
        let address = string_param(params, "uri")?;
        if address.len() > 2 * MAX_URI_BYTES {
            return Err(invalid(&format!("`uri` is longer than {} bytes", 2 * MAX_URI_BYTES)));
        }
        let params = Raw::empty_object().append_members(&[("uri", &Raw::from_string(&address))]);
        let view = self.view_with(caller, (RelayMethod::Read, &params)).await?;
        let found = view.route_resource(&address).map_err(|none| invalid(&none.to_string()))?;
        self.subscribe_uri(caller, found, &session.subscriptions, address).await?;
        self.start_notifications(session);
        Ok(Raw::empty_object())
    }

    /// Subscribes to updates of a resource on its server.
    pub(crate) async fn subscribe_uri(
        &self,
        caller: &Caller,
        found: ResourceRoute<'_>,
        subscriptions: &ResourceSubscriptions,
        address: String,
    ) -> Result<(), RpcError> {
        let server = &found.entry.server().name;
        // A client without a session has no channel for notifications of a dedicated server.
        let client = caller.session.as_ref().and_then(|_| self.client(caller, server));
        let connection = self.host.connection_for(server, client.as_ref());
        let connection = connection.map_err(|error| invalid(&error.to_string()))?;
        let source = if client.is_some() {
            NotificationSource::Dedicated
        } else {
            NotificationSource::Shared
        };
        subscriptions.add((&connection, source), found.uri, address).await
    }
}

/// Handles `resources/unsubscribe`.
pub(crate) fn unsubscribe(caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
    let address = string_param(params, "uri")?;
    if let Some(session) = &caller.session {
        session.subscriptions.remove(&address);
    }
    Ok(Raw::empty_object())
}

fn string_param(params: &Raw, key: &str) -> Result<String, RpcError> {
    let value = params.get(key);
    let text = value.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
    text.ok_or_else(|| invalid(&format!("`{key}` must be a text")))
}
