//! The body of a request, read within the bounds on one message and on all that are under way.

use std::time::Duration;

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::timeout;
use trunkline::principal::Principal;

use super::AppState;
use crate::access::budget::Reservation;

/// How long a message may take to arrive.
const LONGEST_BODY: Duration = Duration::from_secs(120);

/// How long a message waits for room among those that are under way.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Bytes of messages under way of all principals, kept from when they arrive until they are answered:
/// sixteen of the longest.
pub(super) const MAX_BODY_BYTES_OF_ALL: usize = 256 * 1024 * 1024;

/// Bytes of messages under way of one principal.
pub(super) const MAX_BODY_BYTES_OF_ONE: usize = 64 * 1024 * 1024;

/// Messages up to this size are not counted: whoever has its share under way can still answer, cancel
/// and list. The number of connections bounds them.
const UNCOUNTED_BYTES: usize = 16 * 1024;

/// Bytes that are made room for before they arrive: some say more than they send.
const MAX_RESERVED_BYTES: usize = 1024 * 1024;

/// Bytes of a part of a message that arrives. Parts of one size fit where others were freed; a buffer that
/// grows leaves memory behind that the allocator keeps.
const PART_BYTES: usize = 256 * 1024;

/// A message, with what it takes of the budget for as long as that is kept.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    pub(super) reservation: Option<Reservation>,
}

/// Why there is no message.
pub(super) enum BodyError {
    /// It is longer than a message may be.
    TooLong,
    /// It did not arrive in time.
    Late,
    /// It ended early.
    Broken,
    /// Too many bytes are under way.
    Busy,
}

/// Reads the body of a request of a principal.
pub(super) async fn receive(
    state: &AppState,
    principal: &Principal,
    body: Body,
) -> Result<RequestBody, BodyError> {
    timeout(LONGEST_BODY, collect(state, principal, body)).await.unwrap_or(Err(BodyError::Late))
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
        // What is no data is a trailer, and nothing that is said there matters.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = parts.length + data.len();
        if length > state.message_bytes {
            return Err(BodyError::TooLong);
        }
        let uncounted = match &reservation {
            None if length <= UNCOUNTED_BYTES => 0,
            // What was let pass before it was known to be long.
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

/// A message as far as it has arrived.
#[derive(Default)]
struct MessageParts {
    parts: Vec<BytesMut>,
    length: usize,
}

impl MessageParts {
    /// Adds bytes. The first part has room for as many as are expected.
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

    /// The whole message. Only one of many parts is copied.
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
