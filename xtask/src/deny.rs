//! Checks licences, banned crates and sources of all dependencies with cargo-deny.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Result, bail};

use crate::command::{cargo, run, works};
use crate::outcome::StepOutcome;
use crate::output::say;
use crate::workspace::Workspace;

/// The version that is built if none is installed; matches `deny.toml`.
const VERSION: &str = "0.20.2";

/// Runs all checks that need no network.
pub(crate) fn check_policy(workspace: &Workspace) -> Result<StepOutcome> {
    check(workspace, &["bans", "licenses", "sources"])
}

/// Checks for known vulnerabilities, which downloads the advisory database.
pub(crate) fn check_advisories(workspace: &Workspace) -> Result<StepOutcome> {
    check(workspace, &["advisories"])
}

fn check(workspace: &Workspace, what: &[&str]) -> Result<StepOutcome> {
    let Some(mut deny) = find_or_build(workspace) else {
        return not_checked(what);
    };
    run(deny.args(["--locked", "check", "--hide-inclusion-graph"]).args(what))?;
    Ok(StepOutcome::Checked)
}

fn not_checked(what: &[&str]) -> Result<StepOutcome> {
    let note = format!(
        "cargo-deny is not installed and could not be built, so {} were not checked; \
         install it with `cargo install cargo-deny --locked`",
        what.join(", ")
    );
    if env::var_os("TRUNKLINE_REQUIRE_DENY").is_some_and(|value| value == "1") {
        bail!("{note}");
    }
    Ok(StepOutcome::Skipped(note))
}

fn find_or_build(workspace: &Workspace) -> Option<Command> {
    if works(cargo(workspace).args(["deny", "--version"])) {
        let mut command = cargo(workspace);
        command.arg("deny");
        return Some(command);
    }
    let program = built_program(workspace);
    if !program.is_file() && build(workspace).is_err() {
        return None;
    }
    let mut command = Command::new(program);
    command.current_dir(workspace.root());
    Some(command)
}

/// Contains the version, so that a new one is built beside the old.
fn tools_directory(workspace: &Workspace) -> PathBuf {
    let name = format!("cargo-deny-{VERSION}");
    workspace.target().join("tools").join(name)
}

fn built_program(workspace: &Workspace) -> PathBuf {
    tools_directory(workspace).join("bin/cargo-deny")
}

/// Builds without optimization: it runs for seconds, and the build takes longer.
fn build(workspace: &Workspace) -> Result<()> {
    let into = tools_directory(workspace);
    say(&format!(
        "deny: cargo-deny is not installed; building {VERSION} into {} (one or two minutes, once)",
        into.display()
    ));
    run(cargo(workspace)
        .args(["install", "cargo-deny", "--locked", "--quiet", "--version", VERSION])
        .args(["--profile", "dev", "--config", "profile.dev.debug=false"])
        .arg("--root")
        .arg(&into)
        .arg("--target-dir")
        .arg(into.join("build")))?;
    // Only the program is needed; the rest is many times its size.
    Ok(fs::remove_dir_all(into.join("build"))?)
}
