//! Limits on lengths, with listed exceptions that can only shrink.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::lengths::{self, Measure, Quantity};
use super::source::Source;
use super::violation::Violation;
use super::words;
use crate::output::say;
use crate::workspace::Workspace;

const FILE: &str = "xtask/ratchet.txt";

/// Reports unlisted sizes above the limit, and entries that no longer match.
pub(crate) fn check(workspace: &Workspace, sources: &[Source]) -> Result<Vec<Violation>> {
    Ok(check_against(&read(workspace)?, &all_sizes(workspace, sources)?))
}

/// Lowers and removes entries to match the sources; never raises or adds one.
pub(crate) fn tighten(workspace: &Workspace, sources: &[Source]) -> Result<()> {
    let before = read(workspace)?;
    let after = tightened(&before, &all_sizes(workspace, sources)?);
    if before == after {
        say("ratchet: nothing to tighten");
        return Ok(());
    }
    say(&format!("ratchet: tightened {FILE}"));
    fs::write(workspace.join(FILE), after).with_context(|| format!("cannot write {FILE}"))
}

fn read(workspace: &Workspace) -> Result<String> {
    fs::read_to_string(workspace.join(FILE)).with_context(|| format!("cannot read {FILE}"))
}

/// Sizes by entry key. Functions with the same name count as the largest of them.
type Sizes = BTreeMap<(String, String), Size>;

struct Size {
    quantity: Quantity,
    path: String,
    line: usize,
    amount: usize,
}

/// Sizes of sources and of documentation pages.
fn all_sizes(workspace: &Workspace, sources: &[Source]) -> Result<Sizes> {
    let mut sizes = sizes_of(sources);
    for path in workspace.files()?.iter().filter(|path| path.ends_with(".md")) {
        let text = fs::read_to_string(workspace.join(path))
            .with_context(|| format!("cannot read {path}"))?;
        add_size(&mut sizes, path, &words::measure(path, &text));
    }
    Ok(sizes)
}

fn sizes_of(sources: &[Source]) -> Sizes {
    let mut sizes = Sizes::new();
    for source in sources {
        let pronouns = words::measure(&source.path, &source.text);
        for measure in lengths::measure(source).into_iter().chain([pronouns]) {
            add_size(&mut sizes, &source.path, &measure);
        }
    }
    sizes
}

fn add_size(sizes: &mut Sizes, path: &str, measure: &Measure) {
    let key = (measure.quantity.keyword().to_owned(), measure.name.clone());
    let size = Size {
        quantity: measure.quantity,
        path: path.to_owned(),
        line: measure.line,
        amount: measure.amount,
    };
    let is_largest = sizes.get(&key).is_none_or(|known| known.amount < size.amount);
    if is_largest {
        sizes.insert(key, size);
    }
}

/// An entry of the ratchet file: the allowed size of a file or function.
struct Entry {
    key: (String, String),
    amount: usize,
}

impl Entry {
    /// Parses a line; `None` if it is not `<keyword> <name> <number>`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let key = (words.next()?.to_owned(), words.next()?.to_owned());
        let amount = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Self { key, amount })
    }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn check_against(ratchet: &str, sizes: &Sizes) -> Vec<Violation> {
    let lines = ratchet.lines().enumerate();
    let entries = lines.filter(|(_, line)| !is_comment(line));
    let mut listed = Vec::new();
    let mut found = Vec::new();
    for (index, line) in entries {
        let entry = Entry::parse(line);
        let complaint = entry.as_ref().map_or_else(unreadable, |entry| judge(entry, sizes));
        found.extend(complaint.map(|(problem, remedy)| at(index + 1, problem, remedy)));
        listed.extend(entry.map(|entry| entry.key));
    }
    let unlisted = sizes.iter().filter(|(key, _)| !listed.contains(key));
    found.extend(unlisted.filter_map(|(_, size)| too_large(size)));
    found
}

/// A problem with an entry, and its remedy.
type Complaint = (String, &'static str);

const TIGHTEN: &str = "tighten it with `cargo xtask tidy --tighten`";

fn unreadable() -> Option<Complaint> {
    let problem = "not an entry".to_owned();
    Some((
        problem,
        "write `file`, `function`, `parameters` or `pronouns`, then a name and a number",
    ))
}

fn judge(entry: &Entry, sizes: &Sizes) -> Option<Complaint> {
    let (keyword, name) = &entry.key;
    let listed = entry.amount;
    match sizes.get(&entry.key) {
        Some(size) if size.amount > listed && size.amount > size.quantity.limit() => Some((
            format!("{keyword} {name} grew from {listed} to {}", size.amount),
            "split it; entries are never raised",
        )),
        Some(size) if size.amount > size.quantity.limit() => (size.amount < listed).then(|| {
            (format!("{keyword} {name} shrank from {listed} to {}", size.amount), TIGHTEN)
        }),
        _ => Some((format!("{keyword} {name} is no longer needed"), TIGHTEN)),
    }
}

fn at(line: usize, problem: String, remedy: &str) -> Violation {
    Violation { path: FILE.to_owned(), line, problem, remedy: remedy.to_owned() }
}

fn too_large(size: &Size) -> Option<Violation> {
    let limit = size.quantity.limit();
    (size.amount > limit).then(|| Violation {
        path: size.path.clone(),
        line: size.line,
        problem: format!("{} {}, and {limit} is the limit", size.amount, size.quantity),
        remedy: size.quantity.remedy().to_owned(),
    })
}

/// The ratchet file with each entry lowered to its current size.
fn tightened(ratchet: &str, sizes: &Sizes) -> String {
    let lines = ratchet.lines().filter_map(|line| match Entry::parse(line) {
        Some(entry) if !is_comment(line) => tightened_entry(&entry, sizes),
        _ => Some(line.to_owned()),
    });
    lines.map(|line| line + "\n").collect()
}

fn tightened_entry(entry: &Entry, sizes: &Sizes) -> Option<String> {
    let size = sizes.get(&entry.key)?;
    let (keyword, name) = &entry.key;
    let amount = entry.amount.min(size.amount);
    (size.amount > size.quantity.limit()).then(|| format!("{keyword} {name} {amount}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/x/src/a.rs";

    fn sizes(text: &str) -> Sizes {
        sizes_of(&[Source::parse(PATH, text).unwrap()])
    }

    fn function_of(lines: usize) -> String {
        format!("fn f() {{{}}}\n", "\n".repeat(lines - 1))
    }

    fn problems(ratchet: &str, text: &str) -> Vec<String> {
        let found = check_against(ratchet, &sizes(text));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn code_within_the_limits_passes() {
        assert!(problems("# comment\n\n", &function_of(60)).is_empty());
        assert!(problems("", &"// line\n".repeat(500)).is_empty());
        assert!(problems("", "fn f(a: A, b: A, c: A, d: A, e: A) {}").is_empty());
    }

    #[test]
    fn code_over_a_limit_fails() {
        assert_eq!(
            problems("", &function_of(61)),
            ["crates/x/src/a.rs:1: 61 lines in the function, and 60 is the limit; \
              split it by what its parts are for"]
        );
        assert!(problems("", &"// line\n".repeat(501))[0].contains("501 lines in the file"));
        let six = "fn f(a: A, b: A, c: A, d: A, e: A, g: A) {}";
        assert!(problems("", six)[0].contains("6 parameters, and 5 is the limit"));
    }

    #[test]
    fn test_files_have_a_limit_of_their_own() {
        let parse =
            |lines| Source::parse("crates/x/tests/a.rs", &"// line\n".repeat(lines)).unwrap();
        assert!(check_against("", &sizes_of(&[parse(800)])).is_empty());
        assert_eq!(check_against("", &sizes_of(&[parse(801)])).len(), 1);
    }

    #[test]
    fn an_exact_entry_passes() {
        assert!(problems("function crates/x/src/a.rs::f 75\n", &function_of(75)).is_empty());
    }

    #[test]
    fn an_entry_that_is_exceeded_fails() {
        assert_eq!(
            problems("function crates/x/src/a.rs::f 70\n", &function_of(75)),
            ["xtask/ratchet.txt:1: function crates/x/src/a.rs::f grew from 70 to 75; \
              split it; entries are never raised"]
        );
    }

    #[test]
    fn an_entry_with_slack_fails() {
        let found = problems("# head\nfunction crates/x/src/a.rs::f 80\n", &function_of(75));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("xtask/ratchet.txt:2: "), "{found:?}");
        assert!(found[0].contains("shrank from 80 to 75; tighten it"), "{found:?}");
    }

    #[test]
    fn an_entry_that_is_not_needed_or_not_readable_fails() {
        let within = problems("function crates/x/src/a.rs::f 70\n", &function_of(60));
        assert!(within[0].contains("no longer needed; tighten it"), "{within:?}");
        let gone = problems("file crates/x/src/gone.rs 600\n", "");
        assert!(gone[0].contains("no longer needed; tighten it"), "{gone:?}");
        assert!(problems("file crates/x/src/a.rs many\n", "")[0].contains("not an entry"));
    }

    #[test]
    fn tightening_lowers_and_removes_and_never_raises() {
        let text = function_of(75);
        let entry = |amount| format!("# head\nfunction crates/x/src/a.rs::f {amount}\n");
        assert_eq!(tightened(&entry(80), &sizes(&text)), entry(75));
        assert_eq!(tightened(&entry(70), &sizes(&text)), entry(70));
        assert_eq!(tightened(&entry(70), &sizes(&function_of(9))), "# head\n");
        assert_eq!(tightened("", &sizes(&text)), "");
    }
}
