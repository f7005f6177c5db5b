//! Programs of the system that tests run against: a browser, a D-Bus session and a keychain.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::{run, works};
use crate::output::{complain, say};

/// Programs, and the Debian packages that contain them.
const PROGRAMS: &[(&str, &str)] = &[
    ("chromium", "chromium"),
    ("dbus-run-session", "dbus"),
    ("gnome-keyring-daemon", "gnome-keyring"),
];

/// Programs that a check or the benchmark can do without, and their packages: counts of instructions, the limit of
/// a proxy for HTTP, and profiles.
const OPTIONAL: &[(&str, &str)] =
    &[("valgrind", "valgrind"), ("nginx", "nginx-light"), (PROFILE_TOOL, "llvm-19")];

/// Reads the profiles of compilers up to now, unlike that of Debian's default version.
const PROFILE_TOOL: &str = "llvm-profdata-19";

/// Directories of programs for administrators, which are not in everyone's `PATH`.
const SYSTEM_FOLDERS: &[&str] = &["/usr/sbin", "/usr/local/sbin"];

/// Installs programs that the benchmark can do without, where that is possible.
pub(super) fn install_for_bench() {
    if let Err(error) = install_optional("nginx") {
        complain(&format!("peers: nginx is not compared with: {error:#}"));
    }
}

/// Installs the program that counts instructions, where that is possible.
pub(super) fn install_valgrind() {
    if let Err(error) = install_optional("valgrind") {
        complain(&format!("peers: instructions are not counted: {error:#}"));
    }
}

/// Installs a tool that merges profiles.
pub(super) fn install_profile_tool() -> Result<()> {
    install_optional(PROFILE_TOOL)
}

fn install_optional(program: &str) -> Result<()> {
    let missing = OPTIONAL.iter().find(|(name, _)| *name == program && !is_installed(name));
    match missing {
        Some((_, package)) if cfg!(target_os = "linux") => install_packages(package),
        _ => Ok(()),
    }
}

/// Installs missing programs, as root on Debian; elsewhere fails with the command to run.
pub(super) fn install() -> Result<()> {
    let packages = missing_packages();
    if packages.is_empty() {
        return Ok(());
    }
    install_packages(&packages.join(" "))
}

fn install_packages(packages: &str) -> Result<()> {
    let is_root = works(Command::new("sh").args(["-c", r#"test "$(id -u)" = 0"#]));
    if !is_root || !is_installed("apt-get") {
        bail!("{}", advice(packages));
    }
    say(&format!("peers: installing {packages} with apt-get"));
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "--no-install-recommends"]).args(packages.split(' '));
    run(command.env("DEBIAN_FRONTEND", "noninteractive")).with_context(|| advice(packages))
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
    let system = SYSTEM_FOLDERS.iter().map(PathBuf::from);
    env::split_paths(&folders).chain(system).any(|folder| folder.join(program).is_file())
}

fn advice(packages: &str) -> String {
    format!("tests and measurements need programs: run `apt-get install {packages}`")
}
