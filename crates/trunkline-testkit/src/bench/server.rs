//! A minimal MCP server, so that measurements are dominated by the client.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::rc::Rc;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use trunkline::message::{Message, Raw, Request};

use crate::host::runtime;

/// Argument that makes this program a stdio server, followed by [`ServerOptions`].
pub(crate) const SERVE: &str = "--serve";

/// Argument that makes this program an HTTP server, followed by [`ServerOptions`]. It prints its port, and
/// ends when its stdin closes.
pub(crate) const SERVE_HTTP: &str = "--serve-http";

/// The method that returns the last call as received, for the bare loop to resend.
pub(crate) const LAST_CALL: &str = "bench/last-call";

/// The only tool.
const TOOL: &str = "text";

/// The default options: a modern server with one tool that is ready at once.
pub(crate) const MODERN: &str = "0";

/// A server for clients of any era.
pub(crate) const BOTH_ERAS: &str = "0,both";

const DISCOVERED: &[u8] = br#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#;

const METHOD_NOT_FOUND: &[u8] = br#","error":{"code":-32601,"message":"method not found"}}"#;

/// The eras of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerEra {
    Modern,
    Legacy,
    Both,
}

/// Behaviour of a server, as one word of parts separated by commas: a start delay in milliseconds, `legacy`
/// or `both` for its eras, `tools=N`, and `hang` for a server that never answers.
pub(crate) struct ServerOptions {
    delay: Duration,
    era: ServerEra,
    /// The result of `tools/list`, without its braces.
    tools: String,
    is_hanging: bool,
}

impl ServerOptions {
    pub(crate) fn parse(word: &str) -> Self {
        let delay = word.split(',').find_map(|part| part.parse().ok()).unwrap_or(0);
        let has = |name: &str| word.split(',').any(|part| part == name);
        let era = match (has("legacy"), has("both")) {
            (true, _) => ServerEra::Legacy,
            (_, true) => ServerEra::Both,
            _ => ServerEra::Modern,
        };
        let count = word.split(',').find_map(|part| part.strip_prefix("tools=")?.parse().ok());
        let tools = tools(count.unwrap_or(1));
        Self { delay: Duration::from_millis(delay), era, tools, is_hanging: has("hang") }
    }
}

/// A list with [`TOOL`], and others of typical size.
fn tools(count: usize) -> String {
    let mut list = format!(r#""tools":[{{"name":"{TOOL}","inputSchema":{{"type":"object"}}}}"#);
    for number in 1..count {
        let _ = write!(
            list,
            r#",{{"name":"tool_{number}","description":"Reads item {number} of a list, and returns its text.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"The path of the item"}}}},"required":["path"]}}}}"#
        );
    }
    list + "]"
}

/// Responses that are ready are written together up to this size.
const BATCH_BYTES: usize = 64 * 1024;

/// The longest text in a result.
const LONGEST_TEXT: usize = 1_000_000;

static TEXT: LazyLock<String> = LazyLock::new(|| "x".repeat(LONGEST_TEXT));

/// The parameters of a call with a text of one size, whose result has a text of another size.
pub(crate) fn params(answered: usize, carried: usize) -> Raw {
    let arguments = serde_json::json!({ "bytes": answered, "carried": "x".repeat(carried) });
    Raw::from_value(&serde_json::json!({ "name": TOOL, "arguments": arguments }))
}

/// Serves over stdin and stdout until stdin closes.
pub(crate) fn serve(options: &ServerOptions) -> io::Result<()> {
    if options.is_hanging {
        return io::copy(&mut io::stdin().lock(), &mut io::sink()).map(|_| ());
    }
    thread::sleep(options.delay);
    let mut input = BufReader::with_capacity(BATCH_BYTES, io::stdin().lock());
    let mut output = io::stdout().lock();
    let (mut last_call, mut answers) = (Bytes::new(), Vec::new());
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let line = Bytes::from(line);
        if answer(options, &line, (&line, &mut last_call), &mut answers) {
            answers.push(b'\n');
        }
        if answers.len() >= BATCH_BYTES || !input.buffer().contains(&b'\n') {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
}

/// Appends the response to a message, if it is a request. A call is remembered as it was sent: the
/// message with its HTTP headers, if any.
fn answer(
    options: &ServerOptions,
    message: &Bytes,
    (sent, last_call): (&Bytes, &mut Bytes),
    answers: &mut Vec<u8>,
) -> bool {
    let Ok(Message::Request(request)) = Message::read(message) else { return false };
    answers.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    answers.extend_from_slice(request.id.raw().bytes());
    let is_answered = match &*request.method {
        "server/discover" => options.era != ServerEra::Legacy,
        "initialize" => options.era != ServerEra::Modern,
        method => ["tools/list", "tools/call", "ping", LAST_CALL].contains(&method),
    };
    if !is_answered {
        answers.extend_from_slice(METHOD_NOT_FOUND);
        return true;
    }
    answers.extend_from_slice(br#","result":{"#);
    if options.era != ServerEra::Legacy {
        answers.extend_from_slice(br#""resultType":"complete""#);
    }
    if !answers.ends_with(b"{") && &*request.method != "ping" {
        answers.push(b',');
    }
    match &*request.method {
        "server/discover" => answers.extend_from_slice(DISCOVERED),
        "initialize" => answers.extend_from_slice(initialized(&request).as_bytes()),
        "tools/list" => answers.extend_from_slice(options.tools.as_bytes()),
        "ping" => {}
        LAST_CALL => {
            let text = Raw::from_string(&String::from_utf8_lossy(last_call));
            answers.extend_from_slice(br#""sent":"#);
            answers.extend_from_slice(text.bytes());
        }
        _ => {
            last_call.clone_from(sent);
            answers.extend_from_slice(br#""content":[{"type":"text","text":""#);
            answers.extend_from_slice(&TEXT.as_bytes()[..size(&request)]);
            answers.extend_from_slice(br#""}]"#);
        }
    }
    answers.extend_from_slice(b"}}");
    true
}

/// The result of `initialize`, in the version of the client: peers know different ones.
fn initialized(request: &Request) -> String {
    let version = request.params.as_ref().and_then(|params| params.get("protocolVersion"));
    let version = version.unwrap_or_else(|| Raw::from_string("2025-11-25"));
    let info = r#""serverInfo":{"name":"bench","version":"0"},"capabilities":{"tools":{}}"#;
    format!(r#""protocolVersion":{},{info}"#, version.text())
}

/// The requested length of the text.
fn size(request: &Request) -> usize {
    let arguments = request.params.as_ref().and_then(|params| params.get("arguments"));
    let bytes = arguments.and_then(|arguments| arguments.get("bytes"));
    bytes.and_then(|bytes| bytes.text().parse().ok()).unwrap_or(0).min(LONGEST_TEXT)
}

/// Serves HTTP on a port chosen by the system until stdin closes.
pub(crate) fn serve_http(options: ServerOptions) -> io::Result<()> {
    end_with_input();
    let options = Rc::new(options);
    LocalSet::new().block_on(&runtime(), async {
        let listener = listener().await?;
        let last_call = Rc::new(RefCell::new(Bytes::new()));
        loop {
            let (stream, _) = listener.accept().await?;
            spawn_local(serve_connection(stream, Rc::clone(&options), Rc::clone(&last_call)));
        }
    })
}

/// Exits the process when stdin closes.
pub(crate) fn end_with_input() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

/// Binds a port chosen by the system and prints it for the parent process.
pub(crate) async fn listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    Ok(listener)
}

/// Serves the requests of one connection in sequence. Supports only the HTTP features that a
/// well-behaved client needs.
async fn serve_connection(
    mut stream: TcpStream,
    options: Rc<ServerOptions>,
    last_call: Rc<RefCell<Bytes>>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = BytesMut::new();
    let mut message = Vec::new();
    loop {
        let length = loop {
            if let Some((head, body)) = lengths(&received).filter(|(h, b)| h + b <= received.len())
            {
                break (head, body);
            }
            received.reserve(BATCH_BYTES);
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let sent = Bytes::copy_from_slice(&received[..length.0 + length.1]);
        received.advance(sent.len());
        message.clear();
        let body = sent.slice(length.0..);
        answer(&options, &body, (&sent, &mut last_call.borrow_mut()), &mut message);
        // It has no stream for GET, and no session to delete.
        let status = match &*message {
            _ if !sent.starts_with(b"POST ") => "405 Method Not Allowed",
            [] => "202 Accepted",
            _ => "200 OK",
        };
        let length = message.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        message.splice(..0, head.into_bytes());
        stream.write_all(&message).await?;
    }
}

/// The lengths of the headers and the body of the first request or response in the bytes.
pub(crate) fn lengths(bytes: &[u8]) -> Option<(usize, usize)> {
    const KEY: &str = "\r\ncontent-length: ";
    // Headers are short; the body may be long.
    let head = &bytes[..bytes.len().min(4096)];
    let end = head.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
    let value = text.split_once(KEY).map_or("0", |(_, rest)| rest.lines().next().unwrap_or("0"));
    Some((end + 4, value.parse().ok()?))
}
