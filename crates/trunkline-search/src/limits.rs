//! Limits on documents and queries, which come from servers and models and may be of any size.

/// Longest text of a query that is read; the rest is ignored.
///
/// A task description has a few hundred bytes. More is read, so that a query that quotes a document
/// still finds something, in a time that stays short.
pub const MAX_QUERY_BYTES: usize = 8 * 1024;

/// Largest number of texts in one query; the rest is ignored. Models write about three.
pub const MAX_QUERY_TEXTS: usize = 8;

/// Largest number of different terms of one text that are scored; the first ones count.
pub const MAX_QUERY_TERMS: usize = 64;

/// Largest number of clauses of one text that are scored apart.
pub const MAX_CLAUSES: usize = 8;

/// Largest number of hits of one query.
pub const MAX_HITS: usize = 100;

/// Longest field of a document that is indexed; the rest is ignored. Descriptions of real tools
/// have up to 10 kB, with the essential at the beginning.
pub const MAX_FIELD_BYTES: usize = 16 * 1024;

/// Largest number of parameters of a document that are indexed.
pub const MAX_PARAMETERS: usize = 256;

/// Largest number of values of a parameter that are indexed. Enumerations of real tools have about
/// ten; longer ones are lists of countries or time zones.
pub const MAX_PARAMETER_VALUES: usize = 64;

/// Number of levels of a schema below a parameter that are read.
pub const MAX_SCHEMA_DEPTH: usize = 4;

/// Longest word, in characters. Longer ones are encoded data, and are cut.
pub(crate) const MAX_WORD_CHARS: usize = 48;

/// The beginning of a text, at most this many bytes, cut between characters.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(beginning("abc", 8), "abc");
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("é", 1), "");
    }
}
