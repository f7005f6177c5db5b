//! Suggestions for mistyped words.

/// The candidate closest to `word`, unless all are too different.
pub(crate) fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let most_slips = word.len() / 2;
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(slips, _)| *slips <= most_slips)
        .min()
        .map(|(_, candidate)| candidate)
}

/// An error message for an unknown word.
pub(crate) fn unknown(kind: &str, word: &str, candidates: &[&str]) -> String {
    let meant = closest(word, candidates)
        .map(|candidate| format!("did you mean `{candidate}`? "))
        .unwrap_or_default();
    format!("unknown {kind} `{word}`; {meant}there are: {}", candidates.join(", "))
}

/// Levenshtein distance, one row of the table at a time.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, to) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_in_slips() {
        assert_eq!(distance("test", "test"), 0);
        assert_eq!(distance("tset", "test"), 2);
        assert_eq!(distance("", "tidy"), 4);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let candidates = ["test", "tidy", "clippy"];
        assert_eq!(closest("clipy", &candidates), Some("clippy"));
        assert_eq!(closest("deploy", &candidates), None);
        assert_eq!(
            unknown("step", "tdy", &["tidy", "test"]),
            "unknown step `tdy`; did you mean `tidy`? there are: tidy, test"
        );
    }
}
