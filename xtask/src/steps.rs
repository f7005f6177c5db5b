//! The test command: all checks required to merge a change, as steps.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{cargo, run, works};
use crate::deny;
use crate::outcome::StepOutcome;
use crate::output::say;
use crate::workspace::Workspace;
use crate::{peers, platforms, properties, suggestion, tidy};

/// When a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepSelection {
    Always,
    ByName,
}

/// One check.
struct Step {
    name: &'static str,
    about: &'static str,
    chosen: StepSelection,
    run: fn(&Workspace) -> Result<StepOutcome>,
}

const fn step(
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Result<StepOutcome>,
) -> Step {
    let chosen = StepSelection::Always;
    Step { name, about, chosen, run }
}

/// Cheap steps that often fail come first; `peers` precedes the tests that need it.
const STEPS: &[Step] = &[
    step("fmt", "formatting (rustfmt)", fmt),
    step("tidy", "rules of this repository", run_tidy),
    step("clippy", "lints (clippy), warnings are errors", clippy),
    step("docs", "documentation builds without warnings", docs),
    step("peers", "third-party programs for the tests", install_peers),
    step("tests", "unit and integration tests", tests),
    step("doctests", "examples in the documentation", doctests),
    step("bench", "the comparison with peers runs, a few calls of ours only", bench),
    step("budget", "instructions and allocations of a relayed call", budget),
    step("deny", "licences, bans and sources of dependencies (cargo-deny)", deny::check_policy),
    step("fuzz", "the fuzz targets compile", fuzz),
    Step {
        name: "quick",
        about: "unit tests (the tests of `cargo xtask check`; only by name)",
        chosen: StepSelection::ByName,
        run: quick_tests,
    },
    Step {
        name: "platforms",
        about: "lints for macOS and Windows, where the targets are installed (only by name)",
        chosen: StepSelection::ByName,
        run: platforms::check,
    },
    Step {
        name: "advisories",
        about: "known vulnerabilities in dependencies (needs the network; only by name)",
        chosen: StepSelection::ByName,
        run: deny::check_advisories,
    },
    Step {
        name: "random-properties",
        about: "property tests with new inputs, 100 times as many (takes minutes; only by name)",
        chosen: StepSelection::ByName,
        run: random_properties,
    },
];

/// Steps of `cargo xtask check`, which take less than a minute after a build.
const CHECK: &[&str] = &["fmt", "tidy", "clippy", "quick"];

/// Prints the steps with their descriptions.
pub(crate) fn list() {
    for step in STEPS {
        say(&format!("{:<17} {}", step.name, step.about));
    }
}

/// Runs the steps of `cargo xtask check`, for use after each change.
pub(crate) fn run_check(workspace: &Workspace) -> Result<()> {
    let only: Vec<String> = CHECK.iter().map(ToString::to_string).collect();
    run_steps(workspace, &only)
}

/// Runs the named steps in list order, or all of them if none is named.
pub(crate) fn run_steps(workspace: &Workspace, only: &[String]) -> Result<()> {
    let steps = select(only)?;
    let mut finished = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        say(&format!("\n[{}/{}] {}: {}", index + 1, steps.len(), step.name, step.about));
        let started = Instant::now();
        let result = (step.run)(workspace);
        let report = Report::new(step, &result, started.elapsed());
        finished.push(report);
        if let Err(error) = result {
            summarise(&finished);
            return Err(error).with_context(|| failure(step));
        }
    }
    summarise(&finished);
    Ok(())
}

fn select(only: &[String]) -> Result<Vec<&'static Step>> {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    if let Some(word) = only.iter().find(|word| !names.contains(&word.as_str())) {
        bail!(suggestion::unknown("step", word, &names));
    }
    let is_selected = |step: &&Step| match only {
        [] => step.chosen == StepSelection::Always,
        _ => only.iter().any(|name| name == step.name),
    };
    Ok(STEPS.iter().filter(is_selected).collect())
}

fn failure(step: &Step) -> String {
    let name = step.name;
    format!("step `{name}` failed; run only this step again with: cargo xtask test --only {name}")
}

/// One line of the summary.
struct Report {
    name: &'static str,
    took: Duration,
    verdict: String,
}

impl Report {
    fn new(step: &Step, result: &Result<StepOutcome>, took: Duration) -> Self {
        let verdict = match result {
            Ok(StepOutcome::Checked) => "ok".to_owned(),
            Ok(StepOutcome::Skipped(note)) => format!("NOT CHECKED: {note}"),
            Err(_) => "FAILED".to_owned(),
        };
        let name = step.name;
        Self { name, took, verdict }
    }
}

fn summarise(reports: &[Report]) {
    say("\nsummary");
    for Report { name, took, verdict } in reports {
        say(&format!("  {name:<17} {:>7.1} s  {verdict}", took.as_secs_f64()));
    }
    let total: Duration = reports.iter().map(|report| report.took).sum();
    say(&format!("  {:<17} {:>7.1} s", "together", total.as_secs_f64()));
}

fn run_cargo(workspace: &Workspace, arguments: &[&str]) -> Result<StepOutcome> {
    run(cargo(workspace).args(arguments)).map(|()| StepOutcome::Checked)
}

fn fmt(workspace: &Workspace) -> Result<StepOutcome> {
    run_cargo(workspace, &["fmt", "--all", "--check"])
}

fn run_tidy(workspace: &Workspace) -> Result<StepOutcome> {
    tidy::check(workspace).map(|()| StepOutcome::Checked)
}

/// Same flags, features and environment as the tests, so that neither build invalidates the other.
fn clippy(workspace: &Workspace) -> Result<StepOutcome> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    run_cargo(workspace, &arguments)
}

fn docs(workspace: &Workspace) -> Result<StepOutcome> {
    run(cargo(workspace)
        .args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(StepOutcome::Checked)
}

fn install_peers(workspace: &Workspace) -> Result<StepOutcome> {
    peers::install(workspace).map(|()| StepOutcome::Checked)
}

fn tests(workspace: &Workspace) -> Result<StepOutcome> {
    peers::require(workspace)?;
    let mut command = cargo(workspace);
    command.env("TRUNKLINE_PEERS", peers::directory(workspace));
    if has_nextest(workspace) {
        let profile = nextest_profile();
        command.args(["nextest", "run", "--workspace", "--locked", "--profile", profile]);
    } else {
        command.args(["test", "--workspace", "--all-targets", "--locked"]);
    }
    run(&mut command).map(|()| StepOutcome::Checked)
}

fn quick_tests(workspace: &Workspace) -> Result<StepOutcome> {
    if has_nextest(workspace) {
        return run_cargo(workspace, &["nextest", "run", "--workspace", "--locked", "-P", "quick"]);
    }
    run_cargo(workspace, &["test", "--workspace", "--lib", "--bins", "--locked"])
}

fn has_nextest(workspace: &Workspace) -> bool {
    works(cargo(workspace).args(["nextest", "--version"]))
}

fn nextest_profile() -> &'static str {
    if env::var_os("CI").is_some_and(|value| value == "true") { "ci" } else { "default" }
}

fn doctests(workspace: &Workspace) -> Result<StepOutcome> {
    run_cargo(workspace, &["test", "--workspace", "--doc", "--locked"])
}

/// Unoptimised, as the tests have built it: this run shows that the scenarios work, not how fast they are.
fn bench(workspace: &Workspace) -> Result<StepOutcome> {
    run_bench(workspace, &["--quick", "peers"])
}

fn budget(workspace: &Workspace) -> Result<StepOutcome> {
    run_bench(workspace, &["budget"])?;
    if works(Command::new("valgrind").arg("--version")) {
        return Ok(StepOutcome::Checked);
    }
    Ok(StepOutcome::Skipped("instructions: valgrind is not installed".to_owned()))
}

/// Runs the benchmark that was built with the tests. Built alone, the dependencies would have other features, and most
/// of them would be compiled again.
fn run_bench(workspace: &Workspace, arguments: &[&str]) -> Result<StepOutcome> {
    run_cargo(workspace, &["build", "--workspace", "--bins", "--tests", "--locked"])?;
    let program = format!("debug/trunkline-bench{}", env::consts::EXE_SUFFIX);
    run(Command::new(workspace.target().join(program))
        .args(arguments)
        .env("TRUNKLINE_PEERS", peers::directory(workspace)))?;
    Ok(StepOutcome::Checked)
}

/// Fuzzing needs a nightly compiler, but the stable one can check that the targets compile. They
/// share the target directory, so that common dependencies are built once.
fn fuzz(workspace: &Workspace) -> Result<StepOutcome> {
    if !workspace.join("fuzz/Cargo.toml").is_file() {
        return Ok(StepOutcome::Skipped("there is no fuzz/Cargo.toml".to_owned()));
    }
    run(cargo(workspace)
        .args(["check", "--manifest-path", "fuzz/Cargo.toml", "--locked"])
        .arg("--target-dir")
        .arg(workspace.target()))?;
    Ok(StepOutcome::Checked)
}

fn random_properties(workspace: &Workspace) -> Result<StepOutcome> {
    properties::run_with_new_seed(workspace).map(|()| StepOutcome::Checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(only: &[&str]) -> Vec<&'static str> {
        let only: Vec<String> = only.iter().map(ToString::to_string).collect();
        select(&only).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn all_steps_run_in_order_except_those_that_must_be_named() {
        let expected =
            "fmt tidy clippy docs peers tests doctests bench budget deny fuzz".split(' ');
        assert_eq!(selected(&[]), expected.collect::<Vec<_>>());
    }

    #[test]
    fn check_names_existing_steps() {
        assert_eq!(selected(CHECK), CHECK);
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_list() {
        assert_eq!(selected(&["advisories", "clippy", "fmt"]), ["fmt", "clippy", "advisories"]);
    }

    #[test]
    fn a_mistyped_step_is_corrected() {
        let error = select(&["clipy".to_owned()]).err().unwrap();
        assert!(error.to_string().contains("did you mean `clippy`?"), "{error}");
    }

    #[test]
    fn a_failure_names_the_step_and_how_to_repeat_it() {
        let text = failure(&STEPS[2]);
        assert!(text.contains("step `clippy` failed"), "{text}");
        assert!(text.ends_with("cargo xtask test --only clippy"), "{text}");
    }
}
