//! `cargo xtask dist`: builds the program with a profile of its own work.
//!
//! `cargo build --release` has to guess which code runs often. Here the program is built with counters, does some work,
//! and is built again with what was counted. A call takes about an eighth less processor time, and code that runs is
//! together in the file, so that less of the file is in memory.

mod first_uses;
mod profile_tool;
mod training;

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{cargo, output_of, run};
use crate::output::say;
use crate::workspace::Workspace;
use profile_tool::{Compiler, ProfileTool};

/// The file name of the program.
const PROGRAM: &str = "trunkline";

/// Extension of profiles.
const PROFILE: &str = "profdata";

/// The two builds and what is between them, below `target/dist`.
struct ProfiledBuild<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
    compiler: Compiler,
}

/// Builds the program, and returns its path. If the sources are as before, only checks that.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("dist");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let build = ProfiledBuild { workspace, folder, compiler: Compiler::find()? };
    let tool = build.compiler.profile_tool(&build.folder)?;
    say("dist: building the program with counters");
    let counting = build.compile("counting", &build.counting_options())?;
    let profile = build.profile(&counting, &tool)?;
    say("dist: building the program with the profile");
    let optimised = build.compile("optimised", &build.optimised_options(&profile, &tool)?)?;
    run(Command::new(&optimised).arg("--version"))?;
    let program = build.folder.join(PROGRAM);
    // Written beside it and renamed, because the program may be running.
    let copy = build.folder.join("trunkline.new");
    fs::copy(&optimised, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    fs::rename(&copy, &program).with_context(|| format!("cannot write {}", program.display()))?;
    say(&format!("dist: {} is ready", program.display()));
    Ok(program)
}

impl ProfiledBuild<'_> {
    /// The folder that a program with counters writes to when it ends.
    fn counts(&self) -> PathBuf {
        self.folder.join("counts")
    }

    /// Options that count how often code runs, and note when each function runs first.
    fn counting_options(&self) -> Vec<String> {
        let counts = format!("-Cprofile-generate={}", self.counts().display());
        vec![counts, "-Cllvm-args=-pgo-temporal-instrumentation".to_owned()]
    }

    /// Options that use a profile.
    fn optimised_options(&self, profile: &Path, tool: &ProfileTool) -> Result<Vec<String>> {
        let mut options = vec![format!("-Cprofile-use={}", profile.display())];
        if self.compiler.target == WITH_LLD {
            let linker = self.write_linker(&tool.print_traces(profile)?)?;
            options.extend(layout_options(profile, &linker));
        }
        Ok(options)
    }

    /// Writes the script that links, beside a list of the functions that come first. Their folder depends on both:
    /// Cargo compares the path of a linker, and not what it does.
    fn write_linker(&self, traces: &str) -> Result<PathBuf> {
        let list = first_uses::functions(traces).join("\n") + "\n";
        let all = self.folder.join("layout");
        remove_folder(&all)?;
        let folder = all.join(format!("{:016x}", digest_of(&(LINK_TWICE, &list))));
        fs::create_dir_all(&folder)?;
        let script = folder.join("link_twice.sh");
        fs::write(folder.join("functions"), list)
            .and_then(|()| fs::write(&script, LINK_TWICE))
            .with_context(|| format!("cannot write to {}", folder.display()))?;
        #[cfg(unix)]
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(script)
    }

    /// Compiles the program in a folder of its own, with more options of the compiler.
    fn compile(&self, name: &str, options: &[String]) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        let flags = encoded_flags(&env::var("RUSTFLAGS").unwrap_or_default(), options);
        // With a target, the options are not those of build scripts and macros.
        run(cargo(self.workspace)
            .args(["build", "--release", "--locked", "-p", "trunkline-cli", "--target"])
            .arg(&self.compiler.target)
            .arg("--target-dir")
            .arg(&folder)
            .env_remove("RUSTFLAGS")
            .env("CARGO_ENCODED_RUSTFLAGS", flags))?;
        Ok(folder.join(&self.compiler.target).join("release").join(PROGRAM))
    }

    /// The profile of a program with counters. Its name depends on the program: Cargo compares the options of the
    /// compiler, and not the files that they name.
    fn profile(&self, counting: &Path, tool: &ProfileTool) -> Result<PathBuf> {
        let profile = self.folder.join(format!("{:016x}.{PROFILE}", digest(counting)?));
        if profile.exists() {
            return Ok(profile);
        }
        say("dist: running it: calls, lists, starts and commands");
        remove_folder(&self.counts())?;
        training::run_all(self.workspace, counting, &self.folder.join("home"), &self.counts())?;
        self.remove_profiles()?;
        tool.merge(&self.counts(), &profile)?;
        Ok(profile)
    }

    /// Removes the profiles of earlier programs.
    fn remove_profiles(&self) -> Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == PROFILE) {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Links with the functions in a given order.
const LINK_TWICE: &str = include_str!("dist/link_twice.sh");

/// The target for which the compiler links with LLD by default.
const WITH_LLD: &str = "x86_64-unknown-linux-gnu";

/// Options for the layout of the program, so that less of it has to be in memory. Functions are in the order in which
/// they ran first, without the parts that did not run. Tables of relocations are small.
fn layout_options(profile: &Path, linker: &Path) -> Vec<String> {
    let mut options = vec![
        format!("-Clinker={}", linker.display()),
        format!("-Clink-arg=-Wl,--irpgo-profile={}", profile.display()),
        "-Clink-arg=-Wl,--bp-startup-sort=function".to_owned(),
        "-Cllvm-args=-enable-split-machine-functions".to_owned(),
        "-Cllvm-args=-mfs-psi-cutoff=0".to_owned(),
        "-Cllvm-args=-mfs-split-ehcode".to_owned(),
    ];
    if packs_relocations() {
        options.push("-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned());
    }
    options
}

/// Whether the C library of this machine reads packed relocations. The program then needs one that does.
fn packs_relocations() -> bool {
    let asked = output_of(Command::new("getconf").arg("GNU_LIBC_VERSION"), "");
    asked.is_ok_and(|text| reads_packed_relocations(&text))
}

/// Whether a version is `glibc 2.36` or later.
fn reads_packed_relocations(text: &str) -> bool {
    let version = text.strip_prefix("glibc ").and_then(|it| it.split_once('.'));
    let Some((major, minor)) = version else { return false };
    let minor = minor.split('.').next().unwrap_or(minor);
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    (number(major), number(minor)) >= (2, 36)
}

/// Separates options in `CARGO_ENCODED_RUSTFLAGS`, so that paths may contain spaces.
const SEPARATOR: &str = "\u{1f}";

/// The value of `CARGO_ENCODED_RUSTFLAGS` for the options of a user and more.
fn encoded_flags(given: &str, more: &[String]) -> String {
    let more = more.iter().map(String::as_str);
    let flags: Vec<_> = given.split_whitespace().chain(more).collect();
    flags.join(SEPARATOR)
}

fn digest(file: &Path) -> Result<u64> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(digest_of(&bytes))
}

fn digest_of(content: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

fn remove_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relocations_are_packed_where_the_c_library_reads_them() {
        for (text, expected) in [
            ("glibc 2.35", false),
            ("glibc 2.36", true),
            ("glibc 2.41.9000", true),
            ("glibc 3.0", true),
            ("musl", false),
            ("", false),
        ] {
            assert_eq!(reads_packed_relocations(text), expected, "{text}");
        }
    }

    #[test]
    fn options_of_a_user_stay_and_a_path_may_have_spaces() {
        let more = "-Cprofile-use=/my target/p";
        let encoded = |given| encoded_flags(given, &[more.to_owned()]);
        assert_eq!(encoded(""), more);
        assert_eq!(encoded(" -Cdebuginfo=1  -g "), format!("-Cdebuginfo=1\u{1f}-g\u{1f}{more}"));
    }
}
