//! A client of the gateway over a pair of streams.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline_gateway::{Scope, serve_stream};

use super::demo_server::{MODERN, legacy, modern};
use super::echoing_server::echoing;
use super::gateway::TestGateway;
use super::wait::LONGEST;

/// The capacity of the pipe.
pub(crate) const ROOM: usize = 64 * 1024;

/// The client's end of a pipe to a gateway.
pub(crate) struct StdioTestClient {
    pub(crate) stream: BufReader<DuplexStream>,
    pub(crate) gateway: TestGateway,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

impl StdioTestClient {
    pub(crate) async fn new(generation: &str) -> Self {
        Self::to(&json!({ "echoing": echoing(generation) })).await
    }

    pub(crate) async fn to(servers: &Value) -> Self {
        let gateway = TestGateway::to(servers).await;
        let (near, far) = duplex(ROOM);
        let (reader, writer) = split(far);
        let host = gateway.host.clone();
        let serving =
            tokio::spawn(async move { serve_stream(host, Scope::default(), reader, writer).await });
        Self { stream: BufReader::new(near), gateway, serving }
    }

    pub(crate) async fn write(&mut self, message: &str) {
        self.stream.write_all(message.as_bytes()).await.unwrap();
        self.stream.write_all(b"\n").await.unwrap();
    }

    /// The next message except list changes, which may come at any time while servers start.
    pub(crate) async fn read(&mut self) -> Value {
        loop {
            let mut line = String::new();
            let read = timeout(LONGEST, self.stream.read_line(&mut line)).await;
            read.expect("a message in time").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if !message["method"].as_str().is_some_and(|it| it.ends_with("/list_changed")) {
                return message;
            }
        }
    }

    pub(crate) async fn open(&mut self) {
        self.open_offering(&json!({})).await;
    }

    /// Opens a session of a client with these capabilities.
    pub(crate) async fn open_offering(&mut self, capabilities: &Value) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "stdio-test-client", "version": "1" } });
        self.write(&legacy("initialize", &params)).await;
        assert_eq!(self.read().await["result"]["serverInfo"]["name"], "trunkline");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    /// The next response.
    pub(crate) async fn answer(&mut self) -> Value {
        loop {
            let message = self.read().await;
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(crate) async fn end(self) {
        drop(self.stream);
        timeout(LONGEST, self.serving).await.expect("it ends").unwrap().unwrap();
        self.gateway.end().await;
    }
}

/// A call in an era, with an ID.
pub(crate) fn call(is_modern: bool, id: &str, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let written = if is_modern {
        modern(MODERN, "tools/call", params)
    } else {
        legacy("tools/call", &params)
    };
    let mut message: Value = serde_json::from_str(&written).unwrap();
    message["id"] = id.into();
    message.to_string()
}
