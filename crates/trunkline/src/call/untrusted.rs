//! Sanitizes the messages that the handler of a call receives from an untrusted server (TOOL-10).

use crate::connection::{CallHandler, HandlerFuture, ServerRequest};
use crate::message::{Notification, Raw, RpcError};
use crate::sanitize::sanitize_json;

/// Forwards sanitized notifications and server requests to a handler.
pub(super) struct SanitizingHandler<'c>(pub(super) &'c dyn CallHandler);

impl CallHandler for SanitizingHandler<'_> {
    fn on_notification(&self, notification: &Notification) {
        let params = notification.params.as_ref().map(sanitize_json);
        self.0.on_notification(&Notification { params, ..notification.clone() });
    }

    fn wants_progress(&self) -> bool {
        self.0.wants_progress()
    }

    fn cancel_params(&self) -> Option<Raw> {
        self.0.cancel_params()
    }

    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        let params = question.params.as_ref().map(sanitize_json);
        self.0.on_server_request(ServerRequest { params, ..question })
    }

    fn on_request_declined(&self, refusal: &RpcError) {
        self.0.on_request_declined(refusal);
    }

    fn on_blocked(&self) {
        self.0.on_blocked();
    }
}
