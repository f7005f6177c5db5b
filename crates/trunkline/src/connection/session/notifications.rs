//! Dispatches notifications of a server to the requests or the client that they are about.

use tracing::debug;

use super::Session;
use super::pending::{PendingRequest, Recipient};
use crate::connection::handler::CallEvent;
use crate::message::{Notification, Raw};
use crate::principal::ClientId;
use crate::protocol::is_mcp_method;

/// Completion of a URL elicitation. It may belong to any request, pending or not; clients match it
/// by `elicitationId`.
const VISITED: &str = "notifications/elicitation/complete";

impl Session {
    /// Delivers a notification about one request. Returns a notification that is not about one
    /// request, or not only, with the only client that it can be about.
    pub(super) fn on_notification(
        &mut self,
        notification: Notification,
        about: Option<u64>,
    ) -> Option<(Notification, Option<ClientId>)> {
        debug!(method = &*notification.method, "notification received");
        if self.on_cancelled(&notification) {
            return None;
        }
        if &*notification.method == VISITED {
            self.pending
                .handler_events()
                .for_each(|(_, waiting)| deliver(waiting, notification.clone()));
            let client = self.pending.client(about, notification.params.as_ref()).cloned();
            return Some((notification, client));
        }
        let Some(waiting) = self.listener(&notification, about).filter(|it| it.updates.is_some())
        else {
            let is_of_client = is_request_scoped(&notification.method);
            let client = self.pending.client(about, notification.params.as_ref());
            let client = client.filter(|_| is_of_client).cloned();
            return Some((notification, client));
        };
        let others = (!is_request_scoped(&notification.method)).then(|| notification.clone());
        deliver(waiting, notification);
        others.map(|notification| (notification, None))
    }

    /// Records that the server acknowledged a standing request. Later messages are attributed to
    /// its client only if they name it.
    pub(in crate::connection) fn settle(&mut self, id: u64) {
        self.pending.settle(id);
    }

    /// The request that a notification is about.
    fn listener(&self, notification: &Notification, about: Option<u64>) -> Option<&PendingRequest> {
        match &*notification.method {
            "notifications/progress" => {
                let params = notification.params.as_ref();
                let token = params.and_then(|params| params.get("progressToken"));
                token.and_then(|token| token.as_u64()).and_then(|id| self.pending.get(id))
            }
            method if is_request_scoped(method) => {
                match self.pending.recipient_of(about, notification.params.as_ref()) {
                    Recipient::Of(_, waiting) => Some(waiting),
                    Recipient::Crossing(id) => self.pending.listener_of_log(id),
                    Recipient::None | Recipient::Unclear | Recipient::TaskOfOther => None,
                }
            }
            _ => about.and_then(|id| self.pending.get(id)).filter(|waiting| !waiting.is_standing),
        }
    }
}

/// Delivers a notification to the caller of a request. A slow caller loses it; other callers do
/// not.
fn deliver(waiting: &PendingRequest, notification: Notification) {
    let Some(updates) = &waiting.updates else { return };
    let update = CallEvent::Notification(with_token(notification, waiting.token.as_ref()));
    let weight = update.weight();
    let _ = updates.try_send_sized(update, weight);
}

/// Whether a notification of this method is about one request, if it can be attributed. Custom
/// notifications are attributed like log messages.
fn is_request_scoped(method: &str) -> bool {
    matches!(method, "notifications/progress" | "notifications/message") || !is_mcp_method(method)
}

/// Replaces the progress token by the one that the caller provided, if any.
fn with_token(notification: Notification, token: Option<&Raw>) -> Notification {
    match (notification, token) {
        (Notification { method, params: Some(params) }, Some(token))
            if &*method == "notifications/progress" =>
        {
            let params = params.with_unambiguous("progressToken", token);
            Notification { method, params: Some(params) }
        }
        (notification, _) => notification,
    }
}
