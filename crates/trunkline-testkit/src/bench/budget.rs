//! The budget of a relayed call: instructions and allocations of the gateway, which do not depend on the
//! speed of the machine.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use crate::bare::BareConnections;
use crate::host::{HttpServer, program};
use crate::load::{Load, over_http};
use crate::proxy::{COUNTER, GATEWAY, HTTP, PROXY, STDIO, TOOL};

/// The group of this check.
pub(crate) const BUDGET: &str = "budget";

/// Calls of the two runs whose difference is counted, so that the start cancels out.
const FEW_CALLS: usize = 50;
const MANY_CALLS: usize = 250;

/// Calls whose allocations are counted, after as many that fill caches.
const COUNTED_CALLS: usize = 500;

/// File of the budget, in the directory of this crate.
const FILE: &str = "budget.txt";

/// One measurement and its limit.
struct BudgetLine {
    name: String,
    measured: f64,
    limit: Option<f64>,
}

/// Measures relayed calls, and fails if one costs more than the budget.
pub(crate) fn run() -> ExitCode {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let limit = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    let mut lines = Vec::new();
    let mut push = |name: String, measured: f64| {
        let limit = limit(&name);
        lines.push(BudgetLine { name, measured, limit });
    };
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    for back in [STDIO, HTTP] {
        let server = (back == HTTP).then(HttpServer::start);
        let server = server.as_ref().map_or_else(|| STDIO.to_owned(), |it| it.port.to_string());
        push(format!("allocations http-{back}"), allocations(&server));
        if has_valgrind {
            push(format!("instructions http-{back}"), instructions(&server));
        }
    }
    if !has_valgrind {
        println!(
            "Not counted: instructions, because valgrind is not installed (Debian: `apt-get install valgrind`)."
        );
    }
    verdict(&lines, is_comparable(&text))
}

/// Whether the budget holds for this program: counts depend on the compiler and its optimisation.
fn is_comparable(text: &str) -> bool {
    let output = Command::new("rustc").arg("--version").output();
    let version = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let version = version.unwrap_or_default();
    let compiler = version.split(' ').nth(1).unwrap_or("unknown");
    let of_budget = text.lines().find_map(|line| line.strip_prefix("rustc ")).unwrap_or("none");
    if cfg!(debug_assertions) && compiler == of_budget {
        return true;
    }
    println!(
        "Not compared: the budget is of rustc {of_budget} without optimisation, and this is rustc {compiler}{}.",
        if cfg!(debug_assertions) { "" } else { " with optimisation" }
    );
    false
}

fn verdict(lines: &[BudgetLine], is_comparable: bool) -> ExitCode {
    let mut failed = false;
    for BudgetLine { name, measured, limit } in lines {
        let is_exceeded = is_comparable && limit.is_none_or(|limit| *measured > limit);
        failed |= is_exceeded;
        let limit = limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
        let verdict = if is_exceeded { "EXCEEDED" } else { "" };
        println!("{name} per call: {measured:.1}, budget {limit} {verdict}");
    }
    if failed {
        eprintln!("A relayed call costs more than crates/trunkline-testkit/{FILE} allows.");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn calls(count: usize) -> Load {
    Load { answered: 100, carried: 100, in_flight: 1, count }
}

/// The gateway in another process.
struct GatewayProcess {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    connections: BareConnections,
}

impl GatewayProcess {
    fn start(mut command: Command, server: &str) -> Self {
        command.args([PROXY, GATEWAY, HTTP, server, COUNTER]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the gateway starts");
        let input = process.stdin.take();
        let mut output = BufReader::new(process.stdout.take().expect("it was piped"));
        let port = read_number(&mut output) as u16;
        Self { process, input, output, connections: BareConnections::open(port, 1) }
    }

    fn call(&mut self, count: usize) {
        over_http(&calls(count), TOOL, &mut self.connections);
    }

    /// Allocations since its start.
    fn allocations(&mut self) -> u64 {
        let input = self.input.as_mut().expect("it runs");
        input.write_all(b"\n").expect("it listens");
        read_number(&mut self.output)
    }

    /// Ends the process and returns what it wrote to stderr.
    fn end(mut self) -> String {
        drop(self.input.take());
        let mut text = String::new();
        if let Some(mut errors) = self.process.stderr.take() {
            let _ = errors.read_to_string(&mut text);
        }
        let _ = self.process.wait();
        text
    }
}

fn read_number(output: &mut BufReader<ChildStdout>) -> u64 {
    let mut line = String::new();
    output.read_line(&mut line).expect("it answers");
    line.trim().parse().unwrap_or_else(|_| panic!("no number: {line:?}"))
}

fn allocations(server: &str) -> f64 {
    let mut gateway = GatewayProcess::start(Command::new(program()), server);
    gateway.call(COUNTED_CALLS);
    let before = gateway.allocations();
    gateway.call(COUNTED_CALLS);
    let count = gateway.allocations() - before;
    gateway.end();
    count as f64 / COUNTED_CALLS as f64
}

fn instructions(server: &str) -> f64 {
    let of = |count: usize| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program());
        let mut gateway = GatewayProcess::start(command, server);
        gateway.call(count);
        // Processes that the gateway creates without a program of their own have such lines too.
        let heading = format!("=={}== Collected : ", gateway.process.id());
        let text = gateway.end();
        let (_, rest) = text.split_once(&heading).unwrap_or_else(|| panic!("{text}"));
        let number = rest.split_whitespace().next().and_then(|it| it.parse::<f64>().ok());
        number.expect("it is a number")
    };
    (of(MANY_CALLS) - of(FEW_CALLS)) / (MANY_CALLS - FEW_CALLS) as f64
}
