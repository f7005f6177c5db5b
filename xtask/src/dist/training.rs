//! The work that the program is optimised for: calls, lists and starts of the benchmark, and commands of a user.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::remove_folder;
use crate::command::{cargo, run};
use crate::workspace::Workspace;

/// Commands with a configuration of one server.
const COMMANDS: &[&[&str]] = &[
    &["check"],
    &["config"],
    &["status"],
    &["tools", "--refresh"],
    &["tools"],
    &["search", "count the words of a text"],
    &["tokens"],
    &["call", "words_count_words", "text=one line to every MCP server"],
];

/// Names the file that a program with counters writes to.
const COUNTS: &str = "LLVM_PROFILE_FILE";

/// Lets a program work. It has a home directory of its own, and each process writes a file of its own to `counts`: two
/// orders of functions cannot be in one.
pub(super) fn run_all(
    workspace: &Workspace,
    program: &Path,
    home: &Path,
    counts: &Path,
) -> Result<()> {
    let file = counts.join("%p.profraw");
    run(cargo(workspace)
        .args(["run", "--release", "--locked", "-p", "trunkline-testkit"])
        .args(["--bin", "trunkline-bench", "--", "--train"])
        .env("TRUNKLINE_PROGRAM", program)
        .env(COUNTS, &file))?;
    remove_folder(home)?;
    fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
    let command = || {
        let mut command = command(program, home);
        command.env(COUNTS, &file);
        command
    };
    run(command().arg("demo"))?;
    let config = home.join("trunkline.json");
    fs::write(&config, config_of(program)).context("cannot write a configuration")?;
    for words in COMMANDS {
        run(command().args(*words).arg("--config").arg(&config))?;
    }
    Ok(())
}

fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home).current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A configuration with the program as a server.
fn config_of(program: &Path) -> String {
    let program = program.to_string_lossy().replace('\\', r"\\").replace('"', r#"\""#);
    format!(
        r#"{{ "mcpServers": {{ "words": {{ "command": "{program}", "args": ["demo-server", "words"] }} }} }}"#
    )
}
