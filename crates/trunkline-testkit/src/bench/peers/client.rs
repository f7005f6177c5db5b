//! A minimal MCP client that measures calls through any peer, over HTTP or stdio, in either era.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{ChildStdin, ChildStdout};

use super::http_response::{HttpResponse, read_response};
use crate::bare::READ_BYTES;

/// The version of a modern client.
const MODERN_VERSION: &str = "2026-07-28";

/// First request ID of calls over stdio, so that all IDs have the same length.
const FIRST_ID: usize = 100_000_000;

/// Bytes of a response that say whether the call succeeded.
const HEAD_BYTES: usize = 1024;

/// The era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientEra {
    Modern,
    /// With the version that it asks for.
    Legacy(&'static str),
}

/// An HTTP endpoint, and how to speak to it.
#[derive(Clone, Debug)]
pub(crate) struct PeerEndpoint {
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) token: Option<String>,
    pub(crate) era: ClientEra,
}

/// Calls: their arguments, and how many are in flight.
#[derive(Clone)]
pub(crate) struct CallShape {
    pub(crate) arguments: Value,
    pub(crate) in_flight: usize,
}

/// A connected client.
pub(crate) enum PeerClient {
    Http(HttpClient),
    Stdio(StdioClient),
}

impl PeerClient {
    /// The number of tools, and the exposed name of the one whose name ends so.
    pub(crate) async fn tools(&mut self, tool: &str) -> Result<(usize, Option<String>), String> {
        let (mut count, mut found) = (0, None::<String>);
        let mut params = json!({});
        loop {
            let page = match self {
                Self::Http(client) => client.request("tools/list", &params).await?,
                Self::Stdio(client) => client.request("tools/list", &params).await?,
            };
            let tools = page["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
            count += tools.len();
            let names = tools.iter().filter_map(|it| it["name"].as_str());
            found = found.or_else(|| {
                names
                    .filter(|name| name.ends_with(tool))
                    .min_by_key(|it| it.len())
                    .map(str::to_owned)
            });
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok((count, found)),
            }
        }
    }

    /// Makes calls and returns their latencies.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        shape: &CallShape,
        count: usize,
    ) -> Result<Vec<Duration>, String> {
        let params = json!({ "name": tool, "arguments": shape.arguments });
        match self {
            Self::Http(client) => client.call(&params, tool, shape.in_flight, count).await,
            Self::Stdio(client) => client.call(&params, shape.in_flight, count).await,
        }
    }
}

/// A message; without an ID, a notification.
fn message(era: ClientEra, id: Option<usize>, method: &str, params: &Value) -> String {
    let mut params = params.clone();
    if era == ClientEra::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "0" },
        });
    }
    let id = id.map_or_else(String::new, |id| format!(r#""id":{id},"#));
    format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#)
}

fn initialize(version: &str) -> Value {
    let client = json!({ "name": "bench", "version": "0" });
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client })
}

/// Fails for a response that is no result, or the result of a failed call.
fn check(head: &[u8]) -> Result<(), String> {
    let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    if has(r#""result":"#) && !has(r#""isError":true"#) {
        return Ok(());
    }
    let head = String::from_utf8_lossy(&head[..head.len().min(300)]).into_owned();
    Err(format!("a call failed: {}", head.trim()))
}

/// A client over HTTP, in one session of a legacy server.
pub(crate) struct HttpClient {
    endpoint: PeerEndpoint,
    session: Option<String>,
    connections: Vec<HttpConnection>,
}

impl HttpClient {
    /// Connects, and opens a session where the era has them.
    pub(crate) async fn open(endpoint: PeerEndpoint) -> Result<Self, String> {
        let connections = vec![HttpConnection { port: endpoint.port, stream: None }];
        let mut client = Self { endpoint, session: None, connections };
        if let ClientEra::Legacy(version) = client.endpoint.era {
            let body = message(client.endpoint.era, Some(1), "initialize", &initialize(version));
            let response = client.post(&body, "initialize").await?;
            client.session = response.session.clone();
            result_of(&response)?;
            let body = message(client.endpoint.era, None, "notifications/initialized", &json!({}));
            client.post(&body, "notifications/initialized").await?;
        }
        Ok(client)
    }

    fn http_request(&self, body: &str, method: &str, tool: Option<&str>) -> String {
        let PeerEndpoint { port, path, token, era } = &self.endpoint;
        let mut headers = String::new();
        match era {
            ClientEra::Modern => {
                headers += &format!("mcp-protocol-version: {MODERN_VERSION}\r\n");
                headers += &format!("mcp-method: {method}\r\n");
                headers += &tool.map(|it| format!("mcp-name: {it}\r\n")).unwrap_or_default();
            }
            ClientEra::Legacy(version) if method != "initialize" => {
                headers += &format!("mcp-protocol-version: {version}\r\n");
            }
            ClientEra::Legacy(_) => {}
        }
        if let Some(session) = &self.session {
            headers += &format!("mcp-session-id: {session}\r\n");
        }
        if let Some(token) = token {
            headers += &format!("authorization: Bearer {token}\r\n");
        }
        format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             {headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    async fn post(&mut self, body: &str, method: &str) -> Result<HttpResponse, String> {
        let request = self.http_request(body, method, None);
        self.connections[0].exchange(request.as_bytes(), usize::MAX).await
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let body = message(self.endpoint.era, Some(2), method, params);
        let response = self.post(&body, method).await?;
        result_of(&response)
    }

    async fn call(
        &mut self,
        params: &Value,
        tool: &str,
        in_flight: usize,
        count: usize,
    ) -> Result<Vec<Duration>, String> {
        let body = message(self.endpoint.era, Some(FIRST_ID), "tools/call", params);
        let request = self.http_request(&body, "tools/call", Some(tool));
        let port = self.endpoint.port;
        self.connections.resize_with(in_flight.max(self.connections.len()), || HttpConnection {
            port,
            stream: None,
        });
        let each = count.div_ceil(in_flight);
        let connections = self.connections.iter_mut().take(in_flight);
        let calls = connections.enumerate().map(|(number, connection)| {
            connection.call(request.clone().into_bytes(), (number, in_flight), each)
        });
        let times: Result<Vec<_>, _> = join_all(calls).await.into_iter().collect();
        Ok(times?.concat())
    }
}

/// The result in a response, which may be an event stream.
fn result_of(response: &HttpResponse) -> Result<Value, String> {
    let text = String::from_utf8_lossy(&response.body);
    let data = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    let messages = data.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut results = messages.filter(|message| message.get("result").is_some());
    match results.next() {
        Some(mut message) => Ok(message["result"].take()),
        None => {
            let start: String = text.chars().take(200).collect();
            Err(format!("no result, status {}: {}", response.status, start.trim()))
        }
    }
}

/// A connection that is opened again when the server has closed it.
struct HttpConnection {
    port: u16,
    stream: Option<TcpStream>,
}

impl HttpConnection {
    async fn exchange(&mut self, request: &[u8], limit: usize) -> Result<HttpResponse, String> {
        for attempt in 0.. {
            let is_new = self.stream.is_none();
            match self.exchange_once(request, limit).await {
                Ok(response) => return Ok(response),
                // Servers close idle connections, and the client learns of it by writing.
                Err(_) if !is_new && attempt == 0 => self.stream = None,
                Err(error) => {
                    self.stream = None;
                    return Err(error.to_string());
                }
            }
        }
        unreachable!("the second attempt has a new connection")
    }

    async fn exchange_once(
        &mut self,
        request: &[u8],
        limit: usize,
    ) -> std::io::Result<HttpResponse> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
                stream.set_nodelay(true)?;
                none.insert(stream)
            }
        };
        stream.write_all(request).await?;
        let response = read_response(stream, limit).await?;
        if !response.is_reusable {
            self.stream = None;
        }
        Ok(response)
    }

    /// Repeats a request with a new ID each time: from `first`, in steps that leave room for the other
    /// connections of the session.
    async fn call(
        &mut self,
        mut request: Vec<u8>,
        (first, step): (usize, usize),
        count: usize,
    ) -> Result<Vec<Duration>, String> {
        let marker = format!(r#""id":{FIRST_ID}"#);
        let at = memchr::memmem::find(&request, marker.as_bytes()).ok_or("no ID")? + 5;
        let mut times = Vec::with_capacity(count);
        for call in 0..count {
            let id = (FIRST_ID + first + call * step).to_string();
            request[at..at + id.len()].copy_from_slice(id.as_bytes());
            let start = Instant::now();
            let response = self.exchange(&request, HEAD_BYTES).await?;
            times.push(start.elapsed());
            check(&response.body)?;
        }
        Ok(times)
    }
}

/// A client over the streams of a process.
pub(crate) struct StdioClient {
    pub(crate) era: ClientEra,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    /// Bytes after the last complete line.
    pub(crate) rest: Vec<u8>,
}

impl StdioClient {
    /// Opens a session where the era has them.
    pub(crate) async fn open(
        era: ClientEra,
        input: ChildStdin,
        output: ChildStdout,
    ) -> Result<Self, String> {
        let mut client = Self { era, input, output, rest: Vec::new() };
        if let ClientEra::Legacy(version) = era {
            client.request("initialize", &initialize(version)).await?;
            let line = message(era, None, "notifications/initialized", &json!({})) + "\n";
            client.write(line.as_bytes()).await?;
        }
        Ok(client)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.input.write_all(bytes).await.map_err(|error| error.to_string())
    }

    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        match self.output.read(buffer).await {
            Ok(0) => Err("the peer closed its output".to_owned()),
            read => read.map_err(|error| error.to_string()),
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let line = message(self.era, Some(1), method, params) + "\n";
        self.write(line.as_bytes()).await?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.rest) {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let Ok(mut message) = serde_json::from_slice::<Value>(&line) else { continue };
                if message["id"] == 1 && message.get("result").is_some() {
                    return Ok(message["result"].take());
                }
                if message["id"] == 1 && message.get("error").is_some() {
                    return Err(format!("`{method}` failed: {}", message["error"]));
                }
            }
            let read = self.read(&mut buffer).await?;
            self.rest.extend_from_slice(&buffer[..read]);
        }
    }

    async fn call(
        &mut self,
        params: &Value,
        in_flight: usize,
        count: usize,
    ) -> Result<Vec<Duration>, String> {
        let line =
            |call: usize| message(self.era, Some(FIRST_ID + call), "tools/call", params) + "\n";
        let lines: Vec<_> = (0..count).map(line).collect();
        let mut asked = vec![Instant::now(); in_flight.min(count)];
        self.write(lines[..asked.len()].concat().as_bytes()).await?;
        let mut times = Vec::with_capacity(count);
        let (mut chunk, mut head) = (vec![0; READ_BYTES], Vec::new());
        while times.len() < count {
            let read = self.read(&mut chunk).await?;
            let before = times.len();
            for part in chunk[..read].split_inclusive(|byte| *byte == b'\n') {
                let room = HEAD_BYTES.saturating_sub(head.len());
                head.extend_from_slice(&part[..part.len().min(room)]);
                if part.ends_with(b"\n") {
                    // Notifications have no ID.
                    if let Some(call) = call_of(&head) {
                        check(&head)?;
                        times.push(asked.get(call).ok_or("an unknown ID")?.elapsed());
                    }
                    head.clear();
                }
            }
            let next = asked.len()..count.min(asked.len() + times.len() - before);
            self.write(lines[next.clone()].concat().as_bytes()).await?;
            asked.resize(next.end, Instant::now());
        }
        Ok(times)
    }
}

/// The index of the call that a response belongs to.
fn call_of(head: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(head, br#""id":"#)? + 5;
    let digits = head[at..].iter().skip_while(|byte| **byte == b' ');
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).map(|byte| *byte as char);
    digits.collect::<String>().parse::<usize>().ok()?.checked_sub(FIRST_ID)
}
