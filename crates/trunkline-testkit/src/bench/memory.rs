//! The memory of a host that waits: with more and more servers, and after they have said much.

use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::host::{Host, program, stdio_server};
use crate::measure::Effort;
use crate::server::params;
use crate::table::{Aim, Quantity, Row, Table};

/// What makes this program a host of so many servers that says how much memory it uses.
pub(crate) const HOST: &str = "--host";

/// Servers of the hosts that are looked at.
const SERVERS: [usize; 3] = [0, 10, 50];

/// What a host with most servers may use.
const MOST: Quantity = Quantity::Bytes(12e6);

/// How much a host may grow when it has nothing more to keep than before, however many servers it
/// has: the allocator keeps a buffer or two to use again, the connections keep nothing.
const GROWTH: f64 = 2e6;

/// How long a host is left alone before it is looked at.
const IDLE: Duration = Duration::from_millis(200);

/// Results of a megabyte: large enough to show where buffers stay.
const RESULT_BYTES: usize = 1_000_000;

/// What a process uses, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    /// All that is in memory, the program itself included, which others may share.
    resident: f64,
    /// What nobody else uses and cannot be read from a file again.
    private: f64,
}

/// A host when it has started, after a large result of each server one by one, and of all at once.
type Stages = [Memory; 3];

/// Is a host, and prints what it uses at each stage.
pub(crate) fn host(servers: usize) -> ExitCode {
    let server = stdio_server(0);
    let host = Host::start(std::iter::repeat_n(&server, servers));
    print_memory();
    for in_flight in [1, servers.max(1)] {
        host.call_each(&params(RESULT_BYTES, 0), in_flight);
        print_memory();
    }
    host.end();
    ExitCode::SUCCESS
}

fn print_memory() {
    thread::sleep(IDLE);
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let field = |key: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        let kilobytes = line.split_whitespace().next().unwrap_or_default().parse::<u64>();
        kilobytes.unwrap_or_default() * 1024
    };
    println!("{} {}", field("Rss:"), field("Private_Dirty:"));
}

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    if !fs::exists("/proc/self/smaps_rollup").unwrap_or(false) {
        table.note("Not measured: memory, which only Linux tells.");
        return;
    }
    let mut empty = None;
    for servers in SERVERS {
        let stages = smallest(effort, servers);
        let empty = *empty.get_or_insert(stages[0]);
        push(servers, &stages, empty, table);
    }
}

/// The smallest memory of several hosts, stage by stage.
fn smallest(effort: Effort, servers: usize) -> Stages {
    let hosts = (0..effort.few_rounds()).map(|_| observe(servers));
    let smaller = |one: Memory, other: Memory| Memory {
        resident: one.resident.min(other.resident),
        private: one.private.min(other.private),
    };
    let least = hosts.reduce(|one, other| std::array::from_fn(|at| smaller(one[at], other[at])));
    least.expect("there is a round")
}

/// Runs a host and takes down what it says.
fn observe(servers: usize) -> Stages {
    let mut command = Command::new(program());
    command.args([HOST, &servers.to_string()]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().expect("the host starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let stage = |line: &str| {
        let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(f64::NAN));
        Memory {
            resident: numbers.next().unwrap_or(f64::NAN),
            private: numbers.next().unwrap_or(f64::NAN),
        }
    };
    let stages: Vec<_> = printed.lines().map(stage).collect();
    stages.try_into().unwrap_or_else(|_| panic!("the host said {printed:?}"))
}

fn push(servers: usize, stages: &Stages, empty: Memory, table: &mut Table) {
    let [start, one_by_one, at_once] = *stages;
    let most = SERVERS.iter().max() == Some(&servers);
    let mut row = |what: &str, measured: f64, against, baseline: f64, aim| {
        table.push(Row {
            name: format!("memory: {servers} stdio servers, {what}"),
            measured: Quantity::Bytes(measured),
            baseline: Some((against, Quantity::Bytes(baseline))),
            aim,
        });
    };
    let limit = most.then_some(Aim::Below(MOST));
    row("resident", start.resident, "without servers", empty.resident, limit);
    row("private", start.private, "without servers", empty.private, None);
    if servers > 0 {
        let growth = Some(Aim::Below(Quantity::Bytes(start.resident + GROWTH)));
        let (before, name) = (start.resident, "before");
        row("resident after 1 MB from each", one_by_one.resident, name, before, growth);
        row("resident after 1 MB from all at once", at_once.resident, name, before, growth);
    }
}
