//! Checks that every file opens with a sentence on its purpose.

use super::source::Source;
use super::violation::Violation;

/// Reports a file without an opening sentence, or with one without a full stop.
pub(crate) fn check(source: &Source) -> Option<Violation> {
    let paragraph = first_paragraph(&source.text);
    let problem = match paragraph.last() {
        None => "does not open with a `//!` sentence",
        Some(last) if !last.ends_with('.') => {
            "the opening `//!` paragraph ends without a full stop"
        }
        Some(_) => return None,
    };
    Some(Violation {
        path: source.path.clone(),
        line: paragraph.len().max(1),
        problem: problem.to_owned(),
        remedy: "say in one sentence what the file is for".to_owned(),
    })
}

/// Lines of the `//!` paragraph that a file opens with.
pub(super) fn first_paragraph(text: &str) -> Vec<&str> {
    text.lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Option<String> {
        let source = Source::parse("crates/x/src/a.rs", text).unwrap();
        check(&source).map(|violation| violation.to_string())
    }

    #[test]
    fn a_sentence_passes_even_over_two_lines() {
        assert_eq!(problem("//! One sentence.\n"), None);
        assert_eq!(problem("//! One sentence\n//! on two lines.\n//!\n//! More"), None);
    }

    #[test]
    fn a_file_without_a_sentence_fails() {
        let expected = "crates/x/src/a.rs:1: does not open with a `//!` sentence; \
                        say in one sentence what the file is for";
        assert_eq!(problem("use std::fs;\n").unwrap(), expected);
        assert_eq!(problem("\n//! Too late.\n").unwrap(), expected);
        assert_eq!(problem("").unwrap(), expected);
    }

    #[test]
    fn a_sentence_that_does_not_end_fails() {
        let found = problem("//! Begins\n//! and never ends\n").unwrap();
        assert!(found.starts_with("crates/x/src/a.rs:2: the opening `//!` paragraph ends"));
    }
}
