//! Runs the program with a store for secrets, and never with the keychain of the developer.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::program::{Folder, Run};

/// A value that must not be in any output.
pub(crate) const CANARY: &str = "canary-5f3a9c/\"value\"";

/// A command without a keychain.
pub(crate) fn command(folder: &Folder, arguments: &[&str]) -> Command {
    without_keychain(folder.command(arguments))
}

/// A command without a keychain and without trust in the configuration of the project.
pub(crate) fn bare_command(folder: &Folder, arguments: &[&str]) -> Command {
    without_keychain(folder.bare_command(arguments))
}

fn without_keychain(mut command: Command) -> Command {
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

pub(crate) fn run(folder: &Folder, arguments: &[&str]) -> Run {
    folder.finish(&mut command(folder, arguments))
}

/// Runs a command with a value on its standard input.
pub(crate) fn run_with_input(folder: &Folder, mut command: Command, input: &[u8]) -> Run {
    let file = folder.project().join("../input");
    fs::File::create(&file).unwrap().write_all(input).unwrap();
    command.stdin(Stdio::from(fs::File::open(file).unwrap()));
    folder.finish(&mut command)
}

/// Stores a secret.
pub(crate) fn set(folder: &Folder, name: &str, value: &str) -> Run {
    run_with_input(folder, command(folder, &["secret", "set", name]), value.as_bytes())
}

/// The user's own configuration.
pub(crate) fn write_own_config(folder: &Folder, content: &str) {
    let directory = folder.project().join("../home/.config/trunkline");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("mcp.json"), content).unwrap();
}
