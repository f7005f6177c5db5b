//! Checks the code for systems other than the one that runs the tests.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command::{cargo, output_of, run, works};
use crate::outcome::StepOutcome;
use crate::output::say;
use crate::workspace::Workspace;

/// A system to check.
struct Platform {
    /// As in [`env::consts::OS`].
    system: &'static str,
    target: &'static str,
    /// Arguments of cargo that select packages.
    packages: &'static [&'static str],
}

const PLATFORMS: &[Platform] = &[
    Platform {
        system: "macos",
        target: "x86_64-apple-darwin",
        packages: &["--workspace", "--all-targets"],
    },
    Platform {
        system: "windows",
        target: "x86_64-pc-windows-gnu",
        // The test tools, which all tests use, need process groups and Unix signals.
        packages: &["-p", "trunkline", "-p", "trunkline-gateway", "-p", "trunkline-cli"],
    },
];

/// A program that does nothing and succeeds. It replaces the C compiler in build scripts: a check
/// links nothing, so the object files of C code are not needed.
const NO_COMPILER: &str = "true";

/// Runs the lints for every platform whose target is installed.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    if !works(&mut Command::new(NO_COMPILER)) {
        return not_checked(format!("there is no program `{NO_COMPILER}`"));
    }
    let mut missing = Vec::new();
    for platform in PLATFORMS.iter().filter(|it| it.system != env::consts::OS) {
        if is_installed(workspace, platform.target)? {
            say(&format!("platforms: {}", platform.target));
            run(&mut lints(workspace, platform))?;
        } else {
            missing.push(platform.target);
        }
    }
    match missing.as_slice() {
        [] => Ok(StepOutcome::Checked),
        missing => not_checked(missing_note(missing)),
    }
}

fn missing_note(targets: &[&str]) -> String {
    let install = targets.join(" ");
    format!("{} not installed; install with `rustup target add {install}`", targets.join(", "))
}

fn not_checked(note: String) -> Result<StepOutcome> {
    if env::var_os("TRUNKLINE_REQUIRE_TARGETS").is_some_and(|value| value == "1") {
        bail!("{note}");
    }
    Ok(StepOutcome::Skipped(note))
}

/// Whether the standard library for a target is there, with rustup or without.
fn is_installed(workspace: &Workspace, target: &str) -> Result<bool> {
    let mut command = Command::new("rustc");
    command.current_dir(workspace.root()).args(["--print", "target-libdir", "--target", target]);
    let directory = output_of(&mut command, "install Rust")?;
    Ok(Path::new(&directory).is_dir())
}

/// Clippy instead of `cargo check`, for warnings as errors without a second build of dependencies.
fn lints(workspace: &Workspace, platform: &Platform) -> Command {
    let Platform { target, packages, .. } = *platform;
    let suffix = target.replace('-', "_");
    let mut command = cargo(workspace);
    command
        .args(["clippy", "--locked", "--target", target])
        .args(packages)
        .args(["--", "-D", "warnings"])
        .env(format!("CC_{suffix}"), NO_COMPILER)
        .env(format!("AR_{suffix}"), NO_COMPILER);
    if platform.system == "macos" {
        // Otherwise build scripts ask Xcode for it.
        command.env("SDKROOT", "/");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_target_is_reported_with_an_install_hint() {
        let note = missing_note(&["one-target", "another-target"]);
        let expected = "one-target, another-target not installed; \
                        install with `rustup target add one-target another-target`";
        assert_eq!(note, expected);
    }

    #[test]
    fn build_scripts_get_no_compiler_for_the_target() {
        let workspace = Workspace::at(Path::new("/"));
        let command = lints(&workspace, &PLATFORMS[0]);
        let is_set = |name: &str| {
            command.get_envs().any(|(it, value)| it == name && value.is_some_and(|it| it == "true"))
        };
        assert!(is_set("CC_x86_64_apple_darwin") && is_set("AR_x86_64_apple_darwin"));
    }
}
