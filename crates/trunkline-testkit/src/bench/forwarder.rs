//! Baseline for the gateway: a proxy that forwards messages and only rewrites request IDs to make
//! them unique across clients.

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use crate::bare::READ_BYTES;
use crate::host::program;
use crate::server::{BOTH_ERAS, SERVE};

/// Maximum number of messages per write.
const BATCH: usize = 64;

/// Starts the benchmark server as a child process.
fn child() -> io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut command = Command::new(program());
    command.args([SERVE, BOTH_ERAS]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let streams = child.stdin.take().zip(child.stdout.take());
    let (input, output) = streams.ok_or_else(|| io::Error::other("they were piped"))?;
    Ok((child, input, output))
}

/// Forwards stdio to stdio: requests get unique IDs, as with several clients, and responses the
/// client's IDs again.
pub(crate) async fn stdio_to_stdio(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (_child, input, output) = child()?;
    let renamed = Mutex::new(RenamedId::default());
    let lock = || renamed.lock().unwrap_or_else(PoisonError::into_inner);
    tokio::select! {
        ended = forward_lines(reader, input, |own| lock().rename(own)) => ended,
        ended = forward_lines(output, writer, |id| lock().name_again(id)) => ended,
    }
}

/// The IDs of pending requests, by the IDs assigned to them.
#[derive(Default)]
struct RenamedId {
    last: u64,
    own: HashMap<u64, Vec<u8>>,
}

impl RenamedId {
    fn rename(&mut self, own: &[u8]) -> Vec<u8> {
        self.last += 1;
        self.own.insert(self.last, own.to_vec());
        self.last.to_string().into_bytes()
    }

    fn name_again(&mut self, id: &[u8]) -> Vec<u8> {
        let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        id.and_then(|id: u64| self.own.remove(&id)).unwrap_or_default()
    }
}

/// Copies lines from one stream to another with rewritten IDs, all available lines per write.
async fn forward_lines(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    rename: impl Fn(&[u8]) -> Vec<u8>,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut written = Vec::new();
    loop {
        let before = buffer.len();
        buffer.reserve(READ_BYTES);
        if from.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[before..]) {
            let line = &buffer[start..=before + end];
            start = before + end + 1;
            if !has_id(line) {
                written.extend_from_slice(line);
                continue;
            }
            let at = id_in(line);
            written.extend_from_slice(&line[..at.start]);
            written.extend_from_slice(&rename(&line[at.clone()]));
            written.extend_from_slice(&line[at.end..]);
        }
        if !written.is_empty() {
            to.write_all(&written).await?;
            to.flush().await?;
            written.clear();
            buffer.drain(..start);
        }
    }
}

/// Forwards HTTP to stdio: requests get unique IDs, and responses their clients' IDs again.
pub(crate) async fn http_to_stdio(listener: TcpListener) -> io::Result<()> {
    let (_child, input, output) = child()?;
    let (lines, inbox) = mpsc::unbounded_channel();
    let desk = Arc::new(ResponseTable { lines, waiting: Mutex::default() });
    let router = Router::new().route("/mcp", post(ask)).with_state(Arc::clone(&desk));
    tokio::select! {
        ended = listen(router, listener) => ended,
        ended = write_lines(inbox, input) => ended,
        ended = read_answers(output, desk) => ended,
    }
}

/// The pending requests, and the channel to the server.
struct ResponseTable {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Mutex<PendingResponse>,
}

#[derive(Default)]
struct PendingResponse {
    last: u64,
    replies: HashMap<u64, oneshot::Sender<Vec<u8>>>,
}

async fn ask(State(desk): State<Arc<ResponseTable>>, body: Bytes) -> Response {
    if !has_id(&body) {
        let _ = desk.lines.send([&*body, b"\n"].concat());
        return StatusCode::ACCEPTED.into_response();
    }
    let (reply, answer) = oneshot::channel();
    let id = {
        let mut waiting = desk.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.last += 1;
        let id = waiting.last;
        waiting.replies.insert(id, reply);
        id
    };
    let own = id_in(&body);
    let mut line = with_id(&body, own.clone(), id.to_string().as_bytes());
    line.push(b'\n');
    let _ = desk.lines.send(line);
    let Ok(mut answer) = answer.await else { return "gone".into_response() };
    let at = id_in(&answer);
    answer.splice(at, body[own].iter().copied());
    ([(CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Whether a message is a request or a response; a notification has no ID.
fn has_id(message: &[u8]) -> bool {
    memmem::find(message, br#""id":"#).is_some()
}

/// Returns the range of the ID in a message: the first `id` member in all messages used here.
fn id_in(message: &[u8]) -> std::ops::Range<usize> {
    const KEY: &[u8] = br#""id":"#;
    let start = memmem::find(message, KEY).map_or(0, |at| at + KEY.len());
    let length = message[start..].iter().position(|byte| matches!(byte, b',' | b'}'));
    start..start + length.unwrap_or(0)
}

fn with_id(message: &[u8], at: std::ops::Range<usize>, id: &[u8]) -> Vec<u8> {
    let mut changed = Vec::with_capacity(message.len() + id.len() + 1);
    changed.extend_from_slice(&message[..at.start]);
    changed.extend_from_slice(id);
    changed.extend_from_slice(&message[at.end..]);
    changed
}

async fn write_lines(
    mut inbox: mpsc::UnboundedReceiver<Vec<u8>>,
    mut input: ChildStdin,
) -> io::Result<()> {
    let mut lines = Vec::new();
    while inbox.recv_many(&mut lines, BATCH).await > 0 {
        match &*lines {
            [line] => input.write_all(line).await?,
            lines => input.write_all(&lines.concat()).await?,
        }
        lines.clear();
    }
    Ok(())
}

async fn read_answers(mut output: ChildStdout, desk: Arc<ResponseTable>) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        let before = buffer.len();
        buffer.reserve(READ_BYTES);
        if output.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[before..]) {
            let line = &buffer[start..before + end];
            start = before + end + 1;
            let id = std::str::from_utf8(&line[id_in(line)]).ok().and_then(|id| id.parse().ok());
            let mut waiting = desk.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reply) = id.and_then(|id: u64| waiting.replies.remove(&id)) {
                let _ = reply.send(line.to_vec());
            }
        }
        buffer.drain(..start);
    }
}

/// Forwards HTTP to HTTP: each response belongs to its request, so IDs are not rewritten.
pub(crate) async fn http_to_http(listener: TcpListener, port: u16) -> io::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let server = Arc::new(Server { client, address: format!("http://127.0.0.1:{port}/mcp") });
    let router = Router::new().route("/mcp", post(pass_on)).with_state(server);
    listen(router, listener).await
}

struct Server {
    client: Client<HttpConnector, Body>,
    address: String,
}

async fn pass_on(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else { return "broken".into_response() };
    head.headers.remove(HOST);
    head.headers.remove(CONTENT_LENGTH);
    head.uri = server.address.parse().expect("it is an address");
    let request = Request::from_parts(head, Body::from(body));
    match server.client.request(request).await {
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            match to_bytes(Body::new(body), usize::MAX).await {
                Ok(body) => Response::from_parts(head, Body::from(body)),
                Err(_) => "broken".into_response(),
            }
        }
        Err(_) => "gone".into_response(),
    }
}

async fn listen(router: Router, listener: TcpListener) -> io::Result<()> {
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}
