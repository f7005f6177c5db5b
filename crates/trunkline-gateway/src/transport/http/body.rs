//! Reads request bodies within the limits of one message and of all messages in flight.

use std::time::Duration;

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::timeout;
use trunkline::principal::Principal;

use super::AppState;
use super::connection_timer::ConnectionTimer;
use crate::access::budget::Reservation;

/// Timeout of a whole body.
const LONGEST_BODY: Duration = Duration::from_secs(120);

/// Time for which a body waits for bytes of the budget.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Limit on the bytes of all messages in flight, from their arrival to their response: sixteen of
/// the longest.
pub(super) const MAX_BODY_BYTES_OF_ALL: usize = 256 * 1024 * 1024;

/// Limit on the bytes of one principal's messages in flight.
pub(super) const MAX_BODY_BYTES_OF_ONE: usize = 64 * 1024 * 1024;

/// Messages up to this size are not counted, so that a principal with an exhausted share can still
/// respond, cancel and list. The number of connections limits them.
const UNCOUNTED_BYTES: usize = 16 * 1024;

/// Limit of the buffer for a declared `Content-Length`, which may be more than the client sends.
const MAX_RESERVED_BYTES: usize = 1024 * 1024;

/// Bytes of one buffer. Buffers of one size reuse freed memory; a growing buffer leaves fragments
/// that the allocator keeps.
const PART_BYTES: usize = 256 * 1024;

/// A message, with its reservation.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    pub(super) reservation: Option<Reservation>,
}

/// The reason why a body cannot be used.
pub(super) enum BodyError {
    /// Exceeds the message limit.
    TooLong,
    /// Timed out.
    Late,
    /// Ended early.
    Broken,
    /// The budget is exhausted.
    Busy,
}

/// Reads the body of a request.
pub(super) async fn receive(
    state: &AppState,
    principal: &Principal,
    (body, timer): (Body, &ConnectionTimer),
) -> Result<RequestBody, BodyError> {
    tokio::select! {
        biased;
        received = collect(state, principal, body) => received,
        () = timer.elapsed(LONGEST_BODY) => Err(BodyError::Late),
    }
}

async fn collect(
    state: &AppState,
    principal: &Principal,
    mut body: Body,
) -> Result<RequestBody, BodyError> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > state.message_bytes {
        return Err(BodyError::TooLong);
    }
    let mut reservation = None;
    let mut parts = MessageParts::default();
    while let Some(frame) = body.frame().await {
        // Other frames are trailers, which are ignored.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = parts.length + data.len();
        if length > state.message_bytes {
            return Err(BodyError::TooLong);
        }
        let uncounted = match &reservation {
            None if length <= UNCOUNTED_BYTES => 0,
            // Includes the bytes that were not counted while the message was short.
            None => length,
            Some(_) => data.len(),
        };
        if uncounted > 0 {
            let reserved = reservation.get_or_insert_with(|| state.bodies.begin(principal));
            timeout(LONGEST_WAIT, reserved.grow(uncounted)).await.map_err(|_| BodyError::Busy)?;
        }
        parts.push(&data, declared.min(MAX_RESERVED_BYTES));
    }
    Ok(RequestBody { bytes: parts.into_bytes(), reservation })
}

/// The received parts of a message.
#[derive(Default)]
struct MessageParts {
    parts: Vec<BytesMut>,
    length: usize,
}

impl MessageParts {
    /// Appends bytes. The first part has the expected capacity.
    fn push(&mut self, mut data: &[u8], expected: usize) {
        self.length += data.len();
        while !data.is_empty() {
            match self.parts.last_mut() {
                Some(last) if last.len() < last.capacity() => {
                    let room = (last.capacity() - last.len()).min(data.len());
                    let (now, rest) = data.split_at(room);
                    last.extend_from_slice(now);
                    data = rest;
                }
                Some(_) => self.parts.push(BytesMut::with_capacity(PART_BYTES)),
                None => self.parts.push(BytesMut::with_capacity(expected.max(data.len()))),
            }
        }
    }

    /// The whole message. A single part is not copied.
    fn into_bytes(mut self) -> Bytes {
        if self.parts.len() <= 1 {
            return self.parts.pop().unwrap_or_default().freeze();
        }
        let mut whole = Vec::with_capacity(self.length);
        // Each part is freed as soon as it is copied.
        self.parts.into_iter().for_each(|part| whole.extend_from_slice(&part));
        whole.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_however_it_arrives() {
        let message: Vec<u8> =
            (0..3 * PART_BYTES + 7).map(|it| u8::try_from(it % 251).unwrap()).collect();
        for (expected, step) in
            [(0, 1000), (10, 5), (PART_BYTES, PART_BYTES + 1), (message.len(), 4096)]
        {
            let mut parts = MessageParts::default();
            message.chunks(step).for_each(|data| parts.push(data, expected));
            assert_eq!(parts.length, message.len());
            assert!(parts.into_bytes() == message, "{expected} {step}");
        }
        assert!(MessageParts::default().into_bytes().is_empty());
    }
}
