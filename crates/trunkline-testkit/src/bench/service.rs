//! Measures the background service: the first answer through `connect`, and the memory of many hosts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use serde_json::json;

use crate::bare::BareProcess;
use crate::host::stdio_server;
use crate::measure::{Effort, in_turn};
use crate::own_program::program_path;
use crate::start::INITIALIZE;
use crate::table::{Quantity, Row, Table};

/// Servers of each host.
const SERVERS: usize = 30;

/// Hosts that run at the same time.
const HOSTS: usize = 20;

/// Idle time before memory is measured.
const IDLE: Duration = Duration::from_millis(500);

/// Part of the last answer to [`INITIALIZE`].
const LISTED: &[u8] = br#""id":2,"#;

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    let Some(program) = program_path().filter(|path| path.is_file() && cfg!(target_os = "linux"))
    else {
        table.note(
            "Not measured: the background service, which needs Linux and the program; \
             `cargo build --release -p trunkline-cli` makes it.",
        );
        return;
    };
    first_answer(effort, &program, table);
    list_from_disk(effort, &program, table);
    if effort == Effort::Quick {
        table.note("Not measured with --quick: the memory of 20 hosts with 30 servers.");
    } else {
        memory(&program, table);
    }
}

/// The time until a host has the tools of one server.
fn first_answer(effort: Effort, program: &Path, table: &mut Table) {
    let machine = Machine::new(program, 1);
    machine.time(&["connect"]);
    let (joined, direct) = in_turn(
        effort.few_rounds(),
        || machine.time(&["connect"]),
        || machine.time(&["serve", "--stdio"]),
    );
    table.push(Row {
        name: "service: `connect` to the first list of tools".to_owned(),
        measured: joined.into(),
        baseline: Some(("`serve --stdio`, which starts the server", direct.into())),
        aim: None,
    });
}

/// The time until a user has the tools of many servers, from the lists on disk.
fn list_from_disk(effort: Effort, program: &Path, table: &mut Table) {
    let machine = Machine::new(program, SERVERS);
    let folder = machine.folder.join("cache");
    let folder = folder.to_string_lossy();
    machine.time_tools(&folder);
    let (known, started) =
        in_turn(effort.few_rounds(), || machine.time_tools(&folder), || machine.time_tools("off"));
    table.push(Row {
        name: format!("`tools` of {SERVERS} servers from disk, none of them started"),
        measured: known.into(),
        baseline: Some(("starting all of them", started.into())),
        aim: None,
    });
}

/// The memory of many hosts with many servers: of the service, its clients and its servers, against hosts
/// that each run their own.
fn memory(program: &Path, table: &mut Table) {
    let bytes = |words: &[&str]| {
        let machine = Machine::new(program, SERVERS);
        let hosts: Vec<_> = (0..HOSTS).map(|_| machine.host(words)).collect();
        thread::sleep(IDLE);
        let bytes = machine.private_memory();
        drop(hosts);
        bytes
    };
    table.push(Row {
        name: format!("service: private memory of {HOSTS} hosts with {SERVERS} servers"),
        measured: Quantity::Bytes(bytes(&["connect"])),
        baseline: Some((
            "each with its own servers",
            Quantity::Bytes(bytes(&["serve", "--stdio"])),
        )),
        aim: None,
    });
}

/// A home with a configuration and a service, which end with it.
struct Machine {
    folder: PathBuf,
    program: PathBuf,
}

impl Machine {
    fn new(program: &Path, servers: usize) -> Self {
        let folder = env::temp_dir().join(format!("trunkline-bench-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let servers = (0..servers).map(|number| (format!("s{number}"), stdio_server(0)));
        let servers: serde_json::Map<_, _> = servers.collect();
        let config = json!({ "mcpServers": servers }).to_string();
        fs::write(folder.join("mcp.json"), config).expect("a file");
        Self { folder, program: program.to_owned() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--config").arg(self.folder.join("mcp.json"));
        command.current_dir(&self.folder).env_clear().env("HOME", &self.folder);
        command.env("MARKER", &self.folder).env("TRUNKLINE_CACHE", "off").stderr(Stdio::null());
        command
    }

    /// A host that has the list of tools.
    fn host(&self, words: &[&str]) -> BareProcess {
        let mut process = BareProcess::start(self.command(words));
        process.write(INITIALIZE.as_bytes());
        process.read_until(LISTED);
        process
    }

    /// The time of `tools`, with lists cached in this directory.
    fn time_tools(&self, cache: &str) -> Duration {
        let mut command = self.command(&["tools", "-q"]);
        command.env("TRUNKLINE_CACHE", cache).stdout(Stdio::null());
        let start = Instant::now();
        let status = command.status().expect("the program runs");
        assert!(status.success(), "`tools` failed");
        start.elapsed()
    }

    fn time(&self, words: &[&str]) -> Duration {
        let start = Instant::now();
        let host = self.host(words);
        let time = start.elapsed();
        drop(host);
        time
    }

    /// The private memory of all processes whose home this is.
    fn private_memory(&self) -> f64 {
        let home = format!("HOME={}", self.folder.display());
        let processes = fs::read_dir("/proc").expect("Linux").flatten();
        let is_ours = |path: &Path| {
            let variables = fs::read(path.join("environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|it| it == home.as_bytes())
        };
        let own = processes.map(|it| it.path()).filter(|path| is_ours(path));
        own.map(|path| private_dirty(&path)).sum()
    }
}

fn private_dirty(process: &Path) -> f64 {
    let rollup = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.command(&["down"]).stdout(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
