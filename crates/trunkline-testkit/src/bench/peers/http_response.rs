//! Reads HTTP responses of any server: with a length, in chunks, or until the connection closes.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::bare::READ_BYTES;

/// A response, with as much of its body as was asked for.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
    /// Whether the connection can be used again.
    pub(crate) is_reusable: bool,
}

/// The end of a body.
enum BodyEnd {
    After(usize),
    Chunks(ChunkReader),
    Close,
}

impl BodyEnd {
    /// Takes bytes of a body and keeps them up to a limit; whether the body is complete.
    fn take(&mut self, bytes: &[u8], kept: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
        let mut keep = |bytes: &[u8]| {
            kept.extend_from_slice(&bytes[..bytes.len().min(limit.saturating_sub(kept.len()))]);
        };
        match self {
            Self::After(missing) => {
                keep(bytes);
                *missing = missing.saturating_sub(bytes.len());
                Ok(*missing == 0)
            }
            Self::Chunks(reader) => reader.take(bytes, keep),
            Self::Close => {
                keep(bytes);
                Ok(false)
            }
        }
    }
}

/// Position in a chunked body.
#[derive(Default)]
struct ChunkReader {
    /// Bytes that are missing of the current chunk, with its line end.
    missing: usize,
    is_last: bool,
    size_line: Vec<u8>,
}

impl ChunkReader {
    fn take(&mut self, mut bytes: &[u8], mut keep: impl FnMut(&[u8])) -> io::Result<bool> {
        while !bytes.is_empty() {
            if self.missing == 0 {
                let Some(end) = memchr::memchr(b'\n', bytes) else {
                    self.size_line.extend_from_slice(bytes);
                    return Ok(false);
                };
                self.size_line.extend_from_slice(&bytes[..end]);
                bytes = &bytes[end + 1..];
                let size = chunk_size(&self.size_line).ok_or(io::ErrorKind::InvalidData)?;
                self.size_line.clear();
                (self.missing, self.is_last) = (size + 2, size == 0);
                continue;
            }
            let part = bytes.len().min(self.missing);
            // The last two bytes of a chunk are its line end.
            let data = part.min(self.missing.saturating_sub(2));
            keep(&bytes[..data]);
            self.missing -= part;
            bytes = &bytes[part..];
            if self.missing == 0 && self.is_last {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let digits = line.split(|byte| matches!(byte, b';' | b'\r')).next()?;
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Reads a response, and keeps at most `limit` bytes of its body. An error of kind `ConnectionReset` means
/// that the server had closed the connection before it answered.
pub(crate) async fn read_response(
    stream: &mut TcpStream,
    limit: usize,
) -> io::Result<HttpResponse> {
    let mut buffer = vec![0; READ_BYTES];
    let mut head = Vec::new();
    let (mut response, mut end, body_start) = loop {
        match stream.read(&mut buffer).await? {
            0 if head.is_empty() => return Err(io::ErrorKind::ConnectionReset.into()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => head.extend_from_slice(&buffer[..read]),
        }
        if let Some(at) = memchr::memmem::find(&head, b"\r\n\r\n") {
            let (response, end) = read_head(&head[..at]).ok_or(io::ErrorKind::InvalidData)?;
            break (response, end, at + 4);
        }
    };
    let mut is_complete = matches!(end, BodyEnd::After(0));
    is_complete |= end.take(&head[body_start..], &mut response.body, limit)?;
    while !is_complete {
        is_complete = match stream.read(&mut buffer).await? {
            0 if matches!(end, BodyEnd::Close) => true,
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => end.take(&buffer[..read], &mut response.body, limit)?,
        };
    }
    Ok(response)
}

fn read_head(head: &[u8]) -> Option<(HttpResponse, BodyEnd)> {
    let text = std::str::from_utf8(head).ok()?;
    let (first, headers) = text.split_once("\r\n").unwrap_or((text, ""));
    let status: u16 = first.split(' ').nth(1)?.parse().ok()?;
    let header = |name: &str| {
        headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let length = header("content-length").and_then(|value| value.parse().ok());
    let is_chunked = header("transfer-encoding").is_some_and(|it| it.contains("chunked"));
    let end = match (length, is_chunked) {
        (_, true) => BodyEnd::Chunks(ChunkReader::default()),
        (Some(length), _) => BodyEnd::After(length),
        _ if status == 202 || status == 204 => BodyEnd::After(0),
        _ => BodyEnd::Close,
    };
    let is_closed = header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
    let response = HttpResponse {
        status,
        session: header("mcp-session-id").map(str::to_owned),
        body: Vec::new(),
        is_reusable: !is_closed && !matches!(end, BodyEnd::Close),
    };
    Some((response, end))
}
