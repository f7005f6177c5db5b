//! The handler of one call: prepares the messages of its server for the handler of the caller.

use super::Route;
use crate::config::Trust;
use crate::connection::{CallHandler, HandlerFuture, ServerRequest};
use crate::message::{Notification, Raw, RpcError};
use crate::sanitize::sanitize_json;

/// The server request that may contain resource links.
const SAMPLING: &str = "sampling/createMessage";

/// Forwards to the handler of the caller: server requests with exposed URIs, and the messages of an
/// untrusted server sanitized (TOOL-10).
pub(super) struct RouteHandler<'c> {
    pub(super) inner: &'c dyn CallHandler,
    pub(super) route: &'c Route<'c>,
}

impl RouteHandler<'_> {
    fn sanitized(&self, params: Option<Raw>) -> Option<Raw> {
        match self.route.server.trust {
            Trust::Trusted => params,
            Trust::Untrusted => params.as_ref().map(sanitize_json),
        }
    }
}

impl CallHandler for RouteHandler<'_> {
    fn on_notification(&self, notification: &Notification) {
        if self.route.server.trust == Trust::Trusted {
            return self.inner.on_notification(notification);
        }
        let params = self.sanitized(notification.params.clone());
        self.inner.on_notification(&Notification { params, ..notification.clone() });
    }

    fn wants_progress(&self) -> bool {
        self.inner.wants_progress()
    }

    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        let params = self.sanitized(request.params);
        let params = match &*request.method {
            SAMPLING => params.as_ref().map(|params| self.route.with_known_uris(params)),
            _ => params,
        };
        self.inner.on_server_request(ServerRequest { params, ..request })
    }

    fn on_request_declined(&self, refusal: &RpcError) {
        self.inner.on_request_declined(refusal);
    }

    fn cancel_params(&self) -> Option<Raw> {
        self.inner.cancel_params()
    }

    fn on_blocked(&self) {
        self.inner.on_blocked();
    }
}
