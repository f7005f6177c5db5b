//! Runs the property tests with new random inputs, many more than the test command uses.
//!
//! The test command uses the seed in `.cargo/config.toml`, so that it never fails by chance.

use std::fs;
use std::hash::{BuildHasher, RandomState};

use anyhow::{Context, Result, ensure};

use crate::command::{cargo, run};
use crate::output::say;
use crate::workspace::Workspace;

/// Inputs per property: 100 times the default of proptest, which takes some minutes.
const CASES_PER_PROPERTY: u32 = 25_600;

/// Runs every property test with a new random seed.
pub(crate) fn run_with_new_seed(workspace: &Workspace) -> Result<()> {
    let names = property_names(workspace)?;
    ensure!(!names.is_empty(), "no property test was found in `crates`");
    let seed = RandomState::new().hash_one("seed");
    let count = names.len();
    say(&format!(
        "{count} properties, PROPTEST_CASES={CASES_PER_PROPERTY} PROPTEST_RNG_SEED={seed}"
    ));
    // Not nextest, which kills tests that take minutes.
    run(cargo(workspace)
        .args(["test", "--workspace", "--lib", "--tests", "--locked", "--no-fail-fast", "--"])
        .args(&names)
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_CASES", CASES_PER_PROPERTY.to_string()))
    .with_context(|| {
        "a property does not hold; proptest wrote its input to a `proptest-regressions` folder: \
         commit that file with the repair"
    })
}

/// The names of all property tests, sorted.
fn property_names(workspace: &Workspace) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in workspace.files()? {
        if !file.starts_with("crates/") || !file.ends_with(".rs") {
            continue;
        }
        let text = fs::read_to_string(workspace.join(&file))
            .with_context(|| format!("cannot read {file}"))?;
        names.extend(properties_in(&text));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The tests in the `proptest!` blocks of a formatted source file.
fn properties_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut end_of_block = None;
    for line in text.lines() {
        let content = line.trim_start();
        if content.ends_with("proptest! {") {
            let indentation = line.strip_suffix(content).unwrap_or_default();
            end_of_block = Some(format!("{indentation}}}"));
        } else if end_of_block.as_deref() == Some(line) {
            end_of_block = None;
        } else if end_of_block.is_some()
            && let Some((name, _)) = content.strip_prefix("fn ").and_then(|it| it.split_once('('))
        {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_in_property_blocks_are_properties() {
        let text = "fn a() {}\nmod tests {\n    proptest! {\n        #[test]\n        \
                    fn b(x in 0..1) {\n        }\n    }\n\n    fn c() {}\n}\n";
        assert_eq!(properties_in(text), ["b"]);
    }

    #[test]
    fn the_properties_of_this_repository_are_found() {
        let names = property_names(&Workspace::find().unwrap()).unwrap();
        assert!(names.contains(&"addresses_can_be_taken_apart_again".to_owned()), "{names:?}");
        assert!(names.contains(&"no_text_is_too_strange".to_owned()), "{names:?}");
    }
}
