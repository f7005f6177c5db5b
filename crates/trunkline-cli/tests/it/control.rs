//! The control API of `serve`: calls, metrics, audit log, events and access.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::gateway::{Serving, post, request};
use crate::support::processes::{LONGEST_START, wait_until};
use crate::support::program::Folder;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"7"}}}"#;

/// A gateway with its control API.
struct Controlled {
    folder: Folder,
    serving: Serving,
    token: String,
}

impl Controlled {
    fn start(settings: &Value) -> Self {
        let program = env!("CARGO_BIN_EXE_trunkline");
        let mut config = settings.clone();
        config["mcpServers"] = json!({
            "words": { "command": program, "args": ["demo-server", "words"] },
            "gone": { "command": "no-such-program" },
        });
        let folder = Folder::new().file("mcp.json", config.to_string());
        let serving = Serving::start(&folder, &["--config", "mcp.json"]);
        let token = folder.run(&["page", "--token"]).output.trim().to_owned();
        Self { folder, serving, token }
    }

    fn address(&self) -> &str {
        self.serving.url().strip_suffix("/mcp").unwrap()
    }

    fn get(&self, path: &str) -> (u16, String) {
        let authorization = format!("Bearer {}", self.token);
        let url = format!("{}{path}", self.address());
        request("GET", &url, &[("authorization", &authorization)], "")
    }

    fn json(&self, path: &str) -> Value {
        let (status, answer) = self.get(path);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Calls a tool as an MCP client.
    fn call(&self, tool: &str, arguments: &Value) -> String {
        let (_, answer) = post(self.serving.url(), &[], INITIALIZE);
        let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("{answer}"));
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
        post(self.serving.url(), &headers, &body.to_string()).1
    }
}

#[test]
fn calls_of_clients_are_listed_counted_and_recorded() {
    let controlled = Controlled::start(&json!({ "audit": { "log": true } }));
    controlled.call("words_shout", &json!({ "text": "secret words" }));
    controlled.call("words_shout", &json!({ "wrong": true }));
    controlled.call("invented_name", &json!({}));
    let calls = controlled.json("/api/v1/calls");
    let calls = calls["items"].as_array().unwrap();
    let outcomes: Vec<_> = calls.iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["denied", "tool_error", "ok"], "{calls:?}");
    assert_eq!((&calls[2]["client"], &calls[2]["server"]), (&json!("tester 7"), &json!("words")));
    assert!(calls[2]["arguments"].is_null() && calls[2]["result"].is_null(), "{calls:?}");
    let failed = controlled.json("/api/v1/calls?outcome=tool_error&limit=1");
    assert_eq!(failed["items"][0]["id"], calls[1]["id"]);

    let (_, metrics) = controlled.get("/metrics");
    for line in [
        r#"trunkline_calls_total{server="words",tool="words_shout",outcome="ok"} 1"#,
        r#"trunkline_calls_total{server="words",tool="words_shout",outcome="tool_error"} 1"#,
        r#"trunkline_calls_total{server="other",tool="other",outcome="denied"} 1"#,
        r#"trunkline_call_duration_seconds_count{server="words"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(metrics.contains("trunkline_requests_in_flight 0"), "{metrics}");
    let is_queue = |line: &&str| line.starts_with("trunkline_server_queue{");
    let queues: Vec<&str> = metrics.lines().filter(is_queue).collect();
    let is_empty = |line: &&str| line.contains(r#"server="words""#) && line.ends_with(" 0");
    assert!(queues.iter().any(is_empty), "{metrics}");
    assert!(metrics.ends_with("# EOF\n") && !metrics.contains("invented_name"), "{metrics}");

    let log = controlled.folder.project().with_file_name("home");
    let log = log.join(".local/state/trunkline/audit.jsonl");
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("all calls are recorded", LONGEST_START, || lines().lines().count() == 3);
    let text = lines();
    assert!(text.contains(r#""client":"tester 7""#) && text.contains("paramsSha256"), "{text}");
    assert!(!text.contains("secret words") && !text.contains("SECRET WORDS"), "{text}");
}

#[test]
fn payloads_are_kept_only_if_configured() {
    let audit = json!({ "audit": { "log": true, "payloads": true } });
    let controlled = Controlled::start(&audit);
    controlled.call("words_shout", &json!({ "text": "words" }));
    let call = &controlled.json("/api/v1/calls")["items"][0];
    assert_eq!(call["arguments"]["text"], "words", "{call}");
    assert_eq!(call["result"]["content"][0]["text"], "WORDS", "{call}");
}

#[test]
fn only_the_owner_gets_in() {
    let controlled = Controlled::start(&json!({}));
    let address = controlled.address();
    let get = |path: &str, headers: &[(&str, &str)]| {
        request("GET", &format!("{address}{path}"), headers, "")
    };
    for path in ["/api/v1/servers", "/metrics", "/servers", "/", "/api/v1/events"] {
        let (status, answer) = get(path, &[]);
        assert_eq!(status, 401, "{path}: {answer}");
        assert!(!answer.contains("words"), "{answer}");
    }
    // The link that was printed opens one session.
    let messages = controlled.serving.messages();
    let link = messages.split_whitespace().find(|word| word.contains("/login?t=")).unwrap();
    let (status, answer) = request("GET", link, &[], "");
    assert_eq!(status, 303, "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(request("GET", link, &[], "").0, 401, "the link works once");
    let (status, answer) = get("/servers", &[("cookie", cookie)]);
    assert!(status == 200 && answer.contains("content-security-policy: default-src 'none'"));
    // A page at another port of this machine is the same site, and not the same origin.
    let stop = format!("{address}/api/v1/projects/main/servers/words/stop");
    let other = [("cookie", cookie), ("sec-fetch-site", "same-site")];
    assert_eq!(request("POST", &stop, &other, "").0, 403);
    let own = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
    assert_eq!(request("POST", &stop, &own, "").0, 200);
    let foreign = [("cookie", cookie), ("origin", "https://evil.example")];
    assert_eq!(get("/servers", &foreign).0, 403);
}

#[test]
fn events_tell_what_has_changed() {
    let controlled = Controlled::start(&json!({}));
    let authority = controlled.address().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let token = &controlled.token;
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(String::is_empty).unwrap();
    controlled.call("words_shout", &json!({ "text": "a" }));
    let mut seen = Vec::new();
    while !["servers", "calls"].iter().all(|kind| seen.contains(&(*kind).to_owned())) {
        let line = lines.next().expect("an event");
        seen.extend(line.strip_prefix("event: ").map(str::to_owned));
    }
}

#[test]
fn a_link_is_made_for_a_gateway_by_its_address() {
    let controlled = Controlled::start(&json!({}));
    let run = controlled.folder.run(&["page", "--address", controlled.address()]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(request("GET", run.output.trim(), &[], "").0, 303);
    let run = controlled.folder.run(&["page"]);
    assert!(run.code == 1 && run.messages.contains("no service is running"), "{run}");
    let run = controlled.folder.run(&["page", "--address", "http://example.com"]);
    assert!(run.code == 1 && run.messages.contains("not this machine"), "{run}");
}

/// A program that took the port of a gateway gets no token, and its link is not printed.
#[test]
fn another_program_at_an_address_gets_no_token() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let run = folder.run(&["page", "--address", &address]);
    assert!(run.code == 1 && run.messages.contains("of this user listens"), "{run}");
    assert!(listener.accept().is_err(), "nothing was sent");
}

/// What was shown is what runs, also through the API and the page.
#[test]
fn a_tool_that_has_changed_since_it_was_shown_is_not_called() {
    let controlled = Controlled::start(&json!({}));
    controlled.call("words_shout", &json!({ "text": "a" }));
    let tool = controlled.json("/api/v1/projects/main/tools/words_shout");
    let authorization = format!("Bearer {}", controlled.token);
    let headers = [("authorization", &*authorization)];
    let url = format!("{}/api/v1/projects/main/tools/words_shout/call", controlled.address());
    let call = |definition: &Value| {
        let body = json!({ "arguments": { "text": "b" }, "definition": definition });
        request("POST", &url, &headers, &body.to_string())
    };
    let (status, answer) = call(&tool["definition"]);
    assert!(status == 200 && answer.contains("\"B\""), "{answer}");
    let (status, answer) = call(&json!("another"));
    assert!(status == 409 && answer.contains("has changed since it was shown"), "{answer}");
    // The form of the page has it too, and fields may be long.
    let form = format!("project=main&name=words_shout&%2Ftext={}&definition=", "é".repeat(50_000));
    let post = |definition: &str| {
        let url = format!("{}/call", controlled.address());
        let headers = [("authorization", &*authorization), ("hx-request", "true")];
        request("POST", &url, &headers, &format!("{form}{definition}"))
    };
    assert_eq!(post("").0, 409);
    let (status, answer) = post(tool["definition"].as_str().unwrap());
    assert!(status == 200 && answer.contains('É'), "{answer}");
}

/// No digit is lost in between.
#[test]
fn arguments_and_results_are_passed_on_as_they_are_written() {
    let controlled = Controlled::start(&json!({}));
    controlled.call("words_shout", &json!({ "text": "a" }));
    let url = format!("{}/api/v1/projects/main/tools/words_shout/call", controlled.address());
    let authorization = format!("Bearer {}", controlled.token);
    let arguments = r#"{"z":1,"a":12345678901234567890123,"x":1.10}"#;
    let body = format!(r#"{{"arguments":{arguments}}}"#);
    let (status, answer) = request("POST", &url, &[("authorization", &authorization)], &body);
    assert!(status == 200 && answer.contains(&format!(r#""sent":{arguments}"#)), "{answer}");
}

/// A collector that keeps what it receives.
struct Collector {
    address: String,
    received: Receiver<(String, String)>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, received) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = sender.send(exchange(stream));
            }
        });
        Self { address, received }
    }

    /// The next document at a path.
    fn next(&self, path: &str) -> Value {
        loop {
            let (to, body) = self.received.recv_timeout(Duration::from_secs(60)).unwrap();
            if to == path {
                return serde_json::from_str(&body).unwrap();
            }
        }
    }
}

/// The path and body of a request, which is accepted.
fn exchange(stream: TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    (path, String::from_utf8(body).unwrap())
}

/// The official messages of OpenTelemetry read both documents, unknown fields not allowed.
#[tokio::test]
async fn requests_are_exported_to_a_collector() {
    let collector = Collector::start();
    let program = env!("CARGO_BIN_EXE_trunkline");
    let config = json!({ "mcpServers": { "words": { "command": program, "args": ["demo-server", "words"] } } });
    let folder = Folder::new().file("mcp.json", config.to_string());
    let mut command = folder.command(&["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    let serving = Serving::run(command);
    let controlled = Controlled { folder, serving, token: String::new() };
    controlled.call("words_shout", &json!({ "text": "private" }));
    let traces = collector.next("/v1/traces");
    let text = traces.to_string();
    assert!(text.contains("tools/call words_shout") && !text.contains("private"), "{text}");
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let kinds: Vec<_> = spans.iter().map(|span| span["kind"].as_u64().unwrap()).collect();
    assert!(kinds.contains(&2) && kinds.contains(&3), "{text}");
    let metrics = collector.next("/v1/metrics");
    assert!(metrics.to_string().contains("mcp.server.operation.duration"), "{metrics}");
    let script = controlled.folder.project().join("read.py");
    let messages = json!({ "traces": traces, "metrics": metrics });
    fs::write(controlled.folder.project().join("documents.json"), messages.to_string()).unwrap();
    fs::write(&script, READ_DOCUMENTS).unwrap();
    let mut command = peers::python_script(&script);
    command.current_dir(controlled.folder.project());
    let printed = peers::run(command).await;
    assert!(printed.starts_with("spans "), "{printed}");
}

const READ_DOCUMENTS: &str = "
import base64, json
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

documents = json.load(open('documents.json'))

def ids(value):
    # OTLP writes IDs in hexadecimal digits, where the JSON of protobuf has base64.
    if isinstance(value, dict):
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ('traceId', 'spanId', 'parentSpanId') else ids(v)
                for k, v in value.items()}
    return [ids(it) for it in value] if isinstance(value, list) else value

traces = json_format.ParseDict(ids(documents['traces']), ExportTraceServiceRequest())
metrics = json_format.ParseDict(documents['metrics'], ExportMetricsServiceRequest())
spans = traces.resource_spans[0].scope_spans[0].spans
assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)
assert metrics.resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points
print('spans', len(spans))
";
