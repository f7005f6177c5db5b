//! Checks rules of this repository that the compiler does not check, over all sources.

mod violation;
mod source;
mod references;
mod modules;
mod opening;
mod attributes;
mod import_order;
mod places;
mod definitions;
mod architecture;
mod bounds;
mod lengths;
mod words;
mod ratchet;

use anyhow::{Result, bail};

use crate::output::say;
use crate::workspace::Workspace;
use violation::Violation;

/// Prints every violation in the workspace, and fails if there is one.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let violations = violations(workspace)?;
    for violation in &violations {
        say(&violation.to_string());
    }
    match violations.len() {
        0 => Ok(()),
        1 => bail!("tidy found 1 violation, printed above"),
        count => bail!("tidy found {count} violations, printed above"),
    }
}

/// Lowers and removes entries of the ratchet file to match the sources.
pub(crate) fn tighten(workspace: &Workspace) -> Result<()> {
    ratchet::tighten(workspace, &source::read_all(workspace)?)
}

fn violations(workspace: &Workspace) -> Result<Vec<Violation>> {
    let files = workspace.files()?;
    let sources = source::read_all(workspace)?;
    let mut found = attributes::forbidden_file_names(&files);
    for source in &sources {
        found.extend(opening::check(source));
        found.extend(attributes::check(source));
        found.extend(places::check(source));
    }
    found.extend(import_order::check(&sources));
    found.extend(words::check(&sources));
    found.extend(architecture::check(workspace, &files, &sources)?);
    found.extend(bounds::check(workspace, &files, &sources)?);
    found.extend(ratchet::check(workspace, &sources)?);
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    /// One file per rule, which violates only that rule.
    const BROKEN: &[(&str, &str)] = &[
        ("ARCHITECTURE.md", "See `Gone`.\n"),
        ("crates/trunkline/src/attributes.rs", "//! A file.\n#[allow(unused)]\nfn f() {}\n"),
        ("crates/trunkline/src/opening.rs", "fn f() {}\n"),
        ("crates/trunkline/src/parts/mod.rs", "//! A file.\n"),
        ("crates/trunkline/src/places.rs", "//! A file.\nfn f() { println!(); }\n"),
        ("crates/trunkline/src/rooms.rs", "//! A file.\nuse crate::places;\n"),
        ("docs/security.md", "| a | 1 | b | `MAX_GONE` |\n"),
        ("xtask/ratchet.txt", "file gone.rs 501\n"),
    ];

    const ROOT: &str = "//! A crate.\nmod rooms;\nmod places;\nmod opening;\nmod attributes;\n";

    fn write(workspace: &Workspace, path: &str, text: &str) {
        let file = workspace.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn every_rule_is_applied_to_a_workspace_in_one_run() {
        let root = env::temp_dir().join(format!("xtask-tidy-{}", process::id()));
        let workspace = Workspace::at(&root);
        write(&workspace, "crates/trunkline/src/lib.rs", ROOT);
        write(&workspace, "target/debug/mod.rs", "not ours");
        for (path, text) in BROKEN {
            write(&workspace, path, text);
        }
        let found = violations(&workspace).unwrap();
        let paths: Vec<&str> = found.iter().map(|violation| violation.path.as_str()).collect();
        let broken: Vec<&str> = BROKEN.iter().map(|(path, _)| *path).collect();
        assert_eq!(paths, broken, "{found:?}");
        assert!(check(&workspace).unwrap_err().to_string().contains("8 violations"));
        fs::remove_dir_all(root).unwrap();
    }
}
