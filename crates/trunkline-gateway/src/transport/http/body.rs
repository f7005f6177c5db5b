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
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // What is no data is a trailer, and nothing that is said there matters.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = bytes.len() + data.len();
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
        if bytes.capacity() == 0 {
            bytes.reserve(declared.min(MAX_RESERVED_BYTES).max(data.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(RequestBody { bytes: bytes.freeze(), reservation })
}
