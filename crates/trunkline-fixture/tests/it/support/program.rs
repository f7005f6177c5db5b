//! The program `trunkline` with the fixture server behind it, in a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::{Value, json};

use crate::support::http_fixture::PROGRAM;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory with a configuration; it is removed at the end.
pub(crate) struct Program {
    folder: PathBuf,
}

impl Program {
    /// The program with a stdio server of these eras.
    pub(crate) fn to(generation: &str) -> Self {
        let arguments = ["stdio", "--generation", generation];
        // Clients expect the upstream names.
        let mut server = json!({ "command": PROGRAM, "args": arguments, "prefix": "" });
        server["access"] = "read-write".into();
        Self::over(&json!({ "mcpServers": { "fixture": server } }))
    }

    fn over(config: &Value) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("trunkline-program-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        Self { folder }
    }

    /// The command line that serves over stdio, isolated from the user's files.
    pub(crate) fn words(&self) -> Vec<String> {
        self.command(&["serve", "--stdio"])
    }

    /// The command line of a command, isolated from the user's files.
    pub(crate) fn command(&self, words: &[&str]) -> Vec<String> {
        let folder = self.folder.display();
        let mut command = vec![
            "env".to_owned(),
            format!("HOME={folder}"),
            format!("XDG_CONFIG_HOME={folder}"),
            format!("XDG_CACHE_HOME={folder}"),
            format!("XDG_STATE_HOME={folder}"),
            format!("XDG_RUNTIME_DIR={folder}"),
            trunkline().display().to_string(),
        ];
        command.extend(words.iter().map(ToString::to_string));
        // One argument: some clients take a separate `--config` for their own option.
        command.push(format!("--config={folder}/config.json"));
        command
    }

    /// Runs a command to its end. Returns its output.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let command = self.command(words);
        let output = process::Command::new(&command[0]).args(&command[1..]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The path of the program, which is built beside the server.
fn trunkline() -> PathBuf {
    let program = Path::new(PROGRAM).with_file_name("trunkline");
    assert!(
        program.is_file(),
        "{} is missing: run the tests of the whole workspace, or `cargo build -p trunkline-cli`",
        program.display()
    );
    program
}
