//! Masks secrets in the messages of a server, where its configuration requires it (SEC-2).

use bytes::Bytes;

use crate::message::Raw;
use crate::transport::{InboundEvent, SecretMask};

/// Masks secrets in an inbound event, if there is a mask.
pub(super) fn masked(mask: Option<&SecretMask>, incoming: InboundEvent) -> InboundEvent {
    let Some(mask) = mask else { return incoming };
    let line = |line: Bytes| match str::from_utf8(&line) {
        Ok(text) => mask.masked_json(text, true).map_or(line, Bytes::from),
        // Not a JSON-RPC message.
        Err(_) => line,
    };
    match incoming {
        InboundEvent::Message(it) => InboundEvent::Message(line(it)),
        InboundEvent::OnRequestStream { id, line: it } => {
            InboundEvent::OnRequestStream { id, line: line(it) }
        }
        InboundEvent::Response(mut response) => {
            response.outcome = match response.outcome {
                Ok(result) => Ok(masked_raw(mask, result)),
                Err(error) => Err(error.map(|raw| masked_raw(mask, raw))),
            };
            InboundEvent::Response(response)
        }
        InboundEvent::RequestFailed { .. }
        | InboundEvent::EmptyReply { .. }
        | InboundEvent::Closed(_) => incoming,
    }
}

/// Masks secrets in a JSON value.
pub(crate) fn masked_raw(mask: &SecretMask, raw: Raw) -> Raw {
    match mask.masked_json(raw.text(), false) {
        Some(text) => {
            let masked = Raw::from_text(&text);
            let masked = masked.expect("invariant: JSON with other strings in it is JSON");
            masked.shortened_by(raw.missing())
        }
        None => raw,
    }
}
