//! Notifications of a server that belong to no request in flight.

use crate::message::Notification;
use crate::principal::ClientId;

/// A notification of a server that belongs to no request in flight, or not only to one.
#[derive(Clone, Debug)]
pub struct ServerNotification {
    /// The notification, as the server sent it.
    pub notification: Notification,
    /// The only client whose calls it can be about: no other client has a call in flight, a call
    /// that ended a moment ago, or a cancelled call without a response since. `None` if there are
    /// several such clients or none, or if the notification is about no call.
    pub client: Option<ClientId>,
}
