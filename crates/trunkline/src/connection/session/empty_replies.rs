//! Counts empty replies of a session, to find out that it is dead behind a proxy that does not say so.

/// Empty replies in a row after which a session counts as dead while no other request waits in it. One may
/// be the mistake of a single tool.
const MAX_EMPTY_REPLIES_ALONE: u32 = 2;

/// Empty replies in a row after which a session counts as dead although other requests wait in it. They fail
/// with it, so that a client that calls a broken tool twice must not be enough.
const MAX_EMPTY_REPLIES: u32 = 8;

/// The empty replies since the last answer.
#[derive(Default)]
pub(super) struct EmptyReplies {
    count: u32,
}

impl EmptyReplies {
    /// Counts a reply; whether the session is dead after it.
    pub(super) fn is_last(&mut self, is_alone: bool) -> bool {
        self.count = self.count.saturating_add(1);
        self.count >= if is_alone { MAX_EMPTY_REPLIES_ALONE } else { MAX_EMPTY_REPLIES }
    }

    /// An answer came.
    pub(super) fn reset(&mut self) {
        self.count = 0;
    }
}
