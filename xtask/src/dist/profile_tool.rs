//! Finds an `llvm-profdata` that reads what programs of the installed compiler count.

use std::cmp::Reverse;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::remove_folder;
use crate::command::{output_of, run, works};
use crate::peers;

const TOOL: &str = "llvm-profdata";

/// The installed compiler.
pub(super) struct Compiler {
    /// The target that it compiles for by default.
    pub(super) target: String,
    sysroot: PathBuf,
}

/// A program that makes one profile of what several processes counted.
pub(super) struct ProfileTool {
    path: PathBuf,
}

impl Compiler {
    pub(super) fn find() -> Result<Self> {
        let ask = |question: &str| {
            output_of(Command::new("rustc").args(question.split(' ')), "install Rust with rustup")
        };
        let version = ask("--version --verbose")?;
        let target = version.lines().find_map(|line| line.strip_prefix("host: "));
        let target = target.context("`rustc` does not say what it compiles for")?.to_owned();
        Ok(Self { target, sysroot: ask("--print sysroot")?.into() })
    }

    /// Finds the tool, and installs it if no installed one reads the counts of this compiler. The format differs
    /// between versions, so that each is tried on a small program.
    pub(super) fn profile_tool(&self, folder: &Path) -> Result<ProfileTool> {
        let counts = count_sample(folder)?;
        let merged = folder.join("sample.merged");
        let find = || {
            let tools = self.installed_tools().into_iter().map(|path| ProfileTool { path });
            tools.into_iter().find(|tool| works(&mut tool.merge_command(&counts, &merged)))
        };
        if let Some(tool) = find() {
            return Ok(tool);
        }
        let with_rustup = || works(Command::new("rustup").args(["component", "add", "llvm-tools"]));
        let with_debian = || peers::install_profile_tool().is_ok();
        let installs: [&dyn Fn() -> bool; 2] = [&with_rustup, &with_debian];
        for install in installs {
            if install()
                && let Some(tool) = find()
            {
                return Ok(tool);
            }
        }
        bail!(
            "no `{TOOL}` reads the profiles of this compiler; run `rustup component add llvm-tools`"
        )
    }

    /// The tool of the compiler, if it is installed, then those of the system, latest version first.
    fn installed_tools(&self) -> Vec<PathBuf> {
        let own = self.sysroot.join("lib/rustlib").join(&self.target).join("bin").join(TOOL);
        let folders = env::var_os("PATH").unwrap_or_default();
        let files = env::split_paths(&folders).filter_map(|folder| fs::read_dir(folder).ok());
        let paths = files.flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<_> = paths.filter_map(|path| Some((version_of(&path)?, path))).collect();
        found.sort_by_key(|(version, _)| Reverse(*version));
        let own = own.is_file().then_some(own);
        own.into_iter().chain(found.into_iter().map(|(_, path)| path)).collect()
    }
}

impl ProfileTool {
    /// Makes a profile of all counts in a folder.
    pub(super) fn merge(&self, counts: &Path, profile: &Path) -> Result<()> {
        run(&mut self.merge_command(counts, profile))
    }

    /// Prints which functions each process ran, in the order in which they ran first.
    pub(super) fn print_traces(&self, profile: &Path) -> Result<String> {
        let mut command = Command::new(&self.path);
        command.args(["show", "--temporal-profile-traces"]).arg(profile);
        output_of(&mut command, "install it again")
    }

    fn merge_command(&self, counts: &Path, profile: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["merge", "-o"]).arg(profile).arg(counts);
        command
    }
}

/// The version in the name of a tool, as in `llvm-profdata-19`; 0 without one, `None` for another program.
fn version_of(path: &Path) -> Option<u32> {
    let version = path.file_name()?.to_str()?.strip_prefix(TOOL)?;
    if version.is_empty() { Some(0) } else { version.strip_prefix('-')?.parse().ok() }
}

/// Compiles and runs a program that does nothing, and returns the folder with its counts.
fn count_sample(folder: &Path) -> Result<PathBuf> {
    let (source, program) = (folder.join("sample.rs"), folder.join("sample"));
    let counts = folder.join("sample-counts");
    remove_folder(&counts)?;
    fs::write(&source, "fn main() {}\n").context("cannot write a source file")?;
    let option = format!("-Cprofile-generate={}", counts.display());
    run(Command::new("rustc").arg(option).arg("-o").arg(&program).arg(&source))?;
    run(&mut Command::new(&program))?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_may_have_a_version_in_its_name() {
        let version = |name: &str| version_of(&Path::new("/usr/bin").join(name));
        assert_eq!(version("llvm-profdata"), Some(0));
        assert_eq!(version("llvm-profdata-19"), Some(19));
        for other in ["llvm-profgen", "llvm-profdata.exe", "llvm-profdata-", "llvm-profdata-19.bak"]
        {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
