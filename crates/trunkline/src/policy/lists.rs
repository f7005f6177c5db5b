//! The entries of an allow or a deny list, ready to be compared with names.

use std::collections::HashSet;

use crate::name::{NamePattern, UriSpellings};

/// One list of names and patterns, in the server's own names and URIs.
#[derive(Clone, Debug, Default)]
pub(super) struct NameList {
    /// Entries without a star.
    plain: HashSet<Box<str>>,
    /// Entries with a star.
    patterns: Vec<NamePattern>,
    /// Every entry, in the order of the list.
    entries: Vec<NamePattern>,
    /// Whether an entry that cannot be read stands for everything.
    matches_all: bool,
}

/// The meaning of an entry that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadableEntry {
    /// It allows nothing.
    MatchesNothing,
    /// It denies everything.
    MatchesAll,
}

impl NameList {
    pub(super) fn of(texts: &[Box<str>], unreadable: UnreadableEntry) -> Self {
        let mut list = Self::default();
        for text in texts {
            let Ok(entry) = NamePattern::of_list(text) else {
                list.matches_all |= unreadable == UnreadableEntry::MatchesAll;
                continue;
            };
            match entry.plain_name() {
                Some(name) => {
                    list.plain.insert(name.into());
                }
                None => list.patterns.push(entry.clone()),
            }
            list.entries.push(entry);
        }
        list
    }

    /// Whether it is a list without anything in it.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.matches_all
    }

    /// Its entries, in the order of the list.
    pub(super) fn entries(&self) -> impl Iterator<Item = &NamePattern> {
        self.entries.iter()
    }

    /// Whether one of its entries is exactly this name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.plain.contains(name)
    }

    /// Whether one of its entries matches an own name.
    pub(super) fn matches(&self, own: &str) -> bool {
        self.matches_all
            || self.plain.contains(own)
            || self.patterns.iter().any(|pattern| pattern.matches(own))
    }

    /// Whether one of its entries means a URI: in any spelling, as a template that it fits, or as a pattern.
    pub(super) fn covers(&self, spellings: &UriSpellings) -> bool {
        if self.is_empty() {
            return false;
        }
        let written = spellings.written();
        let covers = |entry: &NamePattern| {
            let text = entry.as_str();
            spellings.are_equivalent(text)
                || (text.contains('{') && spellings.fit(text))
                || (entry.plain_name().is_none() && matches_any(entry, &written))
        };
        self.matches_all || self.entries.iter().any(covers)
    }

    /// Whether it allows a URI that no list names: by exactly this URI, or by a pattern that also matches
    /// its plain spelling (`x://public/../private` is not below `x://public/`).
    pub(super) fn allows_unlisted(&self, own: &str, whole: &[String]) -> bool {
        let by_pattern =
            |pattern: &NamePattern| pattern.matches(own) && matches_any(pattern, whole);
        self.names(own) || self.patterns.iter().any(by_pattern)
    }
}

/// Whether a pattern matches a spelling of a URI. Spellings are in small letters.
fn matches_any(pattern: &NamePattern, spellings: &[String]) -> bool {
    let small = pattern.in_small_letters();
    spellings.iter().any(|spelling| small.matches(spelling))
}
