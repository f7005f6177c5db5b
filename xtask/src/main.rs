//! `cargo xtask`: commands for developing Trunkline, not for users.

mod output;
mod outcome;
mod suggestion;
mod workspace;
mod command;
mod tidy;
mod peers;
mod dist;
mod deny;
mod platforms;
mod properties;
mod eval_search;
mod steps;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};

use command::{cargo, run};
use output::{complain, say};
use workspace::Workspace;

const HELP: &str = "\
Development commands for Trunkline.

Usage: cargo xtask <command> [options]

Commands:
  check                   Run the quick checks: formatting, tidy, lints, unit tests
  test                    Run everything that must pass before a change is merged
    --only <step>[,…]     Run only these steps
    --list                List the steps
  tidy                    Check the rules of this repository
    --tighten             Lower and remove entries of xtask/ratchet.txt first
  peers                   Install the third-party programs that the tests talk to
  bench [group…]          Run the benchmarks, or only some groups of them; --help lists them
    --quick               Run a few rounds only
    --data <folder>       Search in the tools of <folder>/mcpzero_tools/tools.jsonl
    --json <file>, --markdown <file>
                          Write the comparison with peers to a file
  dist                    Build the program with a profile of its own work, as target/dist/trunkline
  eval-search             Measure the ranking of tools on labelled sets
    --data <folder>       A folder with one folder per set: tools.jsonl and queries.jsonl
    --limit-queries <n>   Use at most so many queries of each set, chosen by --seed <n>
  help                    Print this

Environment:
  CI=true                 Report every failing test instead of stopping at the first
  TRUNKLINE_REQUIRE_DENY=1
                          Fail when cargo-deny cannot be had, instead of saying so
  TRUNKLINE_REQUIRE_TARGETS=1
                          Fail when the code cannot be checked for macOS and Windows
";

const COMMANDS: &[&str] =
    &["check", "test", "tidy", "peers", "bench", "dist", "eval-search", "help"];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            complain(&causes.join("\n  because: "));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let Some((command, options)) = arguments.split_first() else {
        say(HELP);
        return Ok(());
    };
    if command != "bench" && options.iter().any(|option| is_help(option)) {
        say(HELP);
        return Ok(());
    }
    let workspace = Workspace::find()?;
    match command.as_str() {
        "check" => check(&workspace, options),
        "test" => test(&workspace, options),
        "tidy" => tidy(&workspace, options),
        "peers" => peers(&workspace, options),
        "bench" => bench(&workspace, options),
        "dist" => dist(&workspace, options),
        "eval-search" => eval_search::run(options),
        word if word == "help" || is_help(word) => {
            say(HELP);
            Ok(())
        }
        word => bail!(suggestion::unknown("command", word, COMMANDS)),
    }
}

fn is_help(word: &str) -> bool {
    matches!(word, "--help" | "-h")
}

fn check(workspace: &Workspace, options: &[String]) -> Result<()> {
    if let Some(word) = options.first() {
        bail!("`cargo xtask check` takes no options, and `{word}` was given");
    }
    steps::run_check(workspace)
}

fn test(workspace: &Workspace, options: &[String]) -> Result<()> {
    match TestOptions::parse(options)? {
        TestOptions::List => {
            steps::list();
            Ok(())
        }
        TestOptions::Run { only } => steps::run_steps(workspace, &only),
    }
}

/// Options of `cargo xtask test`; no names mean all steps.
#[derive(Debug, PartialEq, Eq)]
enum TestOptions {
    List,
    Run { only: Vec<String> },
}

impl TestOptions {
    fn parse(options: &[String]) -> Result<Self> {
        let mut only = Vec::new();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match (option.as_str(), option.strip_prefix("--only=")) {
                ("--list", _) => return Ok(Self::List),
                ("--only", _) => match options.next() {
                    Some(steps) => add_steps(&mut only, steps),
                    None => bail!("`--only` needs the name of a step; `--list` shows them"),
                },
                (_, Some(steps)) => add_steps(&mut only, steps),
                (word, None) => bail!(suggestion::unknown("option", word, &["--only", "--list"])),
            }
        }
        Ok(Self::Run { only })
    }
}

fn add_steps(only: &mut Vec<String>, steps: &str) {
    only.extend(steps.split(',').map(str::to_owned));
}

fn tidy(workspace: &Workspace, options: &[String]) -> Result<()> {
    match options {
        [] => {}
        [option] if option == "--tighten" => tidy::tighten(workspace)?,
        [word, ..] => bail!(suggestion::unknown("option", word, &["--tighten"])),
    }
    tidy::check(workspace)?;
    say("tidy: nothing to complain about");
    Ok(())
}

fn peers(workspace: &Workspace, options: &[String]) -> Result<()> {
    if let Some(word) = options.first() {
        bail!("`cargo xtask peers` takes no options, and `{word}` was given");
    }
    peers::install(workspace)
}

fn dist(workspace: &Workspace, options: &[String]) -> Result<()> {
    if let Some(word) = options.first() {
        bail!("`cargo xtask dist` takes no options, and `{word}` was given");
    }
    dist::build(workspace).map(drop)
}

/// Runs the benchmark program of the test kit with its own options. Peers are compared with the program of `dist`.
fn bench(workspace: &Workspace, options: &[String]) -> Result<()> {
    let is_quick = options.iter().any(|option| option == "--quick");
    let is_help = options.iter().any(|option| is_help(option));
    let groups = || options.iter().filter(|option| !option.starts_with('-'));
    let compares = groups().next().is_none() || groups().any(|group| group.starts_with("peers"));
    // Some groups measure the program itself, which they expect beside them.
    run(cargo(workspace).args(["build", "--release", "--locked", "-p", "trunkline-cli"]))?;
    let mut bench = cargo(workspace);
    bench
        .args(["run", "--release", "--locked", "-p", "trunkline-testkit"])
        .args(["--bin", "trunkline-bench", "--"])
        .args(options)
        .env("TRUNKLINE_PEERS", peers::directory(workspace));
    if compares && !is_quick && !is_help {
        peers::install_for_bench(workspace)?;
        match dist::build(workspace) {
            Ok(program) => bench.env("TRUNKLINE_PROGRAM", program),
            Err(error) => {
                complain(&format!("the program is measured without a profile: {error:#}"));
                &mut bench
            }
        };
    }
    run(&mut bench)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<TestOptions> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        TestOptions::parse(&words)
    }

    fn run_only(steps: &[&str]) -> TestOptions {
        let only = steps.iter().map(ToString::to_string).collect();
        TestOptions::Run { only }
    }

    #[test]
    fn steps_are_named_apart_or_together() {
        assert_eq!(parse(&[]).unwrap(), run_only(&[]));
        assert_eq!(parse(&["--only", "fmt"]).unwrap(), run_only(&["fmt"]));
        let both = ["--only=fmt,tidy", "--only", "docs"];
        assert_eq!(parse(&both).unwrap(), run_only(&["fmt", "tidy", "docs"]));
        assert_eq!(parse(&["--list"]).unwrap(), TestOptions::List);
    }

    #[test]
    fn wrong_options_are_reported_with_valid_ones() {
        let error = parse(&["--olny"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `--only`?"), "{error}");
        let error = parse(&["--only"]).unwrap_err().to_string();
        assert!(error.contains("needs the name of a step"), "{error}");
    }

    #[test]
    fn an_unknown_command_is_corrected() {
        let error = dispatch(&["tets".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("unknown command `tets`; did you mean `test`?"), "{error}");
    }

    #[test]
    fn the_help_names_every_command() {
        assert!(COMMANDS.iter().all(|command| HELP.contains(&format!("\n  {command} "))));
    }
}
