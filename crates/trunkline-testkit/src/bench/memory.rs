//! Measures the memory of an idle host: by number of servers, and after large results.

use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::host::{Host, program, stdio_server};
use crate::measure::Effort;
use crate::server::params;
use crate::table::{Aim, Quantity, Row, Table};

/// Argument that makes this program a host with a number of servers that prints its memory usage.
pub(crate) const HOST: &str = "--host";

/// Numbers of servers to measure.
const SERVERS: [usize; 3] = [0, 10, 50];

/// Maximum memory of a host with the most servers.
const MOST: Quantity = Quantity::Bytes(12e6);

/// Allowed growth after large results, regardless of the number of servers: the allocator retains a
/// buffer or two, connections retain nothing.
const GROWTH: f64 = 2e6;

/// Idle time before a measurement.
const IDLE: Duration = Duration::from_millis(200);

/// Size of results: large enough to reveal retained buffers.
const RESULT_BYTES: usize = 1_000_000;

/// Memory usage of a process, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    /// Resident memory, including the program itself, which may be shared.
    resident: f64,
    /// Private memory that is not backed by a file.
    private: f64,
}

/// After the start, after a large result of each server in sequence, and of all concurrently.
type Stages = [Memory; 3];

/// Runs as a host, and prints its memory usage at each stage.
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

/// The smallest memory usage of several hosts, per stage.
fn smallest(effort: Effort, servers: usize) -> Stages {
    let hosts = (0..effort.few_rounds()).map(|_| observe(servers));
    let smaller = |one: Memory, other: Memory| Memory {
        resident: one.resident.min(other.resident),
        private: one.private.min(other.private),
    };
    let least = hosts.reduce(|one, other| std::array::from_fn(|at| smaller(one[at], other[at])));
    least.expect("there is a round")
}

/// Runs a host and parses its output.
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
