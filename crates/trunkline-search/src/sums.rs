//! Scores by words: sums over the postings of the terms of a text.
//!
//! Documents are scored in windows of slots, whose sums stay in the fastest cache. Nothing is
//! allocated or visited per document of the index: a search keeps only the best ones.

use std::cmp::Ordering;

use crate::index::{Index, Occurrence, Slot};
use crate::query::QueryTerm;

/// Number of slots that are scored together: 16 kB of sums.
const WINDOW: usize = 4_096;

/// Number of neighbouring sums that are compared with the least one at once.
const GROUP: usize = 16;

/// The sum of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) slot: Slot,
    pub(crate) score: f32,
}

/// The documents with the highest sums, found window by window.
struct BestSums {
    most: usize,
    /// Sums up to this one are not among the best. Sums that count are above 0.
    least: f32,
    found: Vec<Sum>,
}

impl Index {
    /// The sums of given documents, which are sorted by slot; 0 for those without a term.
    pub(crate) fn sums_of(&self, slots: &[Slot], terms: &[QueryTerm]) -> Vec<f32> {
        let mut rest = slots;
        let mut scores = Vec::with_capacity(slots.len());
        self.for_each_window(terms, |first, sums| {
            let end = first as usize + WINDOW;
            let count = rest.partition_point(|slot| (*slot as usize) < end);
            let (inside, after) = rest.split_at(count);
            scores.extend(inside.iter().map(|slot| sums[*slot as usize % WINDOW]));
            rest = after;
        });
        scores
    }

    /// The documents with the highest sums above 0 among those that are wanted, sorted by slot.
    pub(crate) fn best_sums(
        &self,
        terms: &[QueryTerm],
        most: usize,
        is_wanted: impl Fn(Slot) -> bool,
    ) -> Vec<Sum> {
        let mut best = BestSums { most, least: 0.0, found: Vec::with_capacity(4 * most) };
        self.for_each_window(terms, |first, sums| best.add(first, sums, &is_wanted));
        best.finish()
    }

    /// Calls a function with the first slot of each window and the sums of the window.
    fn for_each_window(&self, terms: &[QueryTerm], mut visit: impl FnMut(Slot, &[f32; WINDOW])) {
        let postings =
            |term: &QueryTerm| (term.weight, self.postings[term.term as usize].as_slice());
        let mut lists: Vec<(f32, &[Occurrence])> = terms.iter().map(postings).collect();
        let mut sums = [0.0; WINDOW];
        for first in (0..self.entries.len()).step_by(WINDOW) {
            sums.fill(0.0);
            for (weight, rest) in &mut lists {
                let end = first + WINDOW;
                let count = rest.partition_point(|posting| (posting.slot as usize) < end);
                let (inside, after) = rest.split_at(count);
                for posting in inside {
                    sums[posting.slot as usize % WINDOW] += *weight * posting.weight;
                }
                *rest = after;
            }
            visit(first as Slot, &sums);
        }
    }
}

impl BestSums {
    fn add(&mut self, first: Slot, sums: &[f32; WINDOW], is_wanted: &impl Fn(Slot) -> bool) {
        for (number, group) in sums.chunks_exact(GROUP).enumerate() {
            // Most groups have none. Without an early end, this is a few vector instructions.
            if !group.iter().fold(false, |any, score| any | (*score > self.least)) {
                continue;
            }
            let first = first + (number * GROUP) as Slot;
            for (slot, score) in (first..).zip(group) {
                if *score > self.least && is_wanted(slot) {
                    self.found.push(Sum { slot, score: *score });
                }
            }
            if self.found.len() + GROUP > 4 * self.most {
                self.drop_rest();
            }
        }
    }

    /// Drops all but the best. Of equal sums, those of the first slots are kept.
    fn drop_rest(&mut self) {
        let last = self.most.saturating_sub(1);
        if self.found.len() > self.most {
            let (_, least, _) = self.found.select_nth_unstable_by(last, Sum::compare);
            self.least = least.score;
            self.found.truncate(self.most);
        }
    }

    fn finish(mut self) -> Vec<Sum> {
        self.drop_rest();
        self.found.sort_unstable_by_key(|sum| sum.slot);
        self.found
    }
}

impl Sum {
    fn compare(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.slot.cmp(&other.slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::query::query_terms;
    use crate::visible::Scope;

    const WORDS: [&str; 5] = ["list", "issue", "repository", "branch", "commit"];

    /// Documents in several windows; document `number` has some of the words, by its number.
    fn index() -> Index {
        let documents = (0..2 * WINDOW + 100).map(|number| {
            let bits = number * 7919 % 1009;
            let has = |(at, word): (usize, &&'static str)| (bits >> at & 1 == 1).then_some(*word);
            let words: Vec<&str> = WORDS.iter().enumerate().filter_map(has).collect();
            Document {
                key: number.to_string(),
                description: words.join(" "),
                ..Document::default()
            }
        });
        Index::build(documents)
    }

    #[test]
    fn the_best_of_several_windows_are_found() {
        let index = index();
        let terms = query_terms(Scope::new(&index, None), "list issue branch");
        let slots: Vec<Slot> = index.slots().collect();
        let sums = index.sums_of(&slots, &terms);
        let is_wanted = |slot: Slot| slot % 3 != 1;
        let all = slots.into_iter().zip(sums).map(|(slot, score)| Sum { slot, score });
        let mut expected: Vec<Sum> =
            all.filter(|sum| sum.score > 0.0 && is_wanted(sum.slot)).collect();
        expected.sort_by(Sum::compare);
        for most in [0, 1, 10, 256, 100_000] {
            let mut found = index.best_sums(&terms, most, is_wanted);
            assert!(found.is_sorted_by_key(|sum| sum.slot));
            found.sort_by(Sum::compare);
            let count = most.min(expected.len());
            assert_eq!(found, expected[..count], "{most}");
        }
    }

    #[test]
    fn sums_do_not_depend_on_the_other_documents_asked_for() {
        let index = index();
        let terms = query_terms(Scope::new(&index, None), "commit repository");
        let slots: Vec<Slot> = index.slots().collect();
        let all = index.sums_of(&slots, &terms);
        let few = [3, WINDOW as Slot - 1, WINDOW as Slot, 2 * WINDOW as Slot + 99];
        let expected = few.map(|slot| all[slot as usize]);
        assert_eq!(index.sums_of(&few, &terms), expected);
        assert!(index.sums_of(&slots, &[]).iter().all(|sum| *sum == 0.0));
    }
}
