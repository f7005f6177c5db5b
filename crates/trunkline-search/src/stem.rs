//! English stemming (Snowball "Porter2"), so that `lists`, `listed` and `listing` are one term.
//!
//! Written out instead of taken from a crate: the existing crates bring twenty languages along.

use std::borrow::Cow;

/// Shortest word that is stemmed.
const SHORTEST: usize = 3;

/// Words whose stem the rules would get wrong.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("andes", "andes"),
    ("atlas", "atlas"),
    ("bias", "bias"),
    ("cosmos", "cosmos"),
    ("early", "earli"),
    ("gently", "gentl"),
    ("howe", "howe"),
    ("idly", "idl"),
    ("news", "news"),
    ("only", "onli"),
    ("singly", "singl"),
    ("skies", "sky"),
    ("skis", "ski"),
    ("sky", "sky"),
    ("ugly", "ugli"),
];

/// Words that are left alone after the plural is removed.
const STOP_AFTER_PLURAL: &[&str] = &[
    "canning", "earring", "evening", "herring", "inning", "outing", "succeed", "proceed", "exceed",
];

/// Endings of step 2, longest first, with their replacement.
const STEP_2: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("fulness", "ful"),
    ("iveness", "ive"),
    ("ization", "ize"),
    ("ousness", "ous"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("tional", "tion"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ation", "ate"),
    ("entli", "ent"),
    ("fulli", "ful"),
    ("iviti", "ive"),
    ("ogist", "og"),
    ("ousli", "ous"),
    ("abli", "able"),
    ("alli", "al"),
    ("anci", "ance"),
    ("ator", "ate"),
    ("enci", "ence"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("ogi", "og"),
    ("li", ""),
];

/// Endings of step 3, longest first, with their replacement.
const STEP_3: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("ative", ""),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];

/// Endings that step 4 removes, longest first.
const STEP_4: &[&str] = &[
    "ement", "able", "ance", "ence", "ible", "ment", "ant", "ate", "ent", "ion", "ism", "iti",
    "ive", "ize", "ous", "al", "er", "ic",
];

/// The stem of a lower-case word; words with characters other than `a`–`z` are their own stems.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < SHORTEST || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    if let Some((_, stem)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == word) {
        return Cow::Borrowed(stem);
    }
    let stemmed = Stemmer::new(word).run();
    // The letters stay ASCII, so this never fails.
    String::from_utf8(stemmed).map_or(Cow::Borrowed(word), Cow::Owned)
}

/// A word while its endings are removed. `Y` stands for a `y` that is a consonant.
struct Stemmer {
    word: Vec<u8>,
    /// Start of the region after the first consonant that follows a vowel.
    first_region: usize,
    /// The same within the first region.
    second_region: usize,
}

impl Stemmer {
    fn new(word: &str) -> Self {
        let mut word = word.as_bytes().to_vec();
        for at in 0..word.len() {
            if word[at] == b'y' && (at == 0 || is_vowel(word[at - 1])) {
                word[at] = b'Y';
            }
        }
        let prefix =
            ["gener", "inter", "commun", "arsen", "past", "univers", "later", "emerg", "organ"]
                .iter()
                .find(|prefix| word.starts_with(prefix.as_bytes()));
        let first_region = prefix.map_or_else(|| region_after(&word, 0), |prefix| prefix.len());
        let second_region = region_after(&word, first_region);
        Self { word, first_region, second_region }
    }

    fn run(mut self) -> Vec<u8> {
        self.step_1a();
        if STOP_AFTER_PLURAL.iter().any(|word| word.as_bytes() == self.word) {
            return self.word;
        }
        self.step_1b();
        self.step_1c();
        self.replace_ending(STEP_2, Self::replaces_in_step_2);
        self.replace_ending(STEP_3, Self::replaces_in_step_3);
        self.step_4();
        self.step_5();
        self.word.iter().map(u8::to_ascii_lowercase).collect()
    }

    fn ends_with(&self, ending: &str) -> bool {
        self.word.ends_with(ending.as_bytes())
    }

    fn drop_last(&mut self, letters: usize) {
        self.word.truncate(self.word.len() - letters);
    }

    /// Whether the ending of this length lies in the first region.
    fn in_first_region(&self, letters: usize) -> bool {
        self.word.len() >= self.first_region + letters
    }

    fn in_second_region(&self, letters: usize) -> bool {
        self.word.len() >= self.second_region + letters
    }

    fn has_vowel_before(&self, letters: usize) -> bool {
        self.word[..self.word.len() - letters].iter().any(|letter| is_vowel(*letter))
    }

    /// Plurals.
    fn step_1a(&mut self) {
        if self.ends_with("sses") {
            self.drop_last(2);
        } else if self.ends_with("ied") || self.ends_with("ies") {
            self.drop_last(if self.word.len() > 4 { 2 } else { 1 });
        } else if self.ends_with("us") || self.ends_with("ss") || !self.ends_with("s") {
        } else if self.word.len() > 2 && self.has_vowel_before(2) {
            self.drop_last(1);
        }
    }

    /// Past tenses, participles and gerunds.
    fn step_1b(&mut self) {
        if let Some(ending) = ["eedly", "eed"].iter().find(|ending| self.ends_with(ending)) {
            if self.in_first_region(ending.len()) {
                self.drop_last(ending.len() - 2);
            }
            return;
        }
        let endings = ["ingly", "edly", "ing", "ed"];
        let Some(ending) = endings.iter().find(|ending| self.ends_with(ending)) else { return };
        let before = self.word.len() - ending.len();
        if *ending == "ing" && before == 2 && self.word[1] == b'y' {
            // dying, lying, tying
            self.word.truncate(1);
            self.word.extend(b"ie");
            return;
        }
        if !self.has_vowel_before(ending.len()) {
            return;
        }
        self.word.truncate(before);
        self.repair_after_step_1b();
    }

    fn repair_after_step_1b(&mut self) {
        let doubles = [b"bb", b"dd", b"ff", b"gg", b"mm", b"nn", b"pp", b"rr", b"tt"];
        if ["at", "bl", "iz"].iter().any(|ending| self.ends_with(ending)) {
            self.word.push(b'e');
        } else if doubles.iter().any(|double| self.word.ends_with(*double)) {
            let is_kept = self.word.len() == 3 && matches!(self.word[0], b'a' | b'e' | b'o');
            if !is_kept {
                self.drop_last(1);
            }
        } else if self.is_short() {
            self.word.push(b'e');
        }
    }

    /// A final `y` after a consonant becomes `i`.
    fn step_1c(&mut self) {
        let length = self.word.len();
        if length > 2
            && matches!(self.word[length - 1], b'y' | b'Y')
            && !is_vowel(self.word[length - 2])
        {
            self.word[length - 1] = b'i';
        }
    }

    /// Replaces the longest ending of a list, if it lies in the first region and may be replaced.
    fn replace_ending(&mut self, list: &[(&str, &str)], may: fn(&Self, &str) -> bool) {
        let Some((ending, other)) = list.iter().find(|(ending, _)| self.ends_with(ending)) else {
            return;
        };
        if self.in_first_region(ending.len()) && may(self, ending) {
            self.drop_last(ending.len());
            self.word.extend(other.as_bytes());
        }
    }

    fn letter_before(&self, ending: &str) -> u8 {
        self.word.len().checked_sub(ending.len() + 1).map_or(0, |at| self.word[at])
    }

    fn replaces_in_step_2(&self, ending: &str) -> bool {
        match ending {
            "ogi" => self.letter_before(ending) == b'l',
            "li" => b"cdeghkmnrt".contains(&self.letter_before(ending)),
            _ => true,
        }
    }

    fn replaces_in_step_3(&self, ending: &str) -> bool {
        ending != "ative" || self.in_second_region(ending.len())
    }

    fn step_4(&mut self) {
        let Some(ending) = STEP_4.iter().find(|ending| self.ends_with(ending)) else { return };
        let is_removed = *ending != "ion" || matches!(self.letter_before(ending), b's' | b't');
        if is_removed && self.in_second_region(ending.len()) {
            self.drop_last(ending.len());
        }
    }

    /// A final `e`, and one of two final `l`s.
    fn step_5(&mut self) {
        if self.ends_with("e") {
            let is_removed = self.in_second_region(1)
                || self.in_first_region(1) && !ends_short(&self.word[..self.word.len() - 1]);
            if is_removed {
                self.drop_last(1);
            }
        } else if self.ends_with("ll") && self.in_second_region(1) {
            self.drop_last(1);
        }
    }

    /// Whether the word is one short syllable, which gets back its final `e`: `hop(e)`.
    fn is_short(&self) -> bool {
        self.first_region >= self.word.len() && ends_short(&self.word)
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// The position after the first consonant that follows a vowel, from a position on.
fn region_after(word: &[u8], from: usize) -> usize {
    let vowel = (from..word.len()).find(|at| is_vowel(word[*at]));
    let consonant = vowel.and_then(|vowel| (vowel..word.len()).find(|at| !is_vowel(word[*at])));
    consonant.map_or(word.len(), |at| at + 1)
}

/// Whether a word ends in a short syllable.
fn ends_short(word: &[u8]) -> bool {
    match word {
        b"past" => true,
        [first, second] => is_vowel(*first) && !is_vowel(*second),
        [.., before, vowel, last] => {
            !is_vowel(*before)
                && is_vowel(*vowel)
                && !is_vowel(*last)
                && !matches!(last, b'w' | b'x' | b'Y')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (words, expected) in [
            (["list", "lists", "listed", "listing"], "list"),
            (["create", "creates", "created", "creating"], "creat"),
            (["query", "queries", "queried", "querying"], "queri"),
            (["hop", "hops", "hopped", "hopping"], "hop"),
            (["organization", "organizations", "organize", "organizing"], "organiz"),
        ] {
            for word in words {
                assert_eq!(stem(word), expected, "{word}");
            }
        }
    }

    /// Words of the test vocabulary of Snowball, one or two for each rule.
    #[test]
    fn each_rule_gives_the_stem_of_the_specification() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ties", "tie"),
            ("cries", "cri"),
            ("gas", "gas"),
            ("kiwis", "kiwi"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("luxuriated", "luxuri"),
            ("hoping", "hope"),
            ("dying", "die"),
            ("by", "by"),
            ("say", "say"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("vietnamization", "vietnam"),
            ("analogi", "analog"),
            ("hopefulness", "hope"),
            ("triplicate", "triplic"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("controlling", "control"),
            ("generate", "generat"),
            ("internal", "internal"),
            ("biologist", "biolog"),
            ("skies", "sky"),
            ("news", "news"),
            ("proceed", "proceed"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn words_of_other_scripts_and_short_words_are_their_own_stems() {
        for word in ["", "s", "is", "naïve", "базы", "s3", "検索"] {
            assert_eq!(stem(word), word);
        }
    }
}
