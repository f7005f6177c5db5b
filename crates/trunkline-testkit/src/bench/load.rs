//! Generates load: raw calls over stdio or HTTP with a number in flight, and measures latencies.

use std::time::{Duration, Instant};

use serde_json::json;
use trunkline::message::Raw;

use crate::bare::{BareConnections, BareProcess, READ_BYTES};
use crate::server::params;

/// First request ID on a stream, so that all IDs have the same length.
const FIRST_ID: usize = 100_000_000;

/// Bytes at the start of a response that contain its ID.
const HEAD_BYTES: usize = 64;

const VERSION: &str = "2026-07-28";

/// Calls to make.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// The length of the text in each result.
    pub(crate) answered: usize,
    /// The length of the text in each call.
    pub(crate) carried: usize,
    pub(crate) in_flight: usize,
    pub(crate) count: usize,
}

impl Load {
    /// The parameters of a modern `tools/call` with this tool name.
    fn params(&self, tool: &str) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "0" },
        });
        let params = params(self.answered, self.carried).with("name", &Raw::from_string(tool));
        params.with("_meta", &Raw::from_value(&meta)).text().to_owned()
    }

    fn message(&self, tool: &str, id: usize) -> String {
        let params = self.params(tool);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    }

    /// A call as an HTTP request.
    fn request(&self, tool: &str) -> String {
        let body = self.message(tool, FIRST_ID);
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nmcp-protocol-version: {VERSION}\r\n\
             mcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }
}

/// Makes calls over HTTP and returns their latencies.
pub(crate) fn over_http(
    load: &Load,
    tool: &str,
    connections: &mut BareConnections,
) -> Vec<Duration> {
    connections.call(load.request(tool).as_bytes(), load.count)
}

/// Makes calls over the stdio streams of a process and returns their latencies.
pub(crate) fn over_streams(load: &Load, tool: &str, process: &mut BareProcess) -> Vec<Duration> {
    let lines: Vec<_> =
        (0..load.count).map(|call| load.message(tool, FIRST_ID + call) + "\n").collect();
    let mut asked = vec![Instant::now(); load.in_flight.min(load.count)];
    process.write(lines[..asked.len()].concat().as_bytes());
    let mut times = Vec::with_capacity(load.count);
    let mut chunk = vec![0; READ_BYTES];
    let mut head = Vec::new();
    while times.len() < load.count {
        let read = process.read(&mut chunk);
        let before = times.len();
        let mut lines_read = chunk[..read].split_inclusive(|byte| *byte == b'\n');
        lines_read.by_ref().for_each(|part| {
            head.extend_from_slice(&part[..part.len().min(HEAD_BYTES.saturating_sub(head.len()))]);
            if part.ends_with(b"\n") {
                times.push(asked[call_of(&head)].elapsed());
                head.clear();
            }
        });
        let next = asked.len()..load.count.min(asked.len() + times.len() - before);
        process.write(lines[next.clone()].concat().as_bytes());
        asked.resize(next.end, Instant::now());
    }
    times
}

/// The index of the call that a response belongs to.
fn call_of(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head);
    assert!(head.contains(r#""result":"#), "a call fails: {head}");
    let (_, id) = head.split_once(r#""id":"#).expect("it has an id");
    let digits = id.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.and_then(|id| id.parse::<usize>().ok()).expect("it is a number") - FIRST_ID
}
