//! Answers and notifications that wait for their clients to read them: how many bytes may.

use std::sync::Arc;

use axum::body::Bytes;
use trunkline::message::RpcError;
use trunkline::principal::Principal;
use trunkline::protocol::code;

use crate::access::budget::{ByteBudget, UnreadMessages, counted};

/// Bytes of answers that wait to be read, of all principals: sixteen of the longest.
const MAX_UNREAD_BYTES_OF_ALL: usize = 256 * 1024 * 1024;

/// Bytes of answers that wait to be read by one principal, with the notifications on their streams:
/// four of the longest.
const MAX_UNREAD_BYTES_OF_ONE: usize = 64 * 1024 * 1024;

/// Bytes of notifications that wait on the standing streams of all sessions. Many clients never open
/// theirs, which must not keep them from answers.
const MAX_UNREAD_NOTIFICATIONS_OF_ALL: usize = 64 * 1024 * 1024;

/// Bytes of notifications that wait on the standing streams of one principal.
const MAX_UNREAD_NOTIFICATIONS_OF_ONE: usize = 16 * 1024 * 1024;

/// Answers up to this size are not counted, so that a principal that has its share can still cancel and
/// ping. The number of connections bounds them.
pub(super) const MAX_UNCOUNTED_BYTES: usize = 16 * 1024;

/// Budgets of what waits to be read.
pub(super) struct UnreadBudgets {
    answers: Arc<ByteBudget>,
    notifications: Arc<ByteBudget>,
}

impl Default for UnreadBudgets {
    fn default() -> Self {
        Self {
            answers: ByteBudget::new(MAX_UNREAD_BYTES_OF_ALL, MAX_UNREAD_BYTES_OF_ONE),
            notifications: ByteBudget::new(
                MAX_UNREAD_NOTIFICATIONS_OF_ALL,
                MAX_UNREAD_NOTIFICATIONS_OF_ONE,
            ),
        }
    }
}

impl UnreadBudgets {
    /// Counts answers to a principal, and what comes on their streams before them.
    pub(super) fn answers_to(&self, principal: Principal) -> UnreadMessages {
        UnreadMessages::new(&self.answers, principal)
    }

    /// Counts what comes on the standing stream of a session.
    pub(super) fn notifications_to(&self, principal: Principal) -> UnreadMessages {
        UnreadMessages::new(&self.notifications, principal)
    }
}

/// The parts of an answer, counted until they are written; or the error in its place.
pub(super) fn counted_parts<const N: usize>(
    unread: &UnreadMessages,
    parts: [Bytes; N],
) -> Result<[Bytes; N], RpcError> {
    let length = parts.iter().map(Bytes::len).sum();
    if length <= MAX_UNCOUNTED_BYTES {
        return Ok(parts);
    }
    let reservation = unread.reserve(length).map_err(|_| unread_error(length))?;
    Ok(parts.map(|part| counted(part, &reservation)))
}

/// The error in place of an answer for which there is no room.
pub(super) fn unread_error(length: usize) -> RpcError {
    let message = format!(
        "the request was carried out, but its answer of {length} bytes was dropped: too many bytes \
         of earlier answers have not been read yet; read them before asking for more"
    );
    RpcError::new(code::INTERNAL_ERROR, &message)
}
