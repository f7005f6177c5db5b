//! A keep-alive connection to the gateway, cheap enough for a thousand of them.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::wait::LONGEST;

/// Bytes per read.
const PART: usize = 4096;

/// An HTTP request.
pub(crate) struct Sent<'s> {
    pub(crate) method: &'s str,
    pub(crate) path: &'s str,
    pub(crate) headers: &'s [(&'s str, &'s str)],
    pub(crate) body: &'s str,
}

impl<'s> Sent<'s> {
    /// A POST to the gateway, with headers beside those of every message.
    pub(crate) fn post(headers: &'s [(&'s str, &'s str)], body: &'s str) -> Self {
        Self { method: "POST", path: "/mcp", headers, body }
    }
}

/// The rest of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Bytes(usize),
    Chunks,
    Nothing,
}

/// Status and headers of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    text: String,
}

impl Head {
    /// The value of a header, by its lowercase name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.text.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.get("content-type") == Some("text/event-stream")
    }
}

/// An SSE event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// `None` if the event has only an ID.
    pub(crate) message: Option<Value>,
}

/// A connection with sequential requests.
pub(crate) struct Channel {
    address: SocketAddr,
    stream: TcpStream,
    /// Bytes that were read from the connection and not parsed yet.
    unread: Vec<u8>,
    rest: Rest,
    /// Text that was read from an SSE stream and not parsed yet.
    events: String,
}

impl Channel {
    pub(crate) async fn to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (unread, events) = (Vec::new(), String::new());
        Ok(Self { address, stream, unread, rest: Rest::Nothing, events })
    }

    /// Sends a request and reads the headers of the response. The body has to be read next.
    pub(crate) async fn send(&mut self, sent: &Sent<'_>) -> io::Result<Head> {
        self.write(sent).await?;
        self.head().await
    }

    /// Sends a request without waiting for the response.
    pub(crate) async fn write(&mut self, sent: &Sent<'_>) -> io::Result<()> {
        let Sent { method, path, headers, body } = sent;
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        let length = body.len().to_string();
        let host = self.address.to_string();
        let all = [
            ("Host", &*host),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", &*length),
        ];
        let is_given =
            |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let ours = all.iter().filter(|(name, _)| !is_given(name));
        for (name, value) in ours.chain(headers.iter()) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.stream.write_all(request.as_bytes()).await
    }

    /// Disconnects, and waits until the gateway has noticed. The gateway closes its end only when it
    /// drops the connection with its unfinished response.
    pub(crate) async fn leave(mut self) {
        self.stream.shutdown().await.unwrap();
        let rest = self.stream.read_to_end(&mut self.unread);
        timeout(LONGEST, rest).await.expect("the gateway notices").unwrap();
    }

    async fn head(&mut self) -> io::Result<Head> {
        let end = loop {
            let found = self.unread.windows(4).position(|it| it == b"\r\n\r\n");
            match found {
                Some(end) => break end,
                None => self.read().await?,
            }
        };
        let text: Vec<u8> = self.unread.drain(..end + 4).collect();
        let text = String::from_utf8(text).expect("a head is text");
        let status = text.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let head = Head { status, text };
        self.events.clear();
        self.rest = match head.get("content-length").map(|it| it.parse().expect("a length")) {
            Some(length) => Rest::Bytes(length),
            None if head.get("transfer-encoding") == Some("chunked") => Rest::Chunks,
            None => Rest::Nothing,
        };
        Ok(head)
    }

    async fn read(&mut self) -> io::Result<()> {
        let mut part = [0; PART];
        let length = self.stream.read(&mut part).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&part[..length]);
        Ok(())
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            self.read().await?;
        }
        Ok(self.unread.drain(..length).collect())
    }

    /// The next part of the body; `None` at its end.
    async fn part(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.rest {
            Rest::Nothing => Ok(None),
            Rest::Bytes(length) => {
                self.rest = Rest::Nothing;
                self.take(length).await.map(Some)
            }
            Rest::Chunks => {
                let end = loop {
                    match self.unread.windows(2).position(|it| it == b"\r\n") {
                        Some(end) => break end,
                        None => self.read().await?,
                    }
                };
                let line = self.take(end + 2).await?;
                let line = std::str::from_utf8(&line).expect("a length is text");
                let length = usize::from_str_radix(line.trim(), 16).expect("a length");
                let mut chunk = self.take(length + 2).await?;
                chunk.truncate(length);
                if length == 0 {
                    self.rest = Rest::Nothing;
                    return Ok(None);
                }
                Ok(Some(chunk))
            }
        }
    }

    /// The rest of the body.
    pub(crate) async fn body(&mut self) -> io::Result<String> {
        let mut body = Vec::new();
        while let Some(part) = self.part().await? {
            body.extend(part);
        }
        Ok(String::from_utf8(body).expect("a body is text"))
    }

    /// The next event of a stream; `None` at its end.
    pub(crate) async fn event(&mut self) -> io::Result<Option<Event>> {
        loop {
            while let Some(end) = self.events.find("\n\n") {
                let rest = self.events.get(end + 2..).unwrap_or_default().to_owned();
                let text = std::mem::replace(&mut self.events, rest);
                let field = |name: &str| {
                    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
                };
                let (id, data) = (field("id:").map(str::to_owned), field("data:"));
                let message = data.filter(|it| !it.is_empty());
                let message = message.map(|it| serde_json::from_str(it).expect("JSON"));
                // Comment lines are only keep-alives.
                if id.is_some() || message.is_some() {
                    return Ok(Some(Event { id, message }));
                }
            }
            match self.part().await? {
                Some(part) => {
                    self.events.push_str(std::str::from_utf8(&part).expect("events are text"));
                }
                None => return Ok(None),
            }
        }
    }

    /// All messages of the response to a request.
    pub(crate) async fn messages(&mut self, sent: &Sent<'_>) -> io::Result<(Head, Vec<Value>)> {
        let head = self.send(sent).await?;
        let mut messages = Vec::new();
        if head.is_stream() {
            while let Some(event) = self.event().await? {
                messages.extend(event.message);
            }
        } else {
            let body = self.body().await?;
            messages.extend(serde_json::from_str::<Value>(&body).ok());
        }
        Ok((head, messages))
    }
}
