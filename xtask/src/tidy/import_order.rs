//! Checks that a module refers only to siblings declared at or before its own position.

use super::modules::ModuleTree;
use super::references::{self, Reference};
use super::source::Source;
use super::violation::Violation;

/// Reports every reference to a module that is declared later, in every crate.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let roots = sources.iter().filter(|source| is_ordered(source));
    roots.flat_map(|root| check_tree(&ModuleTree::of(root, sources))).collect()
}

/// Only crate sources are ordered; tests, examples and benches are short lists of cases.
fn is_ordered(source: &Source) -> bool {
    source.is_crate_root() && (source.is_crate_source() || source.path.starts_with("xtask/src/"))
}

fn check_tree(tree: &ModuleTree<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (module, source) in tree.files() {
        for reference in references::collect(&source.syntax) {
            let from = [module.as_slice(), &reference.inside].concat();
            if let Some((own, other)) = downward(tree, &from, &reference) {
                found.push(violation(source, reference.line, own, &other));
            }
        }
    }
    found
}

fn violation(source: &Source, line: usize, own: &str, other: &str) -> Violation {
    Violation {
        path: source.path.clone(),
        line,
        problem: format!("`{own}` refers to `{other}`, which is declared after it"),
        remedy: format!(
            "declare `{other}` before `{own}`, or move what both need into a module above them"
        ),
    }
}

/// The pair of siblings whose order a reference violates: its own module, and the referenced one.
fn downward<'a>(
    tree: &ModuleTree<'_>,
    from: &'a [String],
    reference: &Reference,
) -> Option<(&'a str, String)> {
    let to = absolute(from, &reference.segments)?;
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let (own, other) = (from.get(shared)?, to.get(shared)?);
    let parent = &from[..shared];
    let is_after = tree.position(parent, other)? > tree.position(parent, own)?;
    is_after.then(|| (own.as_str(), other.clone()))
}

/// The absolute path of `segments` in the module `from`.
fn absolute(from: &[String], segments: &[String]) -> Option<Vec<String>> {
    let (first, mut rest) = segments.split_first()?;
    let mut base = match first.as_str() {
        "crate" => &[],
        "self" => from,
        "super" => from.split_last()?.1,
        _ => return None,
    };
    while let Some((next, after)) = rest.split_first()
        && next == "super"
    {
        base = base.split_last()?.1;
        rest = after;
    }
    Some([base, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let parse = |(path, text): &(&str, &str)| Source::parse(path, text).unwrap();
        let sources: Vec<Source> = files.iter().map(parse).collect();
        check(&sources).iter().map(ToString::to_string).collect()
    }

    const ROOT: (&str, &str) = ("crates/x/src/lib.rs", "mod first; pub mod second;");

    #[test]
    fn an_import_from_a_later_room_fails() {
        let found = problems(&[ROOT, ("crates/x/src/first.rs", "\nuse crate::second::Thing;")]);
        assert_eq!(
            found,
            ["crates/x/src/first.rs:2: `first` refers to `second`, which is declared after it; \
              declare `second` before `first`, or move what both need into a module above them"]
        );
    }

    #[test]
    fn an_import_from_an_earlier_room_passes() {
        let second = ("crates/x/src/second.rs", "use crate::first::Thing; use super::first;");
        assert!(problems(&[ROOT, second]).is_empty());
    }

    #[test]
    fn inline_paths_relative_paths_and_macros_count() {
        for text in [
            "fn f() -> crate::second::Thing { todo!() }",
            "fn f() { super::second::go() }",
            "use super::second;",
            "use crate::{second::{A, B}};",
            "fn f() { vec![crate::second::go()]; }",
            "mod inner { use super::super::second; }",
        ] {
            assert!(!problems(&[ROOT, ("crates/x/src/first.rs", text)]).is_empty(), "{text}");
        }
    }

    #[test]
    fn order_holds_below_a_room_as_well() {
        let first = ("crates/x/src/first.rs", "mod low; mod high; use high::A;");
        let low = ("crates/x/src/first/low.rs", "use super::high::A;");
        let high = ("crates/x/src/first/high.rs", "use super::low::B; use crate::first::low::C;");
        let found = problems(&[ROOT, first, low, high]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/x/src/first/low.rs:1: `low` refers to `high`"));
    }

    #[test]
    fn a_file_deep_in_a_room_is_bound_by_the_order_of_rooms() {
        let first = ("crates/x/src/first.rs", "mod low;");
        let low = ("crates/x/src/first/low.rs", "use crate::second::A;");
        assert!(problems(&[ROOT, first, low])[0].contains("`first` refers to `second`"));
    }

    #[test]
    fn test_modules_and_names_that_are_not_modules_are_free() {
        let text =
            "use crate::Thing; use super::Other; #[cfg(test)] mod tests { use crate::second::A; }";
        assert!(problems(&[ROOT, ("crates/x/src/first.rs", text)]).is_empty());
    }

    #[test]
    fn programs_are_ordered_like_libraries() {
        let root = ("crates/x/src/main.rs", "mod first; mod second; use second::A;");
        let first = ("crates/x/src/first.rs", "use crate::second::A;");
        assert_eq!(problems(&[root, first]).len(), 1);
    }
}
