//! Words of a text: identifiers are split, letters are lower-case, scripts without spaces give
//! pairs of characters.

use crate::limits::MAX_WORD_CHARS;
use crate::stem::stem;
use crate::stop_words::is_stop_word;

/// Shortest clause, in bytes: shorter ones are exclamations.
const SHORTEST_CLAUSE: usize = 6;

/// Scripts that are written without spaces, or with few. Pairs of neighbouring characters stand
/// for their words.
const UNSPACED: &[(char, char)] = &[
    ('\u{0e00}', '\u{0eff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{3040}', '\u{30ff}'),
    ('\u{31f0}', '\u{31ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{ac00}', '\u{d7af}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{ff66}', '\u{ff9f}'),
    ('\u{20000}', '\u{3ffff}'),
];

/// Calls a function with every word of a text, in lower case, stop words included.
///
/// `getUserByID`, `get_user_by_id` and "Get user by ID" have the same words.
pub(crate) fn for_each_word(text: &str, mut visit: impl FnMut(&str)) {
    let mut run = Vec::with_capacity(MAX_WORD_CHARS);
    let mut word = String::new();
    for char in text.chars() {
        if char.is_alphanumeric() {
            run.push(char);
        } else if !is_apostrophe(char) || run.is_empty() {
            visit_run(&run, &mut word, &mut visit);
            run.clear();
        }
        if run.len() == MAX_WORD_CHARS {
            visit_run(&run, &mut word, &mut visit);
            run.clear();
        }
    }
    visit_run(&run, &mut word, &mut visit);
}

/// Calls a function with every term of a text: the stems of its words without stop words.
pub(crate) fn for_each_term(text: &str, mut visit: impl FnMut(&str)) {
    for_each_word(text, |word| {
        if !is_stop_word(word) {
            visit(&stem(word));
        }
    });
}

/// Calls a function with every word of a text that has only stop words, such as the name `who`.
pub(crate) fn for_each_word_of_stop_words(text: &str, visit: impl FnMut(&str)) {
    let mut has_only_stop_words = true;
    for_each_word(text, |word| has_only_stop_words &= is_stop_word(word));
    if has_only_stop_words {
        for_each_word(text, visit);
    }
}

/// The sentences and clauses of a text, if there are several; the last ones are one if there are
/// too many.
///
/// Marks end a clause only before a space, so that numbers, file names and URLs stay whole.
pub(crate) fn clauses(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let is_before_space = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        let is_end = match char {
            '.' | ',' | ';' | ':' | '!' | '?' => is_before_space,
            '\n' | '。' | '、' | '！' | '？' => true,
            _ => false,
        };
        if is_end && parts.len() + 1 < most {
            parts.extend(text.get(start..at).filter(|part| part.len() >= SHORTEST_CLAUSE));
            start = at + char.len_utf8();
        }
    }
    parts.extend(text.get(start..).filter(|part| part.len() >= SHORTEST_CLAUSE));
    parts
}

fn is_apostrophe(char: char) -> bool {
    matches!(char, '\'' | '’')
}

/// Visits the words of a run of letters and digits.
fn visit_run(run: &[char], word: &mut String, visit: &mut impl FnMut(&str)) {
    let mut rest = run;
    while !rest.is_empty() {
        let unspaced = rest.iter().take_while(|char| is_unspaced(**char)).count();
        if unspaced > 0 {
            let (pairs, after) = rest.split_at(unspaced);
            for pair in pairs.windows(2.min(unspaced)) {
                visit_word(pair, word, visit);
            }
            rest = after;
        } else {
            let (part, after) = rest.split_at(first_part(rest));
            visit_word(part, word, visit);
            rest = after;
        }
    }
}

fn visit_word(chars: &[char], word: &mut String, visit: &mut impl FnMut(&str)) {
    word.clear();
    for char in chars {
        match char.is_ascii() {
            true => word.push(char.to_ascii_lowercase()),
            false => word.extend(char.to_lowercase().map(without_accent)),
        }
    }
    visit(word);
}

fn is_unspaced(char: char) -> bool {
    // Most characters are below all of them.
    char >= '\u{0e00}' && UNSPACED.iter().any(|(first, last)| (*first..=*last).contains(&char))
}

/// Length of the first word of a run: `parse` of `parseJSONFile`, then `JSON`, then `File`.
fn first_part(run: &[char]) -> usize {
    let is_boundary = |at: usize| {
        let (before, char) = (run[at - 1], run[at]);
        let starts_word = char.is_uppercase() && !before.is_uppercase();
        let next = run.get(at + 1);
        let ends_acronym = before.is_uppercase()
            && char.is_uppercase()
            && next.is_some_and(|next| next.is_lowercase())
            && !is_plural_of_acronym(&run[at + 1..]);
        starts_word || ends_acronym || is_unspaced(char)
    };
    (1..run.len()).find(|at| is_boundary(*at)).unwrap_or(run.len())
}

/// Whether the letters after an acronym are its plural: the `s` of `URLs`.
fn is_plural_of_acronym(after: &[char]) -> bool {
    matches!(after, ['s'] | ['s', '0'..='9' | 'A'..='Z', ..])
}

/// The letter without its accent, for the letters of Western European languages.
fn without_accent(char: char) -> char {
    match char {
        'à'..='å' => 'a',
        'ç' => 'c',
        'è'..='ë' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' | 'ø' => 'o',
        'ù'..='ü' => 'u',
        'ý' | 'ÿ' => 'y',
        _ => char,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for_each_word(text, |word| found.push(word.to_owned()));
        found
    }

    #[test]
    fn identifiers_are_split_in_every_style() {
        for text in ["getUserById", "get_user_by_id", "GET-USER-BY-ID", "Get user by ID."] {
            assert_eq!(words(text), ["get", "user", "by", "id"], "{text}");
        }
        assert_eq!(words("parseJSONFile2HTML"), ["parse", "json", "file2", "html"]);
        assert_eq!(words("listURLs"), ["list", "urls"]);
        assert_eq!(words("IDs of APIs"), ["ids", "of", "apis"]);
        assert_eq!(words("s3.list/base64"), ["s3", "list", "base64"]);
    }

    #[test]
    fn apostrophes_and_accents_do_not_split_words() {
        assert_eq!(words("user's 'café'"), ["users", "cafe"]);
        assert_eq!(words("Größe"), ["große"]);
    }

    #[test]
    fn clauses_end_at_marks_before_a_space() {
        let text = "Read v1.2 of a.txt, then mail it. OK? Finally: delete it";
        let expected = ["Read v1.2 of a.txt", " then mail it", " Finally", " delete it"];
        assert_eq!(clauses(text, 8), expected);
        assert_eq!(
            clauses(text, 2),
            ["Read v1.2 of a.txt", " then mail it. OK? Finally: delete it"]
        );
        assert!(clauses("", 8).is_empty());
        assert_eq!(clauses("天気を検索。予定を追加", 8).len(), 2);
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(words("天気予報を検索"), ["天気", "気予", "予報", "報を", "を検", "検索"]);
        assert_eq!(words("雨"), ["雨"]);
        assert_eq!(words("GitHub検索tool"), ["git", "hub", "検索", "tool"]);
        assert_eq!(words("поиск файлов"), ["поиск", "файлов"]);
    }

    #[test]
    fn terms_are_stems_without_stop_words() {
        let mut found = Vec::new();
        for_each_term("Lists all of the repositories", |term| found.push(term.to_owned()));
        assert_eq!(found, ["list", "repositori"]);
    }

    #[test]
    fn long_runs_are_cut_and_controls_separate() {
        assert_eq!(words(&"a".repeat(100)).len(), 3);
        assert_eq!(words("a\0b\u{1b}[31mc\u{202e}d"), ["a", "b", "31mc", "d"]);
        assert!(words("").is_empty());
        assert!(words("\u{0}\n \u{fffd}").is_empty());
    }
}
