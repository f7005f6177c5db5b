//! Notifications of clients: cancellations, and those to forward to the upstream server they are
//! meant for.

use trunkline::message::{Id, Notification};
use trunkline::principal::Requester;
use trunkline::protocol::is_mcp_method;

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
}

/// The ID of the request that a notification cancels, normalized.
pub(crate) fn cancelled_id(notification: &Notification) -> Option<Id> {
    if &*notification.method != "notifications/cancelled" {
        return None;
    }
    Id::from_raw(&notification.params.as_ref()?.get("requestId")?).map(|id| id.normalized())
}
