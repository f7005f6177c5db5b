//! Responses of the server to a client of an era that it does not support.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::http_fixture::{Listening, PROGRAM};

fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn discover() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": params })
}

/// The responses to messages, one after another, over one pipe.
fn ask_over_stdio(generation: &str, messages: &[Value]) -> Vec<Value> {
    let mut command = Command::new(PROGRAM);
    command.args(["stdio", "--generation", generation]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut answers = Vec::new();
    for message in messages {
        writeln!(input, "{message}").unwrap();
        answers.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
    }
    drop(input);
    assert!(process.wait().unwrap().success());
    answers
}

/// The status line and the JSON of the response to one message.
fn ask_over_http(generation: &str, version: &str, message: &Value) -> (String, Value) {
    let server = Listening::new(generation);
    let (host, path) = server.url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = message.to_string();
    let method = message["method"].as_str().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nMcp-Method: {method}\r\n\
         MCP-Protocol-Version: {version}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn a_legacy_process_knows_no_discovery_and_goes_on() {
    let answers = ask_over_stdio("legacy", &[discover(), initialize()]);
    assert_eq!(answers[0]["error"]["code"], -32601);
    assert_eq!(answers[1]["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn a_modern_process_names_its_version_and_goes_on() {
    let answers = ask_over_stdio("modern", &[initialize(), discover()]);
    let error = &answers[0]["error"];
    assert_eq!(
        (&error["code"], &error["data"]["requested"]),
        (&json!(-32022), &json!("2025-11-25"))
    );
    assert_eq!(error["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(answers[1]["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[test]
fn a_process_of_both_generations_answers_either() {
    let answers = ask_over_stdio("both", &[discover(), initialize()]);
    let versions = answers[0]["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2025-11-25")) && versions.contains(&json!("2026-07-28")));
    assert_eq!(answers[1]["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn a_legacy_address_refuses_the_version() {
    let (status, answer) = ask_over_http("legacy", "2026-07-28", &discover());
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32000), &Value::Null));
}

#[test]
fn a_modern_address_names_its_version() {
    let (status, answer) = ask_over_http("modern", "2025-11-25", &initialize());
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    let error = &answer["error"];
    assert_eq!((&error["code"], &answer["id"]), (&json!(-32022), &json!(1)));
    assert_eq!(error["data"]["supported"], json!(["2026-07-28"]));
}
