//! Test helpers: messages, a real listener, and a minimal HTTP client.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trunkline_gateway::demo::DemoServer;

pub(crate) const MODERN: &str = "2026-07-28";

/// A legacy request with the ID 1.
pub(crate) fn legacy(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// A modern request with the ID 1 and this protocol version.
pub(crate) fn modern(version: &str, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    legacy(method, &params)
}

/// The response of a demo server, without a transport.
pub(crate) fn ask(server: DemoServer, message: &str) -> Value {
    serde_json::from_str(&server.answer(message).expect("an answer")).unwrap()
}

/// Serves over HTTP for the duration of the test.
pub(crate) async fn listen(server: DemoServer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, server.router()).await });
    address
}

/// An HTTP response, parsed as far as the tests need.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The code of the JSON-RPC error in the body.
    pub(crate) fn error_code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().expect("an error")
    }
}

/// Sends a POST to `/mcp` with these headers and the required ones.
pub(crate) async fn post(address: SocketAddr, headers: &[(&str, &str)], body: &str) -> Response {
    let host = ("Host", &*address.to_string());
    exchange(address, "POST", &[&[host], headers].concat(), body).await
}

/// Sends a request to `/mcp` with exactly these headers, written by hand so that invalid ones can
/// be sent.
pub(crate) async fn exchange(
    address: SocketAddr,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut request = format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.expect("a status");
    Response { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}
