//! Memory limits of the gateway under attack by clients and servers. Each attack would take several
//! hundred megabytes of a program without limits.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::gateway::{INITIALIZE, Serving, post};
use crate::support::program::Folder;
use crate::support::wait::LONGEST_START;

/// Limit of the gateway's peak resident memory in KiB: the limit of a principal's requests (64
/// MiB), twice, for copies; and as much again for the program and the allocator.
const PEAK: u64 = 256 * 1024;

/// Bytes of a message that is nearly as long as the limit.
const LONG: usize = 15_000_000;

fn serving(mode: &str) -> (Folder, Serving) {
    let folder = folder_with(mode);
    let serving = Serving::start(&folder, &[]);
    (folder, serving)
}

/// A directory whose configuration has only the flooding server.
pub(crate) fn folder_with(mode: &str) -> Folder {
    let flooding = json!({
        "command": peers::python(),
        "args": ["-I", peers::flooding_server(), mode],
        "protocol": "legacy",
        "timeouts": { "grace": "60s", "call": if mode == "results" { "5m" } else { "20s" } },
    });
    let config = json!({ "mcpServers": { "flooding": flooding } }).to_string();
    Folder::new().file("trunkline.json", config)
}

/// The gateway's peak resident memory so far, in KiB.
fn peak(serving: &Serving) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serving.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

pub(crate) fn assert_within_bounds(serving: &Serving) {
    let peak = peak(serving);
    assert!(peak < PEAK, "{peak} KiB were resident, of {PEAK} KiB");
    // The gateway still serves. A client without a token gets a 401.
    assert!(matches!(post(serving.url(), &[], INITIALIZE).0, 200 | 401));
}

/// The session header of a response to `initialize`.
pub(crate) fn session_of(answer: &str) -> String {
    let mut lines = answer.lines();
    let found = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
    found.unwrap().trim().to_owned()
}

/// The response to a request in a session.
fn ask(url: &str, session: &str, request: &Value) -> String {
    post(url, &[("mcp-session-id", session)], &request.to_string()).1
}

/// A call of the server's only tool.
pub(crate) fn tool_call() -> Value {
    let params = json!({ "name": "flooding_small", "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })
}

#[test]
fn client_info_is_kept_within_bounds() {
    let (_folder, serving) = serving("none");
    let info = json!({ "name": "x".repeat(LONG), "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let request = request.to_string();
    for _ in 0..60 {
        let (status, answer) = post(serving.url(), &[], &request);
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains("64 KiB"), "{answer}");
    }
    assert_within_bounds(&serving);
}

#[test]
fn messages_under_way_are_not_kept_without_bound() {
    let (_folder, serving) = serving("none");
    let authority = serving.url().split('/').nth(2).unwrap().to_owned();
    let sending: Vec<_> = (0..30)
        .map(|_| {
            let authority = authority.clone();
            thread::spawn(move || {
                let mut stream = TcpStream::connect(&authority).unwrap();
                let head = format!(
                    "POST /mcp HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n\
                     content-length: {LONG}\r\n\r\n"
                );
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream.write_all(head.as_bytes()).unwrap();
                // All but the last byte, which is never sent. The request may be refused before
                // that.
                let chunk = vec![b' '; 50_000];
                for _ in 0..LONG / chunk.len() - 1 {
                    if stream.write_all(&chunk).is_err() {
                        break;
                    }
                }
                // A request that waits too long for the budget gets an error.
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let mut answer = [0; 12];
                let is_answered = stream.read_exact(&mut answer).is_ok();
                (is_answered.then(|| String::from_utf8_lossy(&answer).into_owned()), stream)
            })
        })
        .collect();
    let ended: Vec<_> = sending.into_iter().map(|it| it.join().unwrap()).collect();
    let refused = ended.iter().filter(|(answer, _)| answer.as_deref() == Some("HTTP/1.1 503"));
    assert!(refused.count() > 0, "some are told to retry");
    assert_within_bounds(&serving);
}

#[test]
fn answers_to_a_server_that_does_not_read_are_not_kept_without_bound() {
    let (_folder, serving) = serving("pings");
    call(&serving, json!({}));
    assert_within_bounds(&serving);
}

#[test]
fn questions_of_a_server_are_not_kept_without_bound() {
    let (_folder, serving) = serving("questions");
    call(&serving, json!({ "elicitation": {} }));
    assert_within_bounds(&serving);
}

/// Calls the only tool of the server for a client with these capabilities, and waits for the
/// response.
fn call(serving: &Serving, capabilities: Value) {
    let info = json!({ "name": "test", "version": "1" });
    let mut params = json!({ "protocolVersion": "2025-11-25", "clientInfo": info });
    params["capabilities"] = capabilities;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let session = session_of(&post(serving.url(), &[], &request.to_string()).1);
    let answer = ask(serving.url(), &session, &tool_call());
    assert!(answer.contains(r#""id":2"#), "{}", answer.chars().take(2_000).collect::<String>());
}

#[test]
fn a_list_that_is_too_large_loses_its_largest_items_and_comes_in_pages() {
    let (folder, serving) = serving("lists");
    let url = serving.url().to_owned();
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            thread::spawn(move || listed(&url))
        })
        .collect();
    for reader in readers {
        let names = reader.join().unwrap();
        for page in 0..12 {
            let small = format!("flooding_small-{page}");
            assert_eq!(names.iter().filter(|name| **name == small).count(), 1, "{names:?}");
        }
        assert!(names.len() > 12 && names.len() < 30, "some of the large ones stay: {names:?}");
    }
    assert_within_bounds(&serving);
    drop(serving);
    let run = folder.run(&["status", "--format", "json"]);
    assert!(run.output.contains("larger than 8 MiB"), "{run}");
}

/// The names of all tools at a URL, page by page.
fn listed(url: &str) -> Vec<String> {
    let session = session_of(&post(url, &[], INITIALIZE).1);
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let request =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params });
        let answer = ask(url, &session, &request);
        let answer = answer.lines().find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
        });
        let result = &answer.unwrap()["result"];
        let tools = result["tools"].as_array().unwrap();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return names,
        }
    }
}

#[test]
fn instructions_of_a_server_are_cut() {
    let (_folder, serving) = serving("instructions");
    assert!(!listed(serving.url()).is_empty());
    let answer = post(serving.url(), &[], INITIALIZE).1;
    assert!(answer.len() < 100_000, "{} bytes", answer.len());
    assert!(answer.contains("are left out]"), "{answer}");
    assert_within_bounds(&serving);
}

/// How the server's only tool is called.
pub(crate) enum Era<'s> {
    /// In a session, with these headers.
    Legacy(&'s [(&'s str, &'s str)]),
    Modern,
}

/// Calls the tool `count` times, without reading the responses.
pub(crate) fn call_without_reading(url: &str, era: &Era<'_>, count: usize) -> Vec<TcpStream> {
    let authority = url.split('/').nth(2).unwrap();
    let headers = match era {
        Era::Legacy(headers) => {
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
        }
        Era::Modern => "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
                        mcp-name: flooding_small\r\n"
            .to_owned(),
    };
    let called = (0..count).map(|number| {
        let mut meta = json!({ "progressToken": number });
        if matches!(era, Era::Modern) {
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let params = json!({ "name": "flooding_small", "arguments": {}, "_meta": meta });
        let id = 1_000 + number;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let body = body.to_string();
        let mut stream = TcpStream::connect(authority).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n\
             {body}",
            body.len(),
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    called.collect()
}

/// Reads from a stream until it has sent some words.
fn read_until(stream: &mut TcpStream, words: &str) {
    stream.set_read_timeout(Some(LONGEST_START)).unwrap();
    let (mut text, mut chunk) = (Vec::new(), [0; 65_536]);
    while !text.windows(words.len()).any(|it| it == words.as_bytes()) {
        let read = stream.read(&mut chunk);
        let Ok(count @ 1..) = read else {
            panic!("{read:?} before `{words}`: {:.1000}", String::from_utf8_lossy(&text));
        };
        text.extend_from_slice(&chunk[..count]);
    }
}

#[test]
fn unread_responses_are_kept_within_bounds() {
    for is_modern in [false, true] {
        let (_folder, serving) = serving("results");
        let session = session_of(&post(serving.url(), &[], INITIALIZE).1);
        listed(serving.url());
        let headers = [("mcp-session-id", session.as_str())];
        let era = if is_modern { Era::Modern } else { Era::Legacy(&headers) };
        let mut unread = call_without_reading(serving.url(), &era, 100);
        // The server handles one call after another, so the last one has finished when this one
        // has.
        let reader = session_of(&post(serving.url(), &[], INITIALIZE).1);
        let answer = ask(serving.url(), &reader, &tool_call());
        assert!(answer.len() > 4_900_000, "another client is not hurt: {answer:.1000}");
        read_until(unread.last_mut().unwrap(), "was carried out, but its answer of");
        assert_within_bounds(&serving);
    }
}

#[test]
fn unread_progress_is_kept_within_bounds() {
    for is_modern in [false, true] {
        let (_folder, serving) = serving("progress");
        let session = session_of(&post(serving.url(), &[], INITIALIZE).1);
        listed(serving.url());
        let headers = [("mcp-session-id", session.as_str())];
        let era = if is_modern { Era::Modern } else { Era::Legacy(&headers) };
        let _unread = call_without_reading(serving.url(), &era, 60);
        // When this call has timed out, the calls before it have too.
        let reader = session_of(&post(serving.url(), &[], INITIALIZE).1);
        let answer = ask(serving.url(), &reader, &tool_call());
        assert!(answer.contains("within 20s"), "{answer:.1000}");
        assert_within_bounds(&serving);
    }
}

/// A request state with the gateway's prefix costs no memory before it is authenticated.
#[test]
fn a_forged_request_state_makes_nothing_of_long_arguments() {
    let (_folder, serving) = serving("none");
    let url = serving.url();
    listed(url);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let items = "[],".repeat(LONG / 3 - 1_000);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"flooding_small","requestState":"trunkline.AAAA","_meta":{meta},"arguments":{{"a":[{items}[]]}}}}}}"#
    );
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "flooding_small"),
    ];
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (status, answer) = post(url, &headers, &body);
                assert!(answer.contains("is not one of this call"), "{status} {answer:.1000}");
            });
        }
    });
    assert_within_bounds(&serving);
}
