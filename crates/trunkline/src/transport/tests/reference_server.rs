//! Both HTTP transports against the reference server of the protocol.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use trunkline_testkit::peers;

use super::scripted_server::{client, notification, request, target};
use crate::message::{Message, Raw};
use crate::protocol::ProtocolVersion;
use crate::transport::http::HttpTransport;
use crate::transport::sse::SseTransport;
use crate::transport::{InboundEvent, MessageKind, OutboundMessage};

/// Node.js starts slowly on a machine that builds at the same time.
const PATIENCE: Duration = Duration::from_secs(100);

/// The server, which is killed when it is dropped, and its origin.
async fn start(transport: &str) -> (Child, String) {
    let script = "@modelcontextprotocol/server-everything/dist/index.js";
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("node");
    command.arg(peers::node_modules().join(script)).arg(transport).env("PORT", port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let listening = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(&port.to_string()) {
                return;
            }
        }
        panic!("{transport}: the server ended");
    };
    timeout(PATIENCE, listening).await.expect("the server starts");
    // Further output must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (server, format!("http://127.0.0.1:{port}"))
}

fn initialize() -> OutboundMessage {
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":
        "2025-11-25","capabilities":{},"clientInfo":{"name":"trunkline","version":"0"}}}"#;
    OutboundMessage { line: line.replace('\n', "").into(), ..request(1, "initialize") }
}

/// A call that reports progress before its response.
fn long_call() -> OutboundMessage {
    let line = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"
        trigger-long-running-operation","arguments":{"duration":0.2,"steps":2},"_meta":{"progressToken":7}}}"#;
    let words: String = line.split_whitespace().collect();
    OutboundMessage { line: words.into(), ..request(3, "tools/call") }
}

enum Wire {
    Http(HttpTransport),
    Sse(SseTransport),
}

impl Wire {
    fn send(&mut self, message: OutboundMessage) {
        match self {
            Self::Http(transport) => transport.send(message),
            Self::Sse(transport) => transport.send(message),
        }
    }

    async fn next(&mut self) -> Message {
        let next = async {
            match self {
                Self::Http(transport) => transport.next().await,
                Self::Sse(transport) => transport.next().await,
            }
        };
        match timeout(PATIENCE, next).await.expect("something happens") {
            InboundEvent::Message(bytes) | InboundEvent::OnRequestStream { line: bytes, .. } => {
                Message::read(&bytes).unwrap()
            }
            InboundEvent::Response(response) => Message::Response(response),
            other => panic!("{other:?}"),
        }
    }

    /// The result of a request, and the number of notifications of a kind before it.
    async fn ask(&mut self, message: OutboundMessage, counted: &str) -> (Raw, usize) {
        let MessageKind::Request { id, .. } = message.purpose else { unreachable!() };
        self.send(message);
        let mut count = 0;
        loop {
            match self.next().await {
                Message::Response(answer) if answer.id.as_number() == Some(id) => {
                    return (answer.outcome.unwrap(), count);
                }
                Message::Notification(told) if &*told.method == counted => count += 1,
                _ => {}
            }
        }
    }

    /// The first requests of any client.
    async fn get_to_know(&mut self) {
        let (welcome, _) = self.ask(initialize(), "").await;
        assert_eq!(welcome.get("protocolVersion").unwrap().as_str().unwrap(), "2025-11-25");
        match self {
            Self::Http(transport) => {
                transport.set_protocol_version(ProtocolVersion::parse("2025-11-25").unwrap());
            }
            Self::Sse(transport) => {
                transport.set_protocol_version(ProtocolVersion::parse("2025-11-25").unwrap());
            }
        }
        self.send(notification("notifications/initialized"));
        match self {
            Self::Http(transport) => transport.open_get_stream(),
            Self::Sse(transport) => transport.open_listening_stream(),
        }
        let (list, _) = self.ask(request(2, "tools/list"), "").await;
        assert!(list.get("tools").unwrap().items().len() >= 10, "{list}");
        let (done, steps) = self.ask(long_call(), "notifications/progress").await;
        assert!(done.get("content").is_some(), "{done}");
        assert_eq!(steps, 2);
    }
}

#[tokio::test]
async fn the_reference_server_is_understood_over_streamable_http() {
    let (mut server, origin) = start("streamableHttp").await;
    let mut transport = Wire::Http(HttpTransport::new(client(), target(&format!("{origin}/mcp"))));
    transport.get_to_know().await;
    let Wire::Http(transport) = transport else { unreachable!() };
    transport.close().await;
    server.kill().await.unwrap();
}

#[tokio::test]
async fn the_reference_server_is_understood_over_http_and_sse() {
    let (mut server, origin) = start("sse").await;
    let target = target(&format!("{origin}/sse"));
    let transport = timeout(PATIENCE, SseTransport::open(client(), target)).await.unwrap().unwrap();
    let mut transport = Wire::Sse(transport);
    transport.get_to_know().await;
    let Wire::Sse(transport) = transport else { unreachable!() };
    transport.close().await;
    server.kill().await.unwrap();
}
