//! The documents that a caller may see.
//!
//! Hidden documents must not show: not as hits, and not by their effect on the hits of others. A
//! term that is frequent in hidden documents would lower the scores of visible ones, and a
//! correction of a misspelt word could be a word that only a hidden document has. So every number
//! that a score depends on is counted over the visible documents, and a search gives exactly what
//! it would give in an index without the hidden ones. A test compares the two.

use crate::index::{Entry, Index, Occurrence, Slot};

/// A set of documents of one index, for repeated searches by the same caller.
///
/// Valid for the index it was made from, until that changes.
#[derive(Clone, Debug)]
pub struct Visible {
    /// One bit per slot.
    bits: Vec<u64>,
    count: usize,
}

impl Visible {
    /// Asks once for each document whether the caller may see it.
    pub fn new(index: &Index, mut may_see: impl FnMut(&Entry) -> bool) -> Self {
        let mut bits = vec![0; index.entries.len().div_ceil(64)];
        let mut count = 0;
        for (slot, entry) in index.entries.iter().enumerate() {
            if entry.as_deref().is_some_and(&mut may_see) {
                bits[slot / 64] |= 1 << (slot % 64);
                count += 1;
            }
        }
        Self { bits, count }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the caller sees nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn contains(&self, slot: Slot) -> bool {
        self.bits.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }
}

/// All documents, or some.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    All(usize),
    Some(&'a Visible),
}

impl Scope<'_> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::All(count) => count,
            Self::Some(visible) => visible.len(),
        }
    }

    /// Number of postings of visible documents.
    pub(crate) fn count(self, postings: &[Occurrence]) -> usize {
        match self {
            Self::All(_) => postings.len(),
            Self::Some(visible) => {
                postings.iter().filter(|posting| visible.contains(posting.slot)).count()
            }
        }
    }

    pub(crate) fn contains(self, slot: Slot) -> bool {
        match self {
            Self::All(_) => true,
            Self::Some(visible) => visible.contains(slot),
        }
    }
}
