//! Forwards client notifications to the upstream server they are meant for.

use trunkline::message::Notification;
use trunkline::name::ServerName;
use trunkline::principal::Requester;
use trunkline::protocol::is_mcp_method;
use trunkline::view::View;

use super::gateway::Gateway;
use crate::access::scope::CallerIdentity;

impl Gateway {
    /// Forwards a notification that the gateway does not handle itself. The requester selects
    /// dedicated servers, and receives the messages that servers send because of the notification.
    pub(crate) async fn relay_notification(
        &self,
        identity: &CallerIdentity,
        requester: &Requester,
        notification: Notification,
    ) {
        match &*notification.method {
            // A shared server stores no client's roots: it requests them in each call.
            "notifications/roots/list_changed" => {
                self.host.notify_dedicated(requester, &notification).await;
            }
            method if is_mcp_method(method) => {}
            _ => {
                let Ok(view) = identity.scope.view(&self.host) else { return };
                if let Some(server) = self.only_server(&view) {
                    self.host.notify_server(&server, requester, notification).await;
                }
            }
        }
    }

    /// The single server that receives non-MCP requests and notifications. Only set if no other
    /// server is configured, whether up, down or broken, and the caller is unrestricted. The effect
    /// of an unknown method is unknown, so that any rule must be assumed to forbid it: lists of the
    /// server, its access, its trust, the limits of the caller.
    pub(crate) fn only_server(&self, view: &View) -> Option<ServerName> {
        let config = self.host.config();
        let mut enabled = config.servers().filter(|server| server.enabled);
        let (only, None) = (enabled.next()?, enabled.next()) else { return None };
        let is_free = config.broken().is_empty() && view.is_unlimited(&only.name);
        is_free.then(|| only.name.clone())
    }
}
