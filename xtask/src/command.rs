//! Runs other programs: cargo with the environment of a shell, and errors that contain the command.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::workspace::Workspace;

/// Variables that `cargo run` sets for this program. Build scripts that depend on them would
/// rebuild their crates on every switch between `cargo test` and `cargo xtask test`.
const SET_BY_CARGO_RUN: &[&str] = &["CARGO_BIN_", "CARGO_CRATE_", "CARGO_MANIFEST_", "CARGO_PKG_"];

/// Cargo in the workspace root, with the environment of the shell instead of `cargo run`.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(cargo_program());
    command.current_dir(workspace.root());
    for (name, _) in env::vars_os() {
        if is_set_by_cargo_run(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn is_set_by_cargo_run(name: &str) -> bool {
    SET_BY_CARGO_RUN.iter().any(|prefix| name.starts_with(prefix))
}

/// Runs a program with visible output, and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| {
        anyhow!(error).context(format!("cannot start `{}`", described(command)))
    })?;
    if !status.success() {
        bail!("`{}` failed with {status}", described(command));
    }
    Ok(())
}

/// Whether a program starts and succeeds, with hidden output.
pub(crate) fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The trimmed output of a program; the error for a missing or failing one contains `advice`.
pub(crate) fn output_of(command: &mut Command, advice: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`{program}` is not installed; {advice}")
        }
        other => other.with_context(|| format!("cannot start `{program}`"))?,
    };
    if !output.status.success() {
        let complaint = last_line(&output.stderr);
        bail!("`{program}` is installed but of no use ({complaint}); {advice}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The last line, where most programs report the error.
fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().lines().last().unwrap_or("no reason given").to_owned()
}

/// The command line for messages.
pub(crate) fn described(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or(&program);
    let mut words = vec![name.to_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_described_by_name_and_arguments() {
        let mut command = Command::new("/opt/bin/cargo");
        command.args(["fmt", "--check"]);
        assert_eq!(described(&command), "cargo fmt --check");
    }

    #[test]
    fn missing_program_is_reported_with_an_install_hint() {
        let mut command = Command::new("no-such-program-anywhere");
        let error = output_of(&mut command, "install it").unwrap_err();
        assert_eq!(error.to_string(), "`no-such-program-anywhere` is not installed; install it");
    }

    #[test]
    fn failed_program_is_reported_with_its_last_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo too old >&2; exit 1"]);
        let error = output_of(&mut command, "install another").unwrap_err();
        assert_eq!(error.to_string(), "`sh` is installed but of no use (too old); install another");
    }

    #[test]
    fn a_failing_program_is_named() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert!(error.to_string().starts_with("`false` failed"), "{error}");
    }

    #[test]
    fn only_variables_of_cargo_run_are_removed() {
        assert!(is_set_by_cargo_run("CARGO_PKG_NAME"));
        assert!(!is_set_by_cargo_run("CARGO_TARGET_DIR"));
        assert!(!is_set_by_cargo_run("CARGO_HOME"));
    }
}
