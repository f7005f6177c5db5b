//! What clients tell: passed on to the servers of which it can be said that it is for them.

use trunkline::message::Notification;
use trunkline::name::ServerName;
use trunkline::principal::Requester;
use trunkline::protocol::is_mcp_method;
use trunkline::view::View;

use super::gateway::Gateway;
use crate::access::scope::CallerIdentity;

impl Gateway {
    /// Passes on what a client tells that the gateway itself need not know. Who it is matters to
    /// servers of its own, and for messages that servers send because of it.
    pub(crate) async fn relay_notification(
        &self,
        identity: &CallerIdentity,
        requester: &Requester,
        notification: Notification,
    ) {
        match &*notification.method {
            // A server that all share does not know of any client's roots: it has to ask anew in
            // each call.
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

    /// The server for which everything is that the protocol does not know, requests and notifications
    /// alike, if there can be no doubt: the configuration has no other, whether up, down or broken, and
    /// the caller of the view may do with it whatever it likes. What such a message does is known to
    /// nobody here, so that any rule there is must be taken to be about it: lists of the server, its
    /// access, its trust, the limits of the caller.
    pub(crate) fn only_server(&self, view: &View) -> Option<ServerName> {
        let config = self.host.config();
        let mut enabled = config.servers().filter(|server| server.enabled);
        let (only, None) = (enabled.next()?, enabled.next()) else { return None };
        let is_free = config.broken().is_empty() && view.is_unlimited(&only.name);
        is_free.then(|| only.name.clone())
    }
}
