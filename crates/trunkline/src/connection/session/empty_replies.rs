//! Counts empty replies of a session, to detect a dead session behind a proxy that does not report
//! it.

/// Consecutive empty replies after which a session counts as dead while no other request is
/// pending. One may be the mistake of a single tool.
const MAX_EMPTY_REPLIES_ALONE: u32 = 2;

/// Consecutive empty replies after which a session counts as dead although other requests are
/// pending. Those fail with it, so that two calls of a broken tool must not be enough.
const MAX_EMPTY_REPLIES: u32 = 8;

/// Number of empty replies since the last response.
#[derive(Default)]
pub(super) struct EmptyReplies {
    count: u32,
}

impl EmptyReplies {
    /// Counts an empty reply. Returns whether the session is dead.
    pub(super) fn is_last(&mut self, is_alone: bool) -> bool {
        self.count = self.count.saturating_add(1);
        self.count >= if is_alone { MAX_EMPTY_REPLIES_ALONE } else { MAX_EMPTY_REPLIES }
    }

    /// Resets the count after a response.
    pub(super) fn reset(&mut self) {
        self.count = 0;
    }
}
