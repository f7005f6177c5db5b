//! Calls over stdio, against a bare loop that writes and reads the same bytes: the limit.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use trunkline::config::{self, NoReferences};
use trunkline::connection::{ChildOptions, Connection, HttpOptions, Options};
use trunkline::message::Raw;
use trunkline_gateway::demo::DemoServer;

use crate::measure::{Effort, shortest};
use crate::table::{Row, Table};

/// What makes this program the server of its own calls.
pub(crate) const SERVE: &str = "--serve";

/// Calls in one round.
const CALLS: usize = 2000;

/// A result of about 200 bytes, and one of about a megabyte.
const SIZES: [(&str, usize, usize); 2] = [("200 B", 100, CALLS), ("1 MB", 900_000, 20)];

/// Serves over standard input and output until that ends.
pub(crate) fn serve() -> ExitCode {
    let served =
        runtime().block_on(DemoServer::Words.serve(tokio::io::stdin(), tokio::io::stdout()));
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    let runtime = runtime();
    let connection = runtime.block_on(async { connected().await });
    for (size, bytes, calls) in SIZES {
        let params = params(bytes);
        let bare_line = bare(effort, &params, calls);
        for in_flight in [1, 64] {
            let measured = shortest(effort, || {
                runtime.block_on(call_many(&connection, &params, calls, in_flight));
            });
            table.push(Row {
                name: format!("stdio: {calls} calls of {size}, {in_flight} in flight"),
                measured,
                baseline_name: "a bare loop, one in flight",
                baseline: bare_line,
                aim: None,
            });
        }
    }
    runtime.block_on(connection.close());
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

fn params(bytes: usize) -> Raw {
    let text = "x".repeat(bytes);
    Raw::from_value(&serde_json::json!({ "name": "shout", "arguments": { "text": text } }))
}

async fn connected() -> Connection {
    let program = env::current_exe().expect("this program is somewhere");
    let text =
        serde_json::json!({ "mcpServers": { "s": { "command": program, "args": [SERVE] } } });
    let loaded = config::parse("bench", text.to_string());
    let server = loaded.config.server("s").expect("it was just written").clone();
    let child = ChildOptions::from_environment(env::vars_os());
    let options = Options::new(Arc::new(NoReferences), child, HttpOptions::default());
    let connection = Connection::new(server, options);
    connection.connect().await.expect("the server starts");
    connection
}

async fn call_many(connection: &Connection, params: &Raw, calls: usize, in_flight: usize) {
    for _ in 0..calls / in_flight.min(calls) {
        let call = || connection.request("tools/call", Some(params.clone()));
        let batch = (0..in_flight.min(calls)).map(|_| call());
        for answer in futures_util::future::join_all(batch).await {
            answer.expect("it answers").expect("it does not refuse");
        }
    }
}

/// The same lines, written and read without anything between.
fn bare(effort: Effort, params: &Raw, calls: usize) -> Duration {
    let program = env::current_exe().expect("this program is somewhere");
    let mut child = Command::new(program)
        .arg(SERVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut input = child.stdin.take().expect("it was piped");
    let mut output = BufReader::new(child.stdout.take().expect("it was piped"));
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}\n");
    let mut answer = Vec::new();
    let time = shortest(effort, || {
        for _ in 0..calls {
            input.write_all(line.as_bytes()).expect("it listens");
            answer.clear();
            output.read_until(b'\n', &mut answer).expect("it answers");
        }
    });
    drop(input);
    let _ = child.wait();
    time
}
