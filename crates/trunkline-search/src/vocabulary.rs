//! Terms of all documents, numbered, with a look-up of similar spellings.

use std::collections::HashMap;
use std::sync::Arc;

/// Number of a term.
pub(crate) type TermId = u32;

/// Shortest term that is corrected: a letter in a shorter one makes another word.
const SHORTEST_CORRECTED: usize = 5;

/// The terms. A clone shares the texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    ids: HashMap<Arc<str>, TermId>,
    texts: Vec<Arc<str>>,
    /// Terms by their first two bytes and by their last two. One wrong letter in a term leaves
    /// one of the pairs intact.
    by_ends: HashMap<(End, [u8; 2]), Vec<TermId>>,
}

/// One end of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum End {
    First,
    Last,
}

impl Vocabulary {
    /// The number of a term, new if it is not known.
    pub(crate) fn insert(&mut self, term: &str) -> TermId {
        if let Some(id) = self.ids.get(term) {
            return *id;
        }
        let id = TermId::try_from(self.texts.len()).unwrap_or(TermId::MAX);
        let text: Arc<str> = Arc::from(term);
        self.ids.insert(Arc::clone(&text), id);
        self.texts.push(text);
        for (end, pair) in ends(term) {
            self.by_ends.entry((end, pair)).or_default().push(id);
        }
        id
    }

    /// The number of a known term.
    pub(crate) fn get(&self, term: &str) -> Option<TermId> {
        self.ids.get(term).copied()
    }

    pub(crate) fn text(&self, id: TermId) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    /// Terms that differ from a term by one letter: missing, added, other, or swapped with the
    /// next.
    pub(crate) fn similar(&self, term: &str) -> Vec<TermId> {
        if term.len() < SHORTEST_CORRECTED {
            return Vec::new();
        }
        let buckets = ends(term).filter_map(|key| self.by_ends.get(&key));
        let mut found: Vec<TermId> = buckets
            .flatten()
            .copied()
            .filter(|id| is_one_edit(term.as_bytes(), self.text(*id).as_bytes()))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The keys of a term that is long enough to be corrected, or to be a correction.
fn ends(term: &str) -> impl Iterator<Item = (End, [u8; 2])> {
    let pairs = match term.as_bytes() {
        [a, b, middle @ .., y, z] if middle.len() + 4 + 1 >= SHORTEST_CORRECTED => {
            [Some((End::First, [*a, *b])), Some((End::Last, [*y, *z]))]
        }
        _ => [None, None],
    };
    pairs.into_iter().flatten()
}

/// Whether two different texts differ by one edit.
fn is_one_edit(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short_rest, long_rest) = (&short[same..], &long[same..]);
    match long_rest.len() - short_rest.len() {
        0 => {
            let is_swapped = matches!((short_rest, long_rest),
                ([a, b, x @ ..], [c, d, y @ ..]) if a == d && b == c && x == y);
            is_swapped || !short_rest.is_empty() && short_rest[1..] == long_rest[1..]
        }
        1 => *short_rest == long_rest[1..],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_letter_is_found_anywhere() {
        let mut vocabulary = Vocabulary::default();
        let id = vocabulary.insert("weather");
        vocabulary.insert("whether or not");
        for term in ["eather", "wether", "weathr", "weathe", "waether", "weatehr", "xweather"] {
            assert_eq!(vocabulary.similar(term), [id], "{term}");
        }
        for term in ["weather", "wethr", "wea", "", "w", "другое"] {
            assert!(vocabulary.similar(term).is_empty(), "{term}");
        }
    }

    #[test]
    fn terms_keep_their_numbers() {
        let mut vocabulary = Vocabulary::default();
        assert_eq!(vocabulary.insert("a"), 0);
        assert_eq!(vocabulary.insert("b"), 1);
        assert_eq!(vocabulary.insert("a"), 0);
        assert_eq!(vocabulary.get("b"), Some(1));
        assert_eq!((vocabulary.text(1), vocabulary.text(7)), ("b", ""));
    }
}
