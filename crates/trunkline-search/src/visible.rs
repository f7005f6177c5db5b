//! The documents that a caller may see.
//!
//! Hidden documents must not show: not as hits, and not by their effect on the hits of others. A
//! term that is frequent in hidden documents would lower the scores of visible ones, and a
//! correction of a misspelt word could be a word that only a hidden document has. So every number
//! that a score depends on is counted over the visible documents, and a search gives exactly what
//! it would give in an index without the hidden ones. A test compares the two.

use crate::index::{Entry, Index, Slot};
use crate::vocabulary::TermId;

/// A set of documents of one index, for repeated searches by the same caller.
///
/// Valid for the index it was made from, until that changes.
#[derive(Clone, Debug)]
pub struct Visible {
    /// One bit per slot.
    bits: Vec<u64>,
    count: usize,
    /// Number of visible documents by term; `None` if nothing is hidden.
    frequencies: Option<Box<[u32]>>,
}

impl Visible {
    /// Asks once for each document whether the caller may see it.
    pub fn new(index: &Index, mut may_see: impl FnMut(&Entry) -> bool) -> Self {
        let mut bits = vec![0; index.entries.len().div_ceil(64)];
        let mut frequencies = vec![0; index.postings.len()];
        let mut count = 0;
        for (slot, entry) in index.entries.iter().enumerate() {
            let Some(entry) = entry.as_deref().filter(|entry| may_see(entry)) else { continue };
            bits[slot / 64] |= 1 << (slot % 64);
            count += 1;
            for term in &entry.terms {
                frequencies[*term as usize] += 1;
            }
        }
        let frequencies = (count < index.len()).then(|| frequencies.into());
        Self { bits, count, frequencies }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the caller sees nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn contains(&self, slot: Slot) -> bool {
        self.bits.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }
}

/// An index with the documents of it that a search may show: all, or the visible ones.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) index: &'a Index,
    visible: Option<&'a Visible>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(index: &'a Index, visible: Option<&'a Visible>) -> Self {
        Self { index, visible }
    }

    pub(crate) fn len(self) -> usize {
        self.visible.map_or(self.index.len(), Visible::len)
    }

    /// Number of documents with a term.
    pub(crate) fn frequency(self, term: TermId) -> usize {
        match self.visible.and_then(|visible| visible.frequencies.as_deref()) {
            Some(counted) => counted.get(term as usize).copied().unwrap_or_default() as usize,
            None => self.index.postings[term as usize].len(),
        }
    }

    /// Whether a document of the index is one of them.
    pub(crate) fn contains(self, slot: Slot) -> bool {
        self.visible.is_none_or(|visible| visible.contains(slot))
    }
}
