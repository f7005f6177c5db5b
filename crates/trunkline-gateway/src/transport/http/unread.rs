//! Limits the bytes of responses and notifications that wait to be read by clients.

use std::sync::Arc;

use axum::body::Bytes;
use trunkline::message::RpcError;
use trunkline::principal::Principal;

use crate::access::budget::{ByteBudget, UnreadMessages, counted};
use crate::request::errors::too_much_unread;

/// Limit on the bytes of unread responses of all principals: sixteen of the longest.
const MAX_UNREAD_BYTES_OF_ALL: usize = 256 * 1024 * 1024;

/// Limit on the bytes of one principal's unread responses and of the notifications on their
/// streams: four of the longest.
const MAX_UNREAD_BYTES_OF_ONE: usize = 64 * 1024 * 1024;

/// Limit on the bytes of unread notifications on the standing streams of all sessions. Separate,
/// because many clients never open theirs, and that must not prevent responses.
const MAX_UNREAD_NOTIFICATIONS_OF_ALL: usize = 64 * 1024 * 1024;

/// Limit on the bytes of unread notifications on the standing streams of one principal.
const MAX_UNREAD_NOTIFICATIONS_OF_ONE: usize = 16 * 1024 * 1024;

/// Responses up to this size are not counted, so that a principal with an exhausted share can still
/// cancel and ping. The number of connections limits them.
pub(super) const MAX_UNCOUNTED_BYTES: usize = 16 * 1024;

/// Budgets for unread messages.
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
    /// Counts responses to a principal, and the messages before them on their streams.
    pub(super) fn answers_to(&self, principal: Principal) -> UnreadMessages {
        UnreadMessages::new(&self.answers, principal)
    }

    /// Counts messages on the standing stream of a session.
    pub(super) fn notifications_to(&self, principal: Principal) -> UnreadMessages {
        UnreadMessages::new(&self.notifications, principal)
    }
}

/// The parts of a response, counted until they are written; or the error in its place.
pub(super) fn counted_parts<const N: usize>(
    unread: &UnreadMessages,
    parts: [Bytes; N],
) -> Result<[Bytes; N], RpcError> {
    let length = parts.iter().map(Bytes::len).sum();
    if length <= MAX_UNCOUNTED_BYTES {
        return Ok(parts);
    }
    let reservation = unread.reserve(length).map_err(|_| too_much_unread(length))?;
    Ok(parts.map(|part| counted(part, &reservation)))
}
