//! English function words, which say nothing about a tool.

/// Sorted, for the binary search.
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as",
    "at", "be", "because", "been", "before", "being", "below", "between", "both", "but", "by",
    "can", "cannot", "could", "d", "did", "do", "does", "doing", "don", "during", "each", "else",
    "etc", "few", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here",
    "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "ll", "m", "may",
    "me", "might", "more", "most", "must", "my", "of", "on", "only", "or", "other", "our", "own",
    "please", "re", "s", "shall", "she", "should", "so", "some", "such", "t", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to",
    "too", "us", "ve", "very", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "why", "will", "with", "would", "you", "your",
];

/// Whether a lower-case word is left out of documents and queries.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("the") && is_stop_word("your") && is_stop_word("a"));
        assert!(!is_stop_word("list") && !is_stop_word(""));
    }
}
