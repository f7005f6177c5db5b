//! What clients tell: passed on to the servers of which it can be said that it is for them.

use trunkline::config::{Access, Trust};
use trunkline::message::{Notification, is_of_protocol};
use trunkline::name::ServerName;

use crate::gateway::Gateway;
use crate::scope::Identity;

impl Gateway {
    /// Passes on what a client tells that the gateway itself need not know. Who it is matters to
    /// servers of its own.
    pub(crate) async fn told(
        &self,
        identity: &Identity,
        client: Option<&str>,
        notification: Notification,
    ) {
        match (&*notification.method, client) {
            // A server that all share does not know of any client's roots: it has to ask anew in
            // each call.
            ("notifications/roots/list_changed", Some(client)) => {
                self.host.tell_own(client, &notification).await;
            }
            (method, _) if is_of_protocol(method) => {}
            _ => {
                if let Some(server) = self.only_server(identity) {
                    self.host.tell(&server, client, notification).await;
                }
            }
        }
    }

    /// The server for which everything is that the protocol does not know, requests and notifications
    /// alike, if there can be no doubt: the configuration has no other, whether up or not, and its
    /// callers may do with it whatever they like. What such a message does is known to nobody here,
    /// so that any rule there is must be taken to be about it.
    pub(crate) fn only_server(&self, identity: &Identity) -> Option<ServerName> {
        let config = self.host.config();
        let mut enabled = config.servers().filter(|server| server.enabled);
        let (only, None) = (enabled.next()?, enabled.next()) else { return None };
        let is_free = only.behaviour.access == Access::ReadWrite && only.trust == Trust::Trusted;
        (is_free && !identity.scope.is_limited()).then(|| only.name.clone())
    }
}
