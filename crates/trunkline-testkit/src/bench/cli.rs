//! Measures the program as a user runs it, beside mcporter: lists, a call and completion, with five servers.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use serde_json::json;
use trunkline_testkit::peers;

use crate::measure::{Effort, in_turn};
use crate::own_program::program_path;
use crate::table::{Row, Table};

/// The packages of the five servers, each with its arguments.
const SERVERS: &[(&str, &[&str])] = &[
    ("everything", &["stdio"]),
    ("filesystem", &["."]),
    ("memory", &[]),
    ("sequential-thinking", &[]),
];

const MCPORTER: &str = "mcporter list";

/// The configuration for the daemon of mcporter.
const KEEP_ALIVE: &str = "keep-alive.json";

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    let program = program_path().filter(|path| path.is_file());
    let (Some(program), true) = (program, peers::directory().join("npm.stamp").exists()) else {
        table.note(
            "Not measured: the command line, which needs the program (`cargo build --release -p trunkline-cli`) and the \
             packages of `cargo xtask peers`.",
        );
        return;
    };
    let user = User::new(&program, &peers::node_modules());
    let rounds = effort.few_rounds();
    user.ours(&["tools", "-q"]);
    let (ours, theirs) =
        in_turn(rounds, || user.ours(&["tools", "-q"]), || user.mcporter(&["list"]));
    push(table, "cli: `tools` of five servers, known from the last run", ours, (MCPORTER, theirs));
    let (ours, theirs) =
        in_turn(rounds, || user.ours(&["tools", "-q", "--refresh"]), || user.mcporter(&["list"]));
    push(table, "cli: `tools --refresh` of five servers", ours, (MCPORTER, theirs));
    let call = ["call", "everything", "echo", "message=hello"];
    let (ours, theirs) = in_turn(
        rounds,
        || user.ours(&call),
        || user.mcporter(&["call", "everything.echo", "message=hello"]),
    );
    push(table, "cli: `call` of one tool", ours, ("mcporter call", theirs));
    let complete = ["complete-line", "--", "trunkline call everything_e"];
    let (ours, theirs) = in_turn(rounds, || user.ours(&complete), || user.ours(&["--version"]));
    push(table, "cli: completion of a tool", ours, ("`--version`", theirs));
}

fn push(table: &mut Table, name: &str, ours: Duration, (baseline, time): (&'static str, Duration)) {
    table.push(Row {
        name: name.to_owned(),
        measured: ours.into(),
        baseline: Some((baseline, time.into())),
        aim: None,
    });
}

/// A home with a configuration that all programs read.
pub(crate) struct User {
    folder: PathBuf,
    program: PathBuf,
    modules: PathBuf,
}

impl User {
    pub(crate) fn new(program: &Path, modules: &Path) -> Self {
        let folder = env::temp_dir().join(format!("trunkline-bench-cli-{}", process::id()));
        for folder in [&folder, &folder.join("run"), &folder.join("none")] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder");
        }
        let server = |(name, args): &(&str, &[&str])| {
            let script = format!("@modelcontextprotocol/server-{name}/dist/index.js");
            let mut words = vec![modules.join(script).to_string_lossy().into_owned()];
            words.extend(args.iter().map(|&it| it.to_owned()));
            ((*name).to_owned(), json!({ "command": "node", "args": words }))
        };
        let mut servers: serde_json::Map<_, _> = SERVERS.iter().map(server).collect();
        let time = json!({ "command": peers::python(), "args": ["-m", "mcp_server_time"] });
        servers.insert("time".to_owned(), time);
        let write = |name: &str, servers: &serde_json::Map<_, _>| {
            let text = json!({ "mcpServers": servers }).to_string();
            fs::write(folder.join(name), text).expect("a file");
        };
        write("mcp.json", &servers);
        servers.values_mut().for_each(|entry| entry["lifecycle"] = json!("keep-alive"));
        write(KEEP_ALIVE, &servers);
        Self { folder, program: program.to_owned(), modules: modules.to_owned() }
    }

    fn ours(&self, words: &[&str]) -> Duration {
        self.time(&mut self.our_command(words))
    }

    fn mcporter(&self, words: &[&str]) -> Duration {
        self.time(&mut self.mcporter_command(words))
    }

    pub(crate) fn our_command(&self, words: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.env("TRUNKLINE_CONFIG", self.configuration()).args(words);
        command
    }

    pub(crate) fn mcporter_command(&self, words: &[&str]) -> Command {
        self.mcporter_of(&self.configuration(), words)
    }

    /// A command of mcporter whose daemon keeps the servers.
    pub(crate) fn mcporter_with_daemon(&self, words: &[&str]) -> Command {
        self.mcporter_of(&self.folder.join(KEEP_ALIVE), words)
    }

    fn mcporter_of(&self, configuration: &Path, words: &[&str]) -> Command {
        let mut command = self.command(Path::new("node"));
        command.arg(self.modules.join("mcporter/dist/cli.js"));
        command.arg("--config").arg(configuration).args(words);
        command
    }

    /// A command of FastMCP, which takes the configuration after its name.
    pub(crate) fn fastmcp_command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = self.command(&peers::directory().join("python/bin/fastmcp"));
        command.arg(name).arg(self.configuration()).args(words);
        command
    }

    /// The same command where a service can run.
    pub(crate) fn with_service(&self, mut command: Command) -> Command {
        command.env("XDG_RUNTIME_DIR", self.folder.join("run"));
        command
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("mcp.json")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", &self.folder).current_dir(&self.folder);
        // No service of this user runs there.
        command.env("XDG_RUNTIME_DIR", self.folder.join("none"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The time until a command ends.
    fn time(&self, command: &mut Command) -> Duration {
        let start = Instant::now();
        let status = command.status().expect("the program runs");
        assert!(status.success(), "{command:?} failed");
        start.elapsed()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
