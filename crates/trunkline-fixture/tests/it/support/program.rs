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
        let folder = self.folder.display();
        vec![
            "env".to_owned(),
            format!("HOME={folder}"),
            format!("XDG_CONFIG_HOME={folder}"),
            format!("XDG_CACHE_HOME={folder}"),
            trunkline().display().to_string(),
            "serve".to_owned(),
            "--stdio".to_owned(),
            // One argument: some clients take a separate `--config` for their own option.
            format!("--config={folder}/config.json"),
        ]
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
