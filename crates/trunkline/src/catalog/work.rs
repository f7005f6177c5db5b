//! A bound on the work of looking up a URI: lists come from servers, and URIs from clients.

use std::cell::Cell;

/// Most work of one request that looks up a URI, and of all links in one result together, in units of about
/// a nanosecond. A list of 30,000 resources of which a rule hides every one needs less; a lookup that needs
/// more finds nothing.
const MAX_LOOKUP_WORK: u64 = 8_000_000;

/// Work of one decision of the rules.
const DECISION: u64 = 256;

/// Work of the comparison with one piece of a template.
const PIECE: u64 = 16;

/// Work of one step in an index.
const STEP: u64 = 8;

/// Counts the work of lookups, and ends them when it becomes too much.
#[derive(Debug)]
pub(crate) struct LookupWork {
    limit: u64,
    spent: Cell<u64>,
}

/// A lookup needs more work than it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkExceeded;

impl Default for LookupWork {
    fn default() -> Self {
        Self::within(MAX_LOOKUP_WORK)
    }
}

impl LookupWork {
    /// Work of at most so many units.
    pub(crate) fn within(limit: u64) -> Self {
        Self { limit, spent: Cell::new(0) }
    }

    /// Work of at most so many requests.
    pub(crate) fn of_requests(count: u64) -> Self {
        Self::within(MAX_LOOKUP_WORK.saturating_mul(count))
    }

    /// Counts work before it is done.
    pub(crate) fn spend(&self, units: u64) -> Result<(), WorkExceeded> {
        let spent = self.spent.get().saturating_add(units);
        self.spent.set(spent);
        if spent > self.limit { Err(WorkExceeded) } else { Ok(()) }
    }

    /// Counts one decision of the rules.
    pub(crate) fn spend_on_decision(&self) -> Result<(), WorkExceeded> {
        self.spend(DECISION)
    }

    /// Counts one step in an index.
    pub(super) fn spend_on_step(&self) -> Result<(), WorkExceeded> {
        self.spend(STEP)
    }

    /// Counts the comparison of a text with the pieces of a template.
    pub(crate) fn spend_on_match(&self, pieces: usize, text: &str) -> Result<(), WorkExceeded> {
        // Two pieces are compared with the start and the end; others are searched for.
        let searched = if pieces > 2 { text.len() } else { 0 };
        self.spend(PIECE * pieces as u64 + searched as u64)
    }

    /// Units that were counted.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }
}
