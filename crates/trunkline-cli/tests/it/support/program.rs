//! Runs the program in an empty directory, with a clean environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use trunkline::config::{SearchFile, SearchPath};

use super::output_schema;

/// An empty directory to run in; it is removed at the end.
pub(crate) struct Folder {
    path: PathBuf,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("project")).unwrap();
        Self { path: fs::canonicalize(path).unwrap() }
    }

    /// The working directory of the program.
    pub(crate) fn project(&self) -> PathBuf {
        self.path.join("project")
    }

    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// The program with arguments, after trusting the current configuration of the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.trust();
        self.bare_command(arguments)
    }

    /// The program with arguments, without trusting anything.
    pub(crate) fn bare_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args(arguments).current_dir(self.project()).env_clear();
        command.env("HOME", self.path.join("home"));
        command
    }

    /// Trusts the current configuration of the project, if there is one.
    pub(crate) fn trust(&self) {
        let places = SearchPath::trunkline(None);
        let is_there = |candidate: &SearchFile| self.project().join(&candidate.path).exists();
        if places.candidates.iter().any(is_there) {
            let mut trust = self.bare_command(&["trust", "--yes", "--outside-files"]);
            // An unreadable file cannot be trusted either; such tests expect that.
            let _ = trust.output().unwrap();
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.finish(&mut self.command(arguments))
    }

    /// Runs a command made by [`Folder::command`].
    pub(crate) fn finish(&self, command: &mut Command) -> Run {
        let output = command.output().unwrap();
        output_schema::check(command, &output);
        self.ended(output)
    }

    /// The output of a program that has ended.
    pub(crate) fn ended(&self, output: Output) -> Run {
        Run::new(output, &self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Output and exit code of a run, with the directory's path replaced by `[folder]`.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) messages: String,
}

impl Run {
    fn new(output: Output, folder: &Path) -> Self {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(folder.to_str().unwrap(), "[folder]")
        };
        Self {
            code: output.status.code().expect("the program was not killed"),
            output: text(output.stdout),
            messages: text(output.stderr),
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.output)
            .unwrap_or_else(|error| panic!("{error}: {}", self.output))
    }
}

impl std::fmt::Display for Run {
    /// All of it, for snapshots.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}", self.code)?;
        for (name, text) in [("output", &self.output), ("messages", &self.messages)] {
            if !text.is_empty() {
                write!(f, "\n----- {name}\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}
