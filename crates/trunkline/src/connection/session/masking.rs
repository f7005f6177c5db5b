//! Secrets masked in what a server says, where its configuration wants that (SEC-2).

use bytes::Bytes;

use crate::message::Raw;
use crate::transport::{InboundEvent, SecretMask};

/// What the server said, without secrets if there is a mask.
pub(super) fn masked(mask: Option<&SecretMask>, incoming: InboundEvent) -> InboundEvent {
    let Some(mask) = mask else { return incoming };
    let line = |line: Bytes| match str::from_utf8(&line) {
        Ok(text) => mask.masked_json(text, true).map_or(line, Bytes::from),
        // No message.
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

/// A value without secrets.
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
