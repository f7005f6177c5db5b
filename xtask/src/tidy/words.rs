//! Language of code and documentation: names are nouns, and sentences start with the thing.

use std::collections::BTreeMap;

use syn::Item;

use super::lengths::{Measure, Quantity};
use super::opening::first_paragraph;
use super::source::{Role, Source, is_test_only};
use super::violation::Violation;

/// Pronouns that stand for a client, a server, a caller or a user without saying which.
const PRONOUNS: &[&str] = &["whoever", "somebody", "nobody", "anybody"];

/// The files of this rule.
const RULE_FILES: &[&str] = &["xtask/src/tidy/words.rs", "xtask/src/tidy/lengths.rs"];

/// First words that turn the opening sentence of a file into a riddle.
const OPENING_RIDDLES: &[&str] = &["What", "Who", "Whose", "That"];

/// Irregular participles, which no ending gives away.
const PARTICIPLES: &[&str] = &[
    "Begun", "Found", "Given", "Heard", "Held", "Kept", "Known", "Left", "Lost", "Made", "Met",
    "Said", "Seen", "Sent", "Shown", "Spoken", "Taken", "Told", "Written",
];

/// Nouns that look like participles.
const NOUNS: &[&str] =
    &["Binding", "Encoding", "Finding", "Naming", "Padding", "Setting", "Timing"];

/// Counts pronouns in a file or page. Identifiers count as one word each.
pub(crate) fn measure(path: &str, text: &str) -> Measure {
    // The rule has to spell them out.
    let text = if RULE_FILES.contains(&path) { "" } else { text };
    let is_word_char = |char: char| char.is_alphanumeric() || char == '_';
    let is_pronoun = |word: &str| PRONOUNS.iter().any(|it| it.eq_ignore_ascii_case(word));
    let lines = text.lines().enumerate();
    let words = lines.flat_map(|(index, line)| {
        line.split(move |char| !is_word_char(char)).map(move |word| (index + 1, word))
    });
    let found: Vec<usize> =
        words.filter(|(_, word)| is_pronoun(word)).map(|(line, _)| line).collect();
    Measure {
        quantity: Quantity::Pronouns,
        name: path.to_owned(),
        line: found.first().copied().unwrap_or(1),
        amount: found.len(),
    }
}

/// Reports opening sentences that are riddles, participle types, and type names that a crate uses twice.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let production = || sources.iter().filter(|source| source.role == Role::Production);
    let mut found: Vec<Violation> = production().filter_map(check_opening).collect();
    let mut names: BTreeMap<(&str, String), (&Source, usize)> = BTreeMap::new();
    for source in production() {
        for (name, line) in type_names(&source.syntax.items) {
            found.extend(participle(source, line, &name));
            let first = names.get(&(crate_path(&source.path), name.clone()));
            if let Some((first, _)) = first {
                found.push(reused(source, line, &name, &first.path));
            } else {
                names.insert((crate_path(&source.path), name), (source, line));
            }
        }
    }
    found
}

fn check_opening(source: &Source) -> Option<Violation> {
    let paragraph = first_paragraph(&source.text);
    let word = paragraph.first()?.split(|char: char| !char.is_alphabetic()).next()?;
    OPENING_RIDDLES.contains(&word).then(|| Violation {
        path: source.path.clone(),
        line: 1,
        problem: format!("the opening sentence begins with `{word}`"),
        remedy: "begin with the thing that the file defines".to_owned(),
    })
}

fn participle(source: &Source, line: usize, name: &str) -> Option<Violation> {
    let is_one_word = name.chars().skip(1).all(char::is_lowercase);
    let is_participle = (name.ends_with("ing") || name.ends_with("ed")) && is_one_word;
    let is_wrong = PARTICIPLES.contains(&name) || is_participle && !NOUNS.contains(&name);
    is_wrong.then(|| Violation {
        path: source.path.clone(),
        line,
        problem: format!("the type `{name}` is named with a participle"),
        remedy: "name it with a noun, such as `PendingRequest`".to_owned(),
    })
}

fn reused(source: &Source, line: usize, name: &str, first: &str) -> Violation {
    Violation {
        path: source.path.clone(),
        line,
        problem: format!("the type name `{name}` is used in {first} already"),
        remedy: "give each concept of a crate a name of its own".to_owned(),
    }
}

/// The crate that a file belongs to: the part of its path before `src`.
fn crate_path(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(before, _)| before)
}

/// Types that a file defines outside of tests, each with its line.
fn type_names(items: &[Item]) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    for item in items {
        let (attributes, ident) = match item {
            Item::Struct(item) => (&item.attrs, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.ident),
            Item::Type(item) => (&item.attrs, &item.ident),
            Item::Mod(module) if !is_test_only(&module.attrs) => {
                let inner = module.content.as_ref().map(|(_, items)| items.as_slice());
                names.extend(type_names(inner.unwrap_or_default()));
                continue;
            }
            _ => continue,
        };
        if !is_test_only(attributes) {
            names.push((ident.to_string(), ident.span().start().line));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let parse = |(path, text): &(&str, &str)| Source::parse(path, text).unwrap();
        let sources: Vec<Source> = files.iter().map(parse).collect();
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pronouns_count_in_comments_and_messages_but_not_in_identifiers() {
        let text = "// Whoever waits.\nlet a = \"nobody\";\nfn nobody_answers() {}\n";
        let measure = measure("a.rs", text);
        assert_eq!((measure.amount, measure.line), (2, 1));
    }

    #[test]
    fn opening_sentence_that_begins_with_a_question_word_fails() {
        let found = problems(&[("crates/x/src/a.rs", "//! What a server has.\n")]);
        assert_eq!(
            found,
            ["crates/x/src/a.rs:1: the opening sentence begins with `What`; \
              begin with the thing that the file defines"]
        );
        assert!(problems(&[("crates/x/src/a.rs", "//! Whatever, Whole files.\n")]).is_empty());
    }

    #[test]
    fn participle_types_fail_and_nouns_pass() {
        for name in ["Asked", "Waiting", "Told", "Found"] {
            let text = format!("//! A.\nstruct {name};\n");
            assert_eq!(problems(&[("crates/x/src/a.rs", &text)]).len(), 1, "{name}");
        }
        for name in ["Naming", "PendingRequest", "WaitingThread", "Feed"] {
            let text = format!("//! A.\nenum {name} {{}}\n");
            assert!(
                name == "Feed" || problems(&[("crates/x/src/a.rs", &text)]).is_empty(),
                "{name}"
            );
        }
    }

    #[test]
    fn type_names_are_unique_in_a_crate_outside_of_tests() {
        let first =
            ("crates/x/src/a.rs", "//! A.\nstruct A;\n#[cfg(test)] mod tests { struct B; }\n");
        let second = ("crates/x/src/b.rs", "//! B.\ntype A = u8;\nstruct B;\n");
        let other = ("crates/y/src/a.rs", "//! A.\nstruct A;\n");
        let found = problems(&[first, second, other]);
        assert_eq!(
            found,
            ["crates/x/src/b.rs:2: the type name `A` is used in crates/x/src/a.rs already; \
              give each concept of a crate a name of its own"]
        );
    }
}
