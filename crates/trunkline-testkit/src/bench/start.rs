//! Measures the concurrent start of many servers.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::bare::BareProcess;
use crate::host::{Host, stdio_server};
use crate::measure::{Effort, in_turn};
use crate::table::{Aim, Row, Table};

/// Servers started concurrently.
const SERVERS: usize = 30;

/// Start delay of slow servers, in milliseconds, typical of third-party ones. They sleep, so that
/// 30 need no more processors than one, except to start their processes.
const DELAY: u64 = 1000;

/// Allowed duration relative to the baseline.
const TOGETHER: Aim = Aim::Ratio(1.3);

/// First requests to a modern server.
const DISCOVER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
    "\n",
);

/// First messages to a legacy server: they open a session, and list the tools.
pub(crate) const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
);

/// The reference server of the protocol, in the directory of npm peers.
const REFERENCE: &str = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    let rounds = effort.few_rounds();
    let slow = stdio_server(DELAY);
    let (all, alone) = in_turn(rounds, || ours(&slow, SERVERS), || ours(&slow, 1));
    table.push(Row {
        name: format!("start: {SERVERS} stdio servers that take {DELAY} ms"),
        measured: all.into(),
        baseline: Some(("one of them alone", alone.into())),
        aim: Some(TOGETHER),
    });
    let server = stdio_server(0);
    compare("start: 30 stdio servers that are ready at once", &server, DISCOVER, rounds, table);
    let script = peers::directory().join(REFERENCE);
    if effort == Effort::Quick {
        table.note("Not measured with --quick: the start of 30 reference servers in Node.js.");
    } else if script.is_file() {
        let server = json!({ "command": "node", "args": [script] });
        compare("start: 30 reference servers in Node.js", &server, INITIALIZE, rounds, table);
    } else {
        table.note(
            "Not measured: the start of 30 reference servers in Node.js, which are not \
                    installed; `cargo xtask peers` does that.",
        );
    }
}

/// Starting 30 processes takes more processor time than starting one. The baseline therefore starts
/// the same processes without a host.
fn compare(name: &str, server: &Value, first_words: &str, rounds: u32, table: &mut Table) {
    let (all, limit) =
        in_turn(rounds, || ours(server, SERVERS), || bare(server, first_words, SERVERS));
    table.push(Row {
        name: name.to_owned(),
        measured: all.into(),
        baseline: Some(("the same processes without us", limit.into())),
        aim: Some(TOGETHER),
    });
}

/// Time until a number of servers are ready.
fn ours(server: &Value, count: usize) -> Duration {
    let start = Instant::now();
    let host = Host::start(std::iter::repeat_n(server, count));
    let time = start.elapsed();
    host.end();
    time
}

/// Time until each process has responded to its first two requests.
fn bare(server: &Value, first_words: &str, count: usize) -> Duration {
    let program = server["command"].as_str().unwrap_or_default();
    let arguments: Vec<_> =
        server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let start = Instant::now();
    let begin = |_| {
        let mut command = Command::new(program);
        command.args(&arguments);
        let mut process = BareProcess::start(command);
        process.write(first_words.as_bytes());
        process
    };
    let mut processes: Vec<_> = (0..count).map(begin).collect();
    for process in &mut processes {
        process.read_lines(2);
    }
    start.elapsed()
}
