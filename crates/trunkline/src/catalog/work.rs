//! Limits the work of looking up a URI, because lists come from servers and URIs from clients.

use std::cell::Cell;

/// Maximum work of one request that looks up a URI, and of all links in one result together, in
/// units of about a nanosecond. A list of 30,000 resources with a rule that hides all of them needs
/// less; a lookup that needs more finds nothing.
const MAX_LOOKUP_WORK: u64 = 8_000_000;

/// Work of one policy decision.
const DECISION: u64 = 256;

/// Work of the comparison with one literal of a template.
const PIECE: u64 = 16;

/// Work of one step in an index.
const STEP: u64 = 8;

/// Counts the work of lookups, and stops them at the limit.
#[derive(Debug)]
pub(crate) struct LookupWork {
    limit: u64,
    spent: Cell<u64>,
}

/// A lookup exceeded its work limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkExceeded;

impl Default for LookupWork {
    fn default() -> Self {
        Self::within(MAX_LOOKUP_WORK)
    }
}

impl LookupWork {
    /// A limit of this many units.
    pub(crate) fn within(limit: u64) -> Self {
        Self { limit, spent: Cell::new(0) }
    }

    /// The limit of this many requests together.
    pub(crate) fn of_requests(count: u64) -> Self {
        Self::within(MAX_LOOKUP_WORK.saturating_mul(count))
    }

    /// Counts work, before it is done.
    pub(crate) fn spend(&self, units: u64) -> Result<(), WorkExceeded> {
        let spent = self.spent.get().saturating_add(units);
        self.spent.set(spent);
        if spent > self.limit { Err(WorkExceeded) } else { Ok(()) }
    }

    /// Counts one policy decision.
    pub(crate) fn spend_on_decision(&self) -> Result<(), WorkExceeded> {
        self.spend(DECISION)
    }

    /// Counts one step in an index.
    pub(super) fn spend_on_step(&self) -> Result<(), WorkExceeded> {
        self.spend(STEP)
    }

    /// Counts the comparison of a string with the literals of a template.
    pub(crate) fn spend_on_match(&self, pieces: usize, text: &str) -> Result<(), WorkExceeded> {
        // Two literals are compared with the start and the end; others are searched for.
        let searched = if pieces > 2 { text.len() } else { 0 };
        self.spend(PIECE * pieces as u64 + searched as u64)
    }

    /// The units counted so far.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }
}
