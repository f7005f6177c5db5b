//! "Did you mean": finds the known word closest to an unknown one.

/// Budget of one load for suggestions, in pairs of characters compared. A file with ten thousand
/// mistakes gets suggestions for the first of them and stays linear.
const WORK: usize = 2_000_000;

/// Longest word that is compared; a longer one is not a typing mistake.
const MAX_WORD_BYTES: usize = 64;

/// Returns the known word closest to an unknown one, if it is close enough to be the intended one.
pub fn closest_match<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    Suggestions::default().nearest(word, known)
}

/// Finds the closest words, within a budget.
pub(crate) struct Suggestions {
    left: usize,
}

impl Default for Suggestions {
    fn default() -> Self {
        Self { left: WORK }
    }
}

impl Suggestions {
    /// Returns the word of `known` closest to `word`, if it is close enough to be the intended one.
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
            // The one counts the length check, so that skipping has a cost too.
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
