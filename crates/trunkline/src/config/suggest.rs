//! "Did you mean": the nearest known word to one that is not known.

/// Work one load may spend on suggestions, in pairs of characters compared. A file with ten thousand
/// slips gets suggestions for the first of them and stays linear.
const WORK: usize = 2_000_000;

/// Longest word that is compared; a slip in a longer one is not what happened.
const MAX_WORD_BYTES: usize = 64;

/// The nearest of some known words to one that is not known, if one is near enough to be what was
/// meant.
pub fn closest_match<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    Suggestions::default().nearest(word, known)
}

/// Finds near words, within a budget.
pub(crate) struct Suggestions {
    left: usize,
}

impl Default for Suggestions {
    fn default() -> Self {
        Self { left: WORK }
    }
}

impl Suggestions {
    /// The nearest of `known` to `word`, if one is near enough to be what was meant.
    pub(crate) fn nearest<'k>(
        &mut self,
        word: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Option<&'k str> {
        if word.len() > MAX_WORD_BYTES {
            return None;
        }
        let folded = folded(word);
        let slips_allowed = (word.chars().count() / 3).max(1);
        let mut best: Option<(usize, &str)> = None;
        for candidate in known {
            // One for the look at it, so that skipping is not free either.
            let is_near = candidate.len().abs_diff(word.len()) <= slips_allowed * 4;
            let work = 1 + if is_near { candidate.len() * word.len() } else { 0 };
            let Some(left) = self.left.checked_sub(work) else { break };
            self.left = left;
            if !is_near {
                continue;
            }
            let slips = strsim::osa_distance(&folded, &self::folded(candidate));
            if slips <= slips_allowed && best.is_none_or(|(fewest, _)| slips < fewest) {
                best = Some((slips, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }
}

/// How many slips lead from a known word to another.
pub(crate) fn slips(word: &str, known: &str) -> usize {
    strsim::osa_distance(&folded(word), &folded(known))
}

/// Case and the choice between `-`, `_` and nothing are not what tells words apart.
fn folded(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_case_and_separators_are_forgiven_and_other_words_are_not() {
        let known = ["command", "cwd", "streamable-http", "headers"];
        let mut suggestions = Suggestions::default();
        let mut nearest = |word| suggestions.nearest(word, known.iter().copied());
        assert_eq!(nearest("comand"), Some("command"));
        assert_eq!(nearest("STREAMABLE_HTTP"), Some("streamable-http"));
        assert_eq!(nearest("haeders"), Some("headers"));
        assert_eq!(nearest("banana"), None);
    }

    #[test]
    fn the_budget_ends_the_search() {
        let mut suggestions = Suggestions { left: 2 };
        assert_eq!(suggestions.nearest("a", ["b", "a"].into_iter()), Some("b"));
        assert_eq!(suggestions.nearest("a", ["a"].into_iter()), None);
    }
}
