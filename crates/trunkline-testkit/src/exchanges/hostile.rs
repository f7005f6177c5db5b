//! A gateway with a server that responds with arbitrary bytes, and a well-behaved one.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::net::TcpListener;
use tokio::time::timeout;
use trunkline::message::{Message, Raw};
use trunkline_gateway::{Scope, serve_stream};

use super::transcript::{Requests, response_id};
use super::{LONGEST_EXCHANGE, host_of, modern, start_words};

/// Capacity of a stream.
const STREAM_BYTES: usize = 64 * 1024;

/// Separates the parts of the bytes. It does not occur in UTF-8 text.
const SEPARATOR: u8 = 0xff;

/// Responses of the server: to discovery or initialization, lists, calls, and all other requests.
type Script = Arc<Mutex<[Vec<u8>; 4]>>;

/// A server with scripted responses, and a well-behaved one.
pub(super) struct HostileServer {
    script: Script,
    url: String,
    words: String,
}

impl HostileServer {
    pub(super) async fn start() -> Self {
        let script = Script::default();
        let router = Router::new().route("/mcp", any(answer)).with_state(Arc::clone(&script));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { script, url, words: start_words().await }
    }

    pub(super) async fn check(&self, bytes: &[u8]) {
        let mut parts = bytes.split(|byte| *byte == SEPARATOR).map(<[u8]>::to_vec);
        let script = [(); 4].map(|()| parts.next().unwrap_or_default());
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
        let server = |url: &str, trust: &str| json!({ "type": "http", "url": url, "trust": trust });
        let trust = if bytes.len().is_multiple_of(2) { "trusted" } else { "untrusted" };
        let mut hostile = server(&self.url, trust);
        hostile["allowTools"] = json!(["t", "p", "x://r"]);
        let host = host_of(&json!({ "hostile": hostile, "words": server(&self.words, "trusted") }));
        let (near, far) = duplex(STREAM_BYTES);
        let (reader, writer) = split(far);
        let serving = tokio::spawn(serve_stream(host.clone(), Scope::default(), reader, writer));
        let exchange = timeout(LONGEST_EXCHANGE, async {
            exchange(near).await;
            serving.await.expect("it does not panic").expect("it ends in order");
            host.shutdown().await;
        });
        exchange.await.expect("everything is answered in time");
    }
}

/// Sends every request that involves the hostile server, and calls the other one.
async fn exchange(stream: tokio::io::DuplexStream) {
    let call = |name: &str| json!({ "name": name, "arguments": { "text": "hello" } });
    let requests = [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("tools/call", call("hostile_t")),
        ("prompts/get", json!({ "name": "hostile_p" })),
        ("resources/read", json!({ "uri": "x://r" })),
        ("tools/call", call("words_shout")),
    ];
    let mut input = String::new();
    for (number, (method, params)) in requests.into_iter().enumerate() {
        input += &format!("{}\n", modern(&format!("request {number}"), method, params));
    }
    let expected = Requests::in_lines(input.as_bytes());
    let (mut reader, mut writer) = split(stream);
    writer.write_all(input.as_bytes()).await.expect("it reads");
    let mut output = Vec::new();
    let mut part = [0; 4096];
    // Closing the stream earlier would limit the time for responses.
    while output.iter().filter(|byte| **byte == b'\n').count() < 8 {
        let length = reader.read(&mut part).await.expect("it writes");
        assert!(length > 0, "it ended: {}", String::from_utf8_lossy(&output));
        output.extend_from_slice(part.get(..length).unwrap_or(&[]));
    }
    writer.shutdown().await.expect("it can be ended");
    reader.read_to_end(&mut output).await.expect("it writes");
    expected.check(&output);
    let last = |line: &&[u8]| {
        let id = response_id(line).map(|id| id.raw().text().to_owned());
        id.as_deref() == Some("\"request 7\"")
    };
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let is_right = |line: &[u8]| memchr::memmem::find(line, b"HELLO").is_some();
    assert!(lines.filter(last).all(is_right), "{}", String::from_utf8_lossy(&output));
}

/// Responds to a request according to the script.
async fn answer(State(script): State<Script>, method: Method, body: Bytes) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let Ok(Message::Request(request)) = Message::read(&body) else {
        return StatusCode::ACCEPTED.into_response();
    };
    let (place, usual) = match &*request.method {
        "server/discover" => (0, discovered()),
        "initialize" => (0, initialized()),
        "tools/list" => (1, json!({ "tools": [{ "name": "t", "inputSchema": {} }] })),
        "prompts/list" => (1, json!({ "prompts": [{ "name": "p" }] })),
        "resources/list" => (1, json!({ "resources": [{ "name": "r", "uri": "x://r" }] })),
        "resources/templates/list" => (1, json!({ "resourceTemplates": [] })),
        "tools/call" => (2, json!({ "content": [], "resultType": "complete" })),
        _ => (3, json!({})),
    };
    let script = script.lock().unwrap_or_else(PoisonError::into_inner);
    let part = script.get(place).cloned().unwrap_or_default();
    drop(script);
    let id = request.id.raw();
    let member = |key: &str, value: &[u8]| {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":"#);
        [head.as_bytes(), value, b"}"].concat()
    };
    let json = [("content-type", "application/json")];
    let events = [("content-type", "text/event-stream")];
    match part.split_first() {
        None => (json, member("result", Raw::from_value(&usual).bytes())).into_response(),
        Some((b'r', value)) => (json, member("result", value)).into_response(),
        Some((b'e', value)) => (json, member("error", value)).into_response(),
        Some((b'm', value)) => {
            let result = member("result", Raw::from_value(&usual).bytes());
            (events, [b"data: ", value, b"\n\ndata: ", &result, b"\n\n"].concat()).into_response()
        }
        Some((b's', value)) => (events, value.to_vec()).into_response(),
        Some((b'h', value)) => {
            let status = value.first().map_or(500, |byte| 200 + u16::from(*byte));
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            (status, json, value.to_vec()).into_response()
        }
        Some(_) => (json, part).into_response(),
    }
}

fn discovered() -> serde_json::Value {
    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {}, "prompts": {}, "resources": {} }, "ttlMs": 0,
        "serverInfo": { "name": "hostile", "version": "1" } })
}

fn initialized() -> serde_json::Value {
    json!({ "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
        "serverInfo": { "name": "hostile", "version": "1" } })
}
