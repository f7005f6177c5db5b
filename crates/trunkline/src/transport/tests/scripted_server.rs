//! A test server that responds with prepared bytes, so that it can misbehave in any way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::config::{RemoteTransport, ResolvedRemote, Secret};
use crate::transport::http::client::{HttpClient, HttpOptions};
use crate::transport::http::endpoint::HttpEndpoint;
use crate::transport::{MessageKind, OutboundMessage};

/// Timeout for events that must occur.
pub(in crate::transport) const PATIENCE: Duration = Duration::from_secs(20);

/// Time for a client to read a reply before the connection is reset. A reset discards the bytes that
/// the other end has not read, and a server does not learn when they are.
const RESET_DELAY: Duration = Duration::from_millis(50);

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(in crate::transport) struct Seen {
    pub(in crate::transport) method: String,
    pub(in crate::transport) path: String,
    headers: HashMap<String, String>,
    pub(in crate::transport) body: String,
    /// The client's port of the connection.
    pub(in crate::transport) port: u16,
}

impl Seen {
    pub(in crate::transport) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The ID of the request in the body, for a response.
    pub(in crate::transport) fn id(&self) -> u64 {
        serde_json::from_str::<serde_json::Value>(&self.body).unwrap()["id"].as_u64().unwrap()
    }
}

/// Waits until bytes that are on their way have been received: those of a later connection come
/// after them.
pub(in crate::transport) async fn round_trips() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..5 {
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        far.unwrap().0.write_all(b"x").await.unwrap();
        near.unwrap().read_u8().await.unwrap();
    }
}

/// The reaction of the server to a request.
pub(in crate::transport) struct Reply {
    bytes: Vec<u8>,
    then: Then,
    /// The server replies once it is notified.
    after: Option<Arc<Notify>>,
}

/// The fate of the connection after a reply.
#[derive(Clone, Copy)]
enum Then {
    Continue,
    Close,
    /// Nothing more is sent; the test is notified when the client disconnects.
    Hang,
    /// Informational responses are sent until the client disconnects, which the test is notified
    /// of.
    Flood,
    Reset,
}

impl Reply {
    /// A complete response.
    pub(in crate::transport) fn new(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self::bytes(status, headers, body.as_bytes())
    }

    /// A complete response with a binary body.
    pub(in crate::transport) fn bytes(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        Self { then: Then::Continue, ..Self::raw([head.as_bytes(), body].concat()) }
    }

    pub(in crate::transport) fn json(body: &str) -> Self {
        Self::new(200, &[("content-type", "application/json")], body)
    }

    pub(in crate::transport) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), then: Then::Close, after: None }
    }

    /// An event stream that ends with the connection.
    pub(in crate::transport) fn events(events: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";
        Self::raw(format!("{head}{events}"))
    }

    /// An event stream that ends and leaves a reusable connection.
    pub(in crate::transport) fn finished_events(events: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let bytes = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
        Self { then: Then::Continue, ..Self::raw(bytes) }
    }

    pub(in crate::transport) fn after(mut self, notify: &Arc<Notify>) -> Self {
        self.after = Some(Arc::clone(notify));
        self
    }

    pub(in crate::transport) fn then_close(mut self) -> Self {
        self.then = Then::Close;
        self
    }

    pub(in crate::transport) fn then_hang(mut self) -> Self {
        self.then = Then::Hang;
        self
    }

    /// Informational responses without an end.
    pub(in crate::transport) fn flood() -> Self {
        Self { then: Then::Flood, ..Self::raw("") }
    }

    pub(in crate::transport) fn then_reset(mut self) -> Self {
        self.then = Then::Reset;
        self
    }
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A server on its own port, until it is dropped.
pub(in crate::transport) struct ScriptedServer {
    pub(in crate::transport) origin: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    left: mpsc::UnboundedReceiver<()>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[derive(Clone)]
struct Shared {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
    leaving: mpsc::UnboundedSender<()>,
}

impl ScriptedServer {
    pub(in crate::transport) async fn start(
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (leaving, left) = mpsc::unbounded_channel();
        let shared = Shared { script: Arc::new(script), seen: seen.clone(), leaving };
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { origin, seen, left, accepting }
    }

    /// Sends the replies one after the other, whatever the request.
    pub(in crate::transport) async fn in_turn(replies: Vec<Reply>) -> Self {
        let replies = Mutex::new(replies.into_iter());
        Self::start(move |_| replies.lock().unwrap().next().expect("a reply is left")).await
    }

    pub(in crate::transport) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until the client has closed a connection that hung.
    pub(in crate::transport) async fn client_left(&mut self) {
        timeout(PATIENCE, self.left.recv()).await.expect("the client leaves").unwrap();
    }

    /// Waits until `count` requests have arrived.
    pub(in crate::transport) async fn saw(&self, count: usize) {
        let wait = async {
            while self.seen().len() < count {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the requests come");
    }

    pub(in crate::transport) fn target(&self) -> HttpEndpoint {
        target(&format!("{}/mcp?key=sesame", self.origin))
    }
}

async fn serve(mut stream: TcpStream, shared: Shared) {
    while let Some(seen) = read(&mut stream).await {
        shared.seen.lock().unwrap().push(seen.clone());
        let reply = (shared.script)(&seen);
        if let Some(after) = &reply.after {
            after.notified().await;
        }
        if stream.write_all(&reply.bytes).await.is_err() {
            return;
        }
        match reply.then {
            Then::Continue => {}
            Then::Close => return,
            Then::Hang => {
                while matches!(stream.read(&mut [0; 1024]).await, Ok(count) if count > 0) {}
                let _ = shared.leaving.send(());
                return;
            }
            Then::Flood => {
                let flood = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(5000);
                while stream.write_all(&flood).await.is_ok() {}
                let _ = shared.leaving.send(());
                return;
            }
            Then::Reset => {
                sleep(RESET_DELAY).await;
                stream.set_zero_linger().unwrap();
                return;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let pairs = lines.filter_map(|line| line.split_once(": "));
    let headers: HashMap<_, _> =
        pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).unwrap();
    let port = stream.peer_addr().ok()?.port();
    Some(Seen { method: first.next()?, path: first.next()?, headers, body, port })
}

pub(in crate::transport) fn client() -> HttpClient {
    HttpClient::new(&HttpOptions::default()).unwrap()
}

/// An endpoint with a secret in its headers.
pub(in crate::transport) fn target(url: &str) -> HttpEndpoint {
    let headers = vec![("Authorization".into(), Secret::new("Bearer hunter2"))];
    let protocol = RemoteTransport::Streamable;
    let (url, filled_in) = (Secret::new(url), Vec::new());
    HttpEndpoint::new(&ResolvedRemote {
        url,
        headers,
        protocol,
        oauth: None,
        headers_command: None,
        filled_in,
    })
    .unwrap()
}

/// A request without parameters.
pub(in crate::transport) fn request(id: u64, method: &str) -> OutboundMessage {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
    let purpose =
        MessageKind::Request { id, method: method.into(), name: None, parameters: Vec::new() };
    OutboundMessage::new(line.into(), purpose)
}

/// A notification without parameters.
pub(in crate::transport) fn notification(method: &str) -> OutboundMessage {
    let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
    OutboundMessage::new(line.into(), MessageKind::Notification { method: method.into() })
}

/// The response to a request.
pub(in crate::transport) fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}
