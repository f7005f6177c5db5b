//! Sanitizes messages of untrusted servers outside of calls (SEC-3).

use std::sync::Arc;

use super::{CallHandler, HandlerFuture, ServerRequest};
use crate::config::Trust;
use crate::connection::state::status::ServerDescription;
use crate::message::{Notification, Raw, RpcError};
use crate::sanitize::{sanitize_json, sanitize_text};

/// Parameters of notifications that serve as lookup keys. They stay unchanged: code that forwards a
/// notification replaces them with its own.
const KEYS: [&str; 4] = ["uri", "taskId", "elicitationId", "progressToken"];

/// Sanitizes a notification.
pub(in crate::connection) fn sanitized_notification(
    trust: Trust,
    notification: Notification,
) -> Notification {
    match trust {
        Trust::Trusted => notification,
        Trust::Untrusted => Notification {
            method: sanitize_text(&notification.method).into(),
            params: notification.params.as_ref().map(sanitized_params),
        },
    }
}

fn sanitized_params(params: &Raw) -> Raw {
    let clean = sanitize_json(params);
    if clean == *params {
        return clean;
    }
    let kept = KEYS.iter().filter_map(|key| Some((*key, params.get(key)?)));
    kept.fold(clean, |clean, (key, value)| clean.with(key, &value))
}

/// Sanitizes the description that a server gives of itself.
pub(in crate::connection) fn sanitized_description(
    trust: Trust,
    described: ServerDescription,
) -> ServerDescription {
    let ServerDescription { server_info, instructions, .. } = described;
    let clean = |said: Option<Raw>| match trust {
        Trust::Trusted => said,
        Trust::Untrusted => said.as_ref().map(sanitize_json),
    };
    // Capabilities are looked up by name and never displayed.
    let (server_info, instructions) = (clean(server_info), clean(instructions));
    ServerDescription { server_info, instructions, ..described }
}

/// Sanitizes the error of a response.
pub(in crate::connection) fn sanitized_error(trust: Trust, error: RpcError) -> RpcError {
    match trust {
        Trust::Trusted => error,
        Trust::Untrusted => RpcError::new(error.code(), &sanitize_text(&error.message())),
    }
}

/// Wraps a handler so that it receives sanitized server requests.
pub(in crate::connection) fn sanitizing_handler(
    trust: Trust,
    handler: Arc<dyn CallHandler>,
) -> Arc<dyn CallHandler> {
    match trust {
        Trust::Trusted => handler,
        Trust::Untrusted => Arc::new(UntrustedServerHandler(handler)),
    }
}

/// Handles server requests that belong to no call, after sanitizing them.
struct UntrustedServerHandler(Arc<dyn CallHandler>);

impl CallHandler for UntrustedServerHandler {
    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        let params = question.params.as_ref().map(sanitize_json);
        self.0.on_server_request(ServerRequest { params, ..question })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_sanitized_and_keep_their_ids() {
        let params = r#"{"uri":"x://\u202ea","data":"\u001b[31mred","n":1.0}"#;
        let params = Some(Raw::from_text(params).unwrap());
        let said = Notification { method: "notifications/message\u{200b}".into(), params };
        assert_eq!(sanitized_notification(Trust::Trusted, said.clone()), said);
        let clean = sanitized_notification(Trust::Untrusted, said);
        assert_eq!(&*clean.method, "notifications/message");
        let expected = r#"{"uri":"x://\u202ea","data":"red","n":1.0}"#;
        assert_eq!(clean.params.unwrap().text(), expected);
    }
}
