//! Programs of the system that tests run against: a browser, a D-Bus session and a keychain.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::{run, works};
use crate::output::say;

/// Programs, and the Debian packages that contain them.
const PROGRAMS: &[(&str, &str)] = &[
    ("chromium", "chromium"),
    ("dbus-run-session", "dbus"),
    ("gnome-keyring-daemon", "gnome-keyring"),
];

/// Installs missing programs, as root on Debian; elsewhere fails with the command to run.
pub(super) fn install() -> Result<()> {
    let packages = missing_packages();
    if packages.is_empty() {
        return Ok(());
    }
    let packages = packages.join(" ");
    let is_root = works(Command::new("sh").args(["-c", r#"test "$(id -u)" = 0"#]));
    if !is_root || !is_installed("apt-get") {
        bail!("{}", advice(&packages));
    }
    say(&format!("peers: installing {packages} with apt-get"));
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "--no-install-recommends"]).args(packages.split(' '));
    run(command.env("DEBIAN_FRONTEND", "noninteractive")).with_context(|| advice(&packages))
}

/// Fails if a program is missing.
pub(super) fn require() -> Result<()> {
    match missing_packages().as_slice() {
        [] => Ok(()),
        packages => bail!("{}", advice(&packages.join(" "))),
    }
}

/// Packages of missing programs. Only Linux has a keychain that can be tested without a user, and a browser
/// under this name.
fn missing_packages() -> Vec<&'static str> {
    let is_missing = |(program, _): &&(&str, &str)| !is_installed(program);
    let missing = PROGRAMS.iter().filter(is_missing).map(|(_, package)| *package);
    if cfg!(target_os = "linux") { missing.collect() } else { Vec::new() }
}

fn is_installed(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| Path::new(&folder).join(program).is_file())
}

fn advice(packages: &str) -> String {
    format!(
        "the tests of the page and of the keychain need programs: run `apt-get install {packages}`"
    )
}
