//! Patterns of names: `*` matches any characters, `!` excludes, the last match decides (TOOL-6).

use std::fmt;

use super::scheme::scheme;

/// One pattern of exposed names.
///
/// ```
/// use trunkline::name::NamePattern;
///
/// let pattern = NamePattern::new("!web_*").unwrap();
/// assert!(pattern.excludes());
/// assert!(pattern.matches("web_search") && !pattern.matches("my_web_search"));
/// assert!(NamePattern::new("web_?").unwrap_err().to_string().contains("`*`"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    text: Box<str>,
    excludes: bool,
    pieces: PatternPieces,
}

/// A Bloom filter of the pairs of adjacent characters in a string. Most patterns that do not match
/// a name have a pair that the name lacks, and comparing the sets is cheap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CharacterPairs(u128);

impl CharacterPairs {
    pub(crate) fn of(text: &str) -> Self {
        let pair = |pair: &[u8]| {
            let number = u64::from(pair[0]) << 8 | u64::from(pair[1]);
            // The upper bits of a product with an odd constant are well mixed.
            1 << (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57)
        };
        Self(text.as_bytes().windows(2).map(pair).fold(0, |all, bit: u128| all | bit))
    }

    /// Whether a string with these pairs may contain one with the other pairs.
    pub(crate) fn may_hold(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }
}

/// The literals between the stars of a pattern; one literal if there is no star.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternPieces(Vec<Box<str>>);

impl PatternPieces {
    pub(crate) fn new<'p>(pieces: impl IntoIterator<Item = &'p str>) -> Self {
        let pieces: Vec<&str> = pieces.into_iter().collect();
        let last = pieces.len().saturating_sub(1);
        // An empty literal in the middle matches anywhere; templates of a server may have
        // thousands.
        let is_kept =
            |(place, piece): &(usize, &str)| *place == 0 || *place == last || !piece.is_empty();
        let kept = pieces.into_iter().enumerate().filter(is_kept);
        Self(kept.map(|(_, piece)| piece.into()).collect())
    }

    pub(crate) fn pairs(&self) -> CharacterPairs {
        CharacterPairs(self.0.iter().fold(0, |all, piece| all | CharacterPairs::of(piece).0))
    }

    /// The prefix of every string that matches.
    pub(crate) fn start(&self) -> &str {
        self.0.first().map_or("", |first| first)
    }

    /// The number of literals.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The total length of the literals, in bytes.
    pub(crate) fn given(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }

    /// Whether a string with this prefix may match.
    pub(crate) fn may_match(&self, start: &str) -> bool {
        match &*self.0 {
            [] => false,
            [whole] => whole.starts_with(start),
            [first, ..] => first.starts_with(start) || start.starts_with(&**first),
        }
    }

    /// Whether a string contains all literals in their order, the first at its start and the last
    /// at its end.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        let Some((last, middle)) = rest.split_last() else { return **first == *text };
        // Skips empty literals: comparing through a dangling pointer was the slowest step here.
        let after = if first.is_empty() { Some(text) } else { text.strip_prefix(&**first) };
        let Some(mut text) = after else { return false };
        // A string shorter than all literals together cannot match, so a template of a thousand
        // literals is not searched for.
        if !middle.is_empty() && self.given() > first.len() + text.len() {
            return false;
        }
        for piece in middle {
            // The first occurrence is the best one: it leaves the most for the literals that
            // follow.
            let Some((_, after)) = text.split_once(&**piece) else { return false };
            text = after;
        }
        last.is_empty() || text.ends_with(&**last)
    }
}

/// The reason why a string is not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPattern {
    /// It is empty.
    Empty,
    /// It contains a `?`.
    QuestionMark,
    /// It contains two stars in a row.
    DoubleStar,
    /// It contains a `!` that is not at its start, or two of them.
    Exclamation,
    /// It contains a `!`, in a list that has no exclusions.
    Exclusion,
    /// It begins or ends with white space.
    WhiteSpace,
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a pattern cannot be empty",
            Self::QuestionMark => {
                "`?` does not stand for one character here; `*` stands for any characters"
            }
            Self::DoubleStar => {
                "`**` means nothing here, because names have no folders; `*` stands for any characters"
            }
            Self::Exclamation => "`!` can only stand once, at the start of a pattern",
            Self::Exclusion => {
                "`!` means nothing in this list; `denyTools` takes away, `allowTools` allows"
            }
            Self::WhiteSpace => "remove the white space before and after the name",
        })
    }
}

impl std::error::Error for InvalidPattern {}

impl NamePattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let text = text.trim();
        let (excludes, body) = match text.strip_prefix('!') {
            Some(body) => (true, body.trim_start()),
            None => (false, text),
        };
        if body.is_empty() {
            Err(InvalidPattern::Empty)
        } else if body.contains('?') {
            Err(InvalidPattern::QuestionMark)
        } else if body.contains("**") {
            Err(InvalidPattern::DoubleStar)
        } else if body.contains('!') {
            Err(InvalidPattern::Exclamation)
        } else {
            let pieces = PatternPieces::new(body.split('*'));
            Ok(Self { text: text.into(), excludes, pieces })
        }
    }

    /// Parses an entry of `allowTools` or `denyTools`: the upstream name of a tool or prompt, or
    /// the URI or URI template of a resource. `*` matches any characters; there are no exclusions.
    ///
    /// ```
    /// use trunkline::name::NamePattern;
    ///
    /// assert!(NamePattern::of_list("read_*").unwrap().matches("read_file"));
    /// assert!(NamePattern::of_list("docs://pages?draft=1").is_ok());
    /// for mistake in ["", " read", "!read", "read?", "**"] {
    ///     assert!(NamePattern::of_list(mistake).is_err(), "{mistake}");
    /// }
    /// ```
    pub fn of_list(text: &str) -> Result<Self, InvalidPattern> {
        if text.trim() != text {
            return Err(InvalidPattern::WhiteSpace);
        }
        if text.contains("**") {
            return Err(InvalidPattern::DoubleStar);
        }
        // `?` and `!` are ordinary characters of a URI.
        if is_uri(text) {
            let pieces = PatternPieces::new(text.split('*'));
            return Ok(Self { text: text.into(), excludes: false, pieces });
        }
        match text.contains('!') {
            true => Err(InvalidPattern::Exclusion),
            false => Self::new(text),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it excludes the names that it matches.
    pub fn excludes(&self) -> bool {
        self.excludes
    }

    /// The only name that it matches, if it has no star.
    pub fn plain_name(&self) -> Option<&str> {
        match &*self.pieces.0 {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The character pairs of every name that it matches.
    pub(crate) fn pairs(&self) -> CharacterPairs {
        self.pieces.pairs()
    }

    /// Whether it may match a name with this prefix.
    pub(crate) fn may_match(&self, start: &str) -> bool {
        self.pieces.may_match(start)
    }

    /// Whether it matches a name.
    pub fn matches(&self, name: &str) -> bool {
        self.pieces.matches(name)
    }

    /// Whether a list entry is a URI or a URI template, and not the name of a tool or a prompt.
    pub(crate) fn is_uri(&self) -> bool {
        is_uri(&self.text)
    }

    /// The pattern in lowercase, for comparison with spellings of URIs.
    pub(crate) fn in_small_letters(&self) -> Self {
        let pieces =
            PatternPieces(self.pieces.0.iter().map(|it| it.to_lowercase().into()).collect());
        Self { text: self.text.to_lowercase().into(), excludes: self.excludes, pieces }
    }
}

/// Whether a string is a URI or a URI template.
fn is_uri(text: &str) -> bool {
    text.contains('{') || scheme(text).is_some()
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamePattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn stars_stand_for_any_characters_and_plain_names_for_themselves() {
        assert!(matches("*", "a") && matches("a*", "a") && matches("*a", "a"));
        assert!(matches("a*b*c", "abc") && matches("a*b*c", "a1b2b3c"));
        assert!(!matches("a*b*c", "acb") && !matches("ab*ba", "aba"));
        assert!(matches("grep", "grep") && !matches("grep", "grep2") && !matches("grep", "gre"));
    }

    #[test]
    fn pattern_syntax_of_other_hosts_is_explained() {
        for (text, expected) in [
            ("web_?", InvalidPattern::QuestionMark),
            ("src/**", InvalidPattern::DoubleStar),
            ("!", InvalidPattern::Empty),
            (" ", InvalidPattern::Empty),
            ("!!a", InvalidPattern::Exclamation),
        ] {
            assert_eq!(NamePattern::new(text), Err(expected), "{text}");
        }
    }

    /// A reference implementation of matching.
    fn slowly(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                (0..=name.len()).any(|skipped| slowly(rest, &name[skipped..]))
            }
            (Some((expected, pattern)), Some((found, name))) if expected == found => {
                slowly(pattern, name)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_its_meaning(pattern in "(a|b|ab|\\*a|\\*b){1,5}\\*?", name in "[ab]{0,8}") {
            let expected = slowly(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches(&pattern, &name), expected);
            let pairs = NamePattern::new(&pattern).unwrap().pairs();
            prop_assert!(!expected || CharacterPairs::of(&name).may_hold(pairs));
            let parsed = NamePattern::new(&pattern).unwrap();
            let may_match = (0..=name.len()).all(|end| parsed.may_match(name.get(..end).unwrap()));
            prop_assert!(!expected || may_match);
        }
    }
}
