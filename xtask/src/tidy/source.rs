//! The Rust sources that tidy checks, parsed once, with test code separated from production code.

use std::fs;

use anyhow::{Context, Result, anyhow};
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token, Type};

use crate::workspace::Workspace;

/// Directories of a crate with Rust sources.
const CRATE_FOLDERS: &[&str] = &["src", "tests", "examples", "benches"];

/// The role of a file, where rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Production,
    Test,
}

/// A parsed file with its path from the workspace root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
    pub(crate) role: Role,
}

impl Source {
    /// Parses one file; its path alone determines the role.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self> {
        let syntax = syn::parse_file(text)
            .map_err(|error| anyhow!("{path}:{}: {error}", error.span().start().line))?;
        let role = match crate_folder(path) {
            Some("tests") => Role::Test,
            _ => Role::Production,
        };
        Ok(Self { path: path.to_owned(), text: text.to_owned(), syntax, role })
    }

    /// Whether the file is in `crates/<name>/src`.
    pub(crate) fn is_crate_source(&self) -> bool {
        crate_folder(&self.path) == Some("src")
    }

    /// Whether the file is a crate root.
    pub(crate) fn is_crate_root(&self) -> bool {
        is_crate_root(&self.path)
    }
}

/// Reads and parses every source that the rules cover.
pub(crate) fn read_all(workspace: &Workspace) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in workspace.files()?.iter().filter(|path| is_covered(path)) {
        let text = fs::read_to_string(workspace.join(path))
            .with_context(|| format!("cannot read {path}"))?;
        sources.push(Source::parse(path, &text)?);
    }
    mark_test_files(&mut sources);
    Ok(sources)
}

fn is_covered(path: &str) -> bool {
    path.ends_with(".rs")
        && (path.starts_with("xtask/src/")
            || path.starts_with("fuzz/fuzz_targets/")
            || crate_folder(path).is_some_and(|folder| CRATE_FOLDERS.contains(&folder)))
}

/// The directory of a path below `crates/<name>/`.
fn crate_folder(path: &str) -> Option<&str> {
    let (_, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    inside.split_once('/').map(|(folder, _)| folder)
}

/// Marks files declared with `#[cfg(test)] mod name;`, and all below them, as tests.
pub(crate) fn mark_test_files(sources: &mut [Source]) {
    let declared: Vec<String> = sources.iter().flat_map(test_files_declared_in).collect();
    for source in sources {
        if declared.iter().any(|file| is_or_is_below(&source.path, file)) {
            source.role = Role::Test;
        }
    }
}

fn test_files_declared_in(source: &Source) -> Vec<String> {
    let is_declared_here = |item: &Item| match item {
        Item::Mod(module) if module.content.is_none() && is_test_only(&module.attrs) => {
            Some(child_file(&source.path, &module.ident.to_string()))
        }
        _ => None,
    };
    source.syntax.items.iter().filter_map(is_declared_here).collect()
}

fn is_or_is_below(path: &str, file: &str) -> bool {
    let folder = file.trim_end_matches(".rs");
    path == file || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The file of `mod name;` in `parent`.
pub(crate) fn child_file(parent: &str, name: &str) -> String {
    let folder = match parent.rsplit_once('/') {
        Some((folder, _)) if is_crate_root(parent) => folder,
        _ => parent.trim_end_matches(".rs"),
    };
    format!("{folder}/{name}.rs")
}

fn is_crate_root(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let file = parts.next();
    let folder = parts.next();
    match folder {
        Some("src") => matches!(file, Some("lib.rs" | "main.rs")),
        Some("bin") => parts.next() == Some("src"),
        Some("tests" | "examples" | "benches" | "fuzz_targets") => true,
        _ => false,
    }
}

/// The name of the type of an `impl`; `_` for types without one, such as tuples.
pub(crate) fn type_name(of: &Type) -> String {
    let last = match of {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    last.map_or_else(|| "_".to_owned(), |segment| segment.ident.to_string())
}

/// Whether attributes restrict an item to test builds.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test_function = path.segments.last().is_some_and(|last| last.ident == "test");
        let is_test_configuration = path.is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| requires_test(&condition));
        is_test_function || is_test_configuration
    })
}

fn requires_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|conditions| conditions.iter().any(requires_test)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_item_is_test_only(text: &str) -> bool {
        let file = syn::parse_file(text).unwrap();
        let Item::Mod(module) = &file.items[0] else {
            panic!("expected a module");
        };
        is_test_only(&module.attrs)
    }

    #[test]
    fn only_conditions_that_require_test_make_test_code() {
        assert!(first_item_is_test_only("#[cfg(test)] mod a {}"));
        assert!(first_item_is_test_only("#[cfg(all(unix, test))] mod a {}"));
        assert!(!first_item_is_test_only("#[cfg(not(test))] mod a {}"));
        assert!(!first_item_is_test_only("#[cfg(any(test, unix))] mod a {}"));
        assert!(!first_item_is_test_only("mod a {}"));
    }

    #[test]
    fn a_module_file_lies_beside_the_root_and_below_any_other_file() {
        assert_eq!(child_file("crates/x/src/lib.rs", "a"), "crates/x/src/a.rs");
        assert_eq!(child_file("crates/x/src/a.rs", "b"), "crates/x/src/a/b.rs");
        assert_eq!(child_file("crates/x/tests/all.rs", "a"), "crates/x/tests/a.rs");
    }

    #[test]
    fn files_of_a_test_module_are_tests() {
        let mut sources = vec![
            Source::parse("crates/x/src/a.rs", "#[cfg(test)] mod tests;").unwrap(),
            Source::parse("crates/x/src/a/tests.rs", "mod deep;").unwrap(),
            Source::parse("crates/x/src/a/tests/deep.rs", "").unwrap(),
            Source::parse("crates/x/tests/all.rs", "").unwrap(),
        ];
        mark_test_files(&mut sources);
        let roles: Vec<Role> = sources.iter().map(|source| source.role).collect();
        assert_eq!(roles, [Role::Production, Role::Test, Role::Test, Role::Test]);
    }

    #[test]
    fn a_file_that_does_not_parse_is_named_with_its_line() {
        let error = Source::parse("crates/x/src/a.rs", "\nfn {").map(drop).unwrap_err();
        assert!(error.to_string().starts_with("crates/x/src/a.rs:2: "), "{error}");
    }
}
