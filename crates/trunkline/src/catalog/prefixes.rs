//! An index of strings by prefix: finds those that another string starts with, without a scan.

use super::work::{LookupWork, WorkExceeded};

/// An index of strings that are stored elsewhere, by their positions there.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixIndex {
    /// Positions, in the order of their strings.
    sorted: Box<[u32]>,
    /// For each of them, the nearest one before it that is its prefix.
    parents: Box<[Option<u32>]>,
}

impl PrefixIndex {
    pub(super) fn new<'t>(count: usize, text: impl Fn(u32) -> &'t str) -> Self {
        let mut sorted: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
        sorted.sort_unstable_by_key(|place| text(*place));
        let mut parents = Vec::with_capacity(sorted.len());
        // The prefixes of the last string, including itself; the longest is at the end.
        let mut open: Vec<(u32, &str)> = Vec::new();
        for (at, place) in (0..).zip(&sorted) {
            let text = text(*place);
            while open.last().is_some_and(|(_, shorter)| !text.starts_with(shorter)) {
                open.pop();
            }
            parents.push(open.last().map(|(parent, _)| *parent));
            open.push((at, text));
        }
        Self { sorted: sorted.into(), parents: parents.into() }
    }

    /// The positions of all strings that are a prefix of this one.
    pub(super) fn prefixes<'t>(
        &self,
        wanted: &str,
        text: impl Fn(u32) -> &'t str,
        work: &LookupWork,
    ) -> Result<Vec<u32>, WorkExceeded> {
        work.spend(wanted.len() as u64)?;
        let after = self.sorted.partition_point(|place| text(*place) <= wanted);
        let Some(last) = after.checked_sub(1) else { return Ok(Vec::new()) };
        // Every prefix of `wanted` is the last string that does not sort after it, or an ancestor
        // of that one; an ancestor is a prefix of both up to the length of their common start.
        let nearest = self.sorted.get(last).map_or("", |place| text(*place));
        let common = nearest.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
        let mut found = Vec::new();
        let mut next = Some(last);
        while let Some(at) = next {
            work.spend_on_step()?;
            let place = self.sorted.get(at).copied();
            found.extend(place.filter(|place| text(*place).len() <= common));
            next = self.parents.get(at).copied().flatten().map(|parent| parent as usize);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn index_equals_linear_search(
            texts in proptest::collection::vec("[abé]{0,5}", 0..12), wanted in "[abé]{0,7}",
        ) {
            let text = |place: u32| &*texts[place as usize];
            let index = PrefixIndex::new(texts.len(), text);
            let mut found = index.prefixes(&wanted, text, &LookupWork::default()).unwrap();
            found.sort_unstable();
            let is_start = |place: &u32| wanted.starts_with(text(*place));
            let expected: Vec<_> = (0..u32::try_from(texts.len()).unwrap()).filter(is_start).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
