//! The log on standard error: `-v`, `-vv`, `-vvv` and `TRUNKLINE_LOG`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::gateway::INITIALIZE;
use crate::support::program::Folder;

const SECRET: &str = "hunter22-correct-horse";

/// A server that repeats its secret in tools, results, notifications and on standard error.
fn folder() -> Folder {
    let server = json!({
        "command": peers::python(),
        "args": ["-I", peers::repeating_server(), "/srv"],
        "env": { "TOKEN": "${SECRET_TOKEN}" },
    });
    let config = json!({ "mcpServers": { "repeating": server } });
    Folder::new().file("trunkline.json", config.to_string())
}

fn serve(folder: &Folder, arguments: &[&str], log: Option<&str>) -> Child {
    let mut command = folder.command(&[&["serve", "--stdio"], arguments].concat());
    command.env("SECRET_TOKEN", SECRET).env("TRUNKLINE_CACHE", "off");
    if let Some(log) = log {
        command.env("TRUNKLINE_LOG", log);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A client over the standard streams of the program.
struct StdioClient {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: usize,
}

impl StdioClient {
    fn open(process: &mut Child) -> Self {
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut client = Self { input, output: BufReader::new(output), last: 0 };
        client.exchange(INITIALIZE);
        client
    }

    /// Sends a request, and reads until its response.
    fn exchange(&mut self, request: &str) {
        self.last += 1;
        writeln!(self.input, "{request}").unwrap();
        loop {
            let mut answer = String::new();
            assert!(self.output.read_line(&mut answer).unwrap() > 0, "it has ended");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            if answer["id"] == self.last {
                break;
            }
        }
    }

    /// Calls a tool with the secret as an argument.
    fn call(&mut self, tool: &str) {
        let params = json!({ "name": tool, "arguments": { "token": SECRET } });
        let id = self.last + 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.exchange(&request.to_string());
    }
}

/// Calls tools one after the other, and closes the input.
fn call(process: &mut Child, tools: &[&str]) {
    let mut client = StdioClient::open(process);
    tools.iter().for_each(|tool| client.call(tool));
}

fn log_of(arguments: &[&str], variable: Option<&str>) -> String {
    let folder = folder();
    let mut process = serve(&folder, arguments, variable);
    call(&mut process, &["repeating_say", "repeating_fail", "missing"]);
    let mut log = String::new();
    process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    log
}

fn line<'l>(log: &'l str, parts: &[&str]) -> &'l str {
    let found = log.lines().find(|line| parts.iter().all(|part| line.contains(part)));
    found.unwrap_or_else(|| panic!("no line with {parts:?} in\n{log}"))
}

#[test]
fn verbose_logs_requests_and_servers() {
    let log = log_of(&["-v"], None);
    line(&log, &["INFO", "session opened", "client="]);
    line(&log, &["INFO", "server{server=\"repeating\"}", "server ready"]);
    let request = line(&log, &["request finished", "repeating_say"]);
    for part in ["method=\"tools/call\"", "client=", "server=\"repeating\"", "duration_ms="] {
        assert!(request.contains(part), "{part} in {request}");
    }
    assert!(request.starts_with("20") && request.contains("outcome=\"result\""), "{request}");
    line(&log, &["request finished", "item=\"missing\"", "outcome=\"error\"", "code=-32602"]);
    assert!(!log.contains("DEBUG") && !log.contains("TRACE"), "{log}");
}

#[test]
fn more_verbosity_logs_messages_and_bytes() {
    let log = log_of(&["-vvv"], None);
    line(&log, &["DEBUG", "process started", "process="]);
    line(&log, &["DEBUG", "request sent", "method=\"tools/call\""]);
    line(&log, &["DEBUG", "call routed", "request{"]);
    line(&log, &["TRACE", "bytes=", "transport=\"stdio\""]);
}

#[test]
fn a_log_holds_no_secret() {
    let log = log_of(&[], Some("trace"));
    assert!(log.contains("TRACE") && !log.contains("hunter22"), "{log}");
}

#[test]
fn without_verbosity_there_is_no_log() {
    assert_eq!(log_of(&[], None), "");
    assert_eq!(log_of(&["-vvv"], Some("off")), "");
}

#[test]
fn a_wrong_filter_is_a_usage_error() {
    let folder = Folder::new();
    let mut command = folder.command(&["schema"]);
    let run = folder.finish(command.env("TRUNKLINE_LOG", "loud"));
    assert_eq!(run.code, 2, "{run}");
    assert!(run.output.is_empty() && run.messages.contains("TRUNKLINE_LOG"), "{run}");
}

/// Regression: a message of the program waited for a log that was not read, and the program did not
/// end.
#[cfg(unix)]
#[test]
fn the_program_ends_if_the_log_is_not_read() {
    let folder = folder();
    let mut process = serve(&folder, &["-v"], Some("trace"));
    let errors = process.stderr.take();
    let mut client = StdioClient::open(&mut process);
    (0..400).for_each(|_| client.call("repeating_say"));
    // A server that ends is reported in a message of its own.
    let id = process.id().to_string();
    Command::new("pkill").args(["-KILL", "-P", &id]).status().unwrap();
    client.call("repeating_say");
    drop(client);
    assert_eq!(process.wait().unwrap().code(), Some(0));
    drop(errors);
}

/// A host that starts the program may not read its standard error.
#[test]
fn calls_continue_if_the_log_is_not_read() {
    let folder = folder();
    let mut process = serve(&folder, &[], Some("trace"));
    // About 20 lines each: far more than fits into a pipe.
    call(&mut process, &["repeating_say"; 400]);
    drop(process.stderr.take());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
