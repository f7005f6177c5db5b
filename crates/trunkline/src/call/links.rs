//! Replaces upstream URIs in the server requests of a call with the exposed ones.

use super::Route;
use crate::connection::{CallHandler, HandlerFuture, ServerRequest};
use crate::message::{Notification, Raw, RpcError};

/// The server request that may contain resource links.
const SAMPLING: &str = "sampling/createMessage";

/// A handler that receives server requests with exposed URIs.
pub(super) struct LinkHandler<'c> {
    pub(super) inner: &'c dyn CallHandler,
    pub(super) route: &'c Route<'c>,
}

impl CallHandler for LinkHandler<'_> {
    fn on_notification(&self, notification: &Notification) {
        self.inner.on_notification(notification);
    }

    fn wants_progress(&self) -> bool {
        self.inner.wants_progress()
    }

    fn cancel_params(&self) -> Option<Raw> {
        self.inner.cancel_params()
    }

    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        if &*question.method != SAMPLING {
            return self.inner.on_server_request(question);
        }
        let params = question.params.as_ref().map(|params| self.route.with_known_uris(params));
        self.inner.on_server_request(ServerRequest { params, ..question })
    }

    fn on_request_declined(&self, refusal: &RpcError) {
        self.inner.on_request_declined(refusal);
    }

    fn on_blocked(&self) {
        self.inner.on_blocked();
    }
}
