//! Checks that names in backticks in ARCHITECTURE.md exist, and that the page is short.

use std::fs;

use anyhow::Result;

use super::definitions::Definitions;
use super::source::Source;
use super::violation::Violation;
use crate::workspace::Workspace;

const PAGE: &str = "ARCHITECTURE.md";

/// Longest page, in lines: a longer one is skimmed, and no longer kept up to date.
const LONGEST: usize = 150;

/// First segments of protocol methods and media types, which are not paths.
const NOT_FOLDERS: &[&str] = &[
    "application",
    "completion",
    "elicitation",
    "logging",
    "notifications",
    "prompts",
    "resources",
    "roots",
    "sampling",
    "server",
    "subscriptions",
    "tasks",
    "text",
    "tools",
];

/// External crates that the page may mention.
const OTHER_CRATES: &[&str] = &["axum", "core", "hyper", "serde", "std", "tokio", "tower"];

/// Files on users' machines, which are not part of the repository.
const FILES_OF_USERS: &[&str] = &[".dispatch/mcp.json", ".trunkline/mcp.json", "AGENTS.md"];

/// Reports a page that is missing, too long, or mentions unknown names.
pub(crate) fn check(
    workspace: &Workspace,
    files: &[String],
    sources: &[Source],
) -> Result<Vec<Violation>> {
    if !files.iter().any(|file| file == PAGE) {
        let remedy = "write down what this is, the life of a call, the modules and the invariants";
        return Ok(vec![violation(1, "the file does not exist".to_owned(), remedy)]);
    }
    let text = fs::read_to_string(workspace.join(PAGE))?;
    Ok(check_page(&text, files, &Definitions::of(sources)))
}

fn check_page(text: &str, files: &[String], definitions: &Definitions) -> Vec<Violation> {
    let mut found: Vec<Violation> = length_problem(text).into_iter().collect();
    for (line, mention) in mentions(text) {
        let is_true = match Mention::of(mention) {
            Mention::Path(path) => exists(path, files),
            Mention::Name(name) => definitions.contain(name),
            Mention::Other => true,
        };
        if !is_true {
            let problem = format!("`{mention}` does not exist");
            found.push(violation(line, problem, "name what is there, or drop the backticks"));
        }
    }
    found
}

fn length_problem(text: &str) -> Option<Violation> {
    let lines = text.lines().count();
    (lines > LONGEST).then(|| {
        let problem = format!("{lines} lines, and {LONGEST} is the limit");
        violation(lines, problem, "shorten it")
    })
}

fn violation(line: usize, problem: String, remedy: &str) -> Violation {
    Violation { path: PAGE.to_owned(), line, problem, remedy: remedy.to_owned() }
}

/// The words in backticks outside fenced blocks, with their lines.
fn mentions(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let words = line.split('`').skip(1).step_by(2);
            found.extend(words.map(|word| (index + 1, word)));
        }
    }
    found
}

/// The apparent kind of a word in backticks.
enum Mention<'a> {
    Path(&'a str),
    Name(&'a str),
    Other,
}

impl<'a> Mention<'a> {
    fn of(word: &'a str) -> Self {
        let name = word.trim_end_matches("()").trim_end_matches('!');
        if is_path(word) {
            Self::Path(word)
        } else if is_name(name) && (name != word || is_qualified(name) || is_camel_case(name)) {
            Self::Name(name)
        } else {
            Self::Other
        }
    }
}

/// Whether a word looks like a path of this repository, unlike commands, URLs and patterns.
fn is_path(word: &str) -> bool {
    let ends_like_a_file = [".rs", ".md", ".toml"].iter().any(|end| word.ends_with(end));
    let first = word.split('/').next().unwrap_or_default();
    (word.contains('/') || ends_like_a_file)
        && !word.starts_with(['/', '~', '$'])
        && !word.contains(|letter: char| letter.is_whitespace() || "*<{:…".contains(letter))
        && !NOT_FOLDERS.contains(&first)
        && !FILES_OF_USERS.contains(&word)
}

fn is_name(word: &str) -> bool {
    let first = word.split("::").next().unwrap_or_default();
    !OTHER_CRATES.contains(&first) && word.split("::").all(is_identifier)
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn is_qualified(name: &str) -> bool {
    name.contains("::")
}

fn is_camel_case(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.contains(|letter: char| letter.is_ascii_lowercase())
}

/// Whether a path, relative to the root or any of its subdirectories, exists.
fn exists(path: &str, files: &[String]) -> bool {
    let wanted = format!("/{}/", path.trim_end_matches('/'));
    files.iter().any(|file| format!("/{file}/").contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(page: &str) -> Vec<String> {
        let text = "pub mod policy; pub struct Route; impl Route { fn call() {} } fn decide() {}";
        let path = "crates/trunkline/src/lib.rs";
        let sources = [Source::parse(path, text).unwrap()];
        let files = [path.to_owned(), "deny.toml".to_owned()];
        let found = check_page(page, &files, &Definitions::of(&sources));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_and_names_that_exist_pass() {
        for word in [
            "crates/trunkline",
            "crates/trunkline/src/",
            "src/lib.rs",
            "lib.rs",
            "deny.toml",
            "Route",
            "Route::call",
            "call()",
            "policy::decide",
            "trunkline::Route",
            "decide()",
        ] {
            assert!(problems(&format!("See `{word}`.")).is_empty(), "{word}");
        }
    }

    #[test]
    fn paths_and_names_that_do_not_exist_fail() {
        for word in [
            "crates/other",
            "ib.rs",
            "gone.md",
            "Road",
            "Route::gone",
            "gone()",
            "gone!",
            "policy::gone",
            "rates/trunkline",
        ] {
            assert_eq!(
                problems(&format!("\nSee `{word}`.")),
                [format!(
                    "ARCHITECTURE.md:2: `{word}` does not exist; \
                          name what is there, or drop the backticks"
                )]
            );
        }
    }

    #[test]
    fn commands_methods_addresses_and_fenced_blocks_are_not_looked_at() {
        for word in [
            "cargo xtask test",
            "tools/call",
            "application/json",
            "/mcp",
            "https://a.example/b",
            "crates/*/src",
            "snake_case",
            "tokio::select!",
            "isError",
            ".trunkline/mcp.json",
            "--json",
            "Mcp-Session-Id",
        ] {
            assert!(problems(&format!("See `{word}`.")).is_empty(), "{word}");
        }
        assert!(problems("```rust\nlet x = `Gone`;\n```\n").is_empty());
    }

    #[test]
    fn a_long_page_fails() {
        let found = problems(&"line\n".repeat(151));
        assert_eq!(found, ["ARCHITECTURE.md:151: 151 lines, and 150 is the limit; shorten it"]);
    }

    #[test]
    fn a_missing_page_fails() {
        let found = check(&Workspace::at("/nowhere".as_ref()), &[], &[]).unwrap();
        assert_eq!(found[0].problem, "the file does not exist");
    }
}
