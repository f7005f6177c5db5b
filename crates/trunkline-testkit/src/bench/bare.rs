//! Baseline: loops that write the same bytes and read the responses, without a client library.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::host::{program, runtime};
use crate::server::{SERVE, lengths};

/// Size of the read buffer.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// A child process with its streams.
pub(crate) struct BareProcess {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl BareProcess {
    /// Starts this program as a server without a delay.
    pub(crate) fn server() -> Self {
        let mut command = Command::new(program());
        command.args([SERVE, "0"]);
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the server starts");
        let output = process.stdout.take().expect("it was piped");
        let output = BufReader::with_capacity(READ_BYTES, output);
        Self { input: process.stdin.take(), output, process }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it runs");
        input.write_all(bytes).expect("it listens");
    }

    /// Reads a number of lines and ignores their content.
    pub(crate) fn read_lines(&mut self, count: usize) {
        let mut line = Vec::new();
        for _ in 0..count {
            line.clear();
            self.output.read_until(b'\n', &mut line).expect("it answers");
        }
    }

    /// Reads lines until one contains a text.
    pub(crate) fn read_until(&mut self, text: &[u8]) {
        let mut line = Vec::new();
        while memchr::memmem::find(&line, text).is_none() {
            line.clear();
            let read = self.output.read_until(b'\n', &mut line).expect("it answers");
            assert!(read > 0, "it goes on");
        }
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Reads the next bytes into a buffer.
    pub(crate) fn read(&mut self, chunk: &mut [u8]) -> usize {
        let read = self.output.get_mut().read(chunk).expect("it answers");
        assert!(read > 0, "it goes on");
        read
    }

    /// Writes a line `count` times and reads as many responses, with up to `in_flight` requests
    /// pending.
    pub(crate) fn call(&mut self, line: &[u8], count: usize, in_flight: usize) {
        let lines = line.repeat(in_flight);
        let mut chunk = vec![0; READ_BYTES];
        let (mut asked, mut answered) = (in_flight.min(count), 0);
        self.write(&lines[..line.len() * asked]);
        while answered < count {
            let read = self.read(&mut chunk);
            let came = memchr::memchr_iter(b'\n', &chunk[..read]).count();
            answered += came;
            let more = came.min(count - asked);
            self.write(&lines[..line.len() * more]);
            asked += more;
        }
    }
}

impl Drop for BareProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Open connections to an HTTP server, one per call in flight.
pub(crate) struct BareConnections {
    runtime: Runtime,
    streams: Vec<TcpStream>,
}

impl BareConnections {
    pub(crate) fn open(port: u16, count: usize) -> Self {
        let runtime = runtime();
        let connect = || async {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            io::Result::Ok(stream)
        };
        let streams = runtime.block_on(join_all((0..count).map(|_| connect())));
        let streams = streams.into_iter().collect::<io::Result<_>>().expect("it listens");
        Self { runtime, streams }
    }

    /// Sends a request `count` times, on all connections concurrently, and returns the latencies.
    pub(crate) fn call(&mut self, request: &[u8], count: usize) -> Vec<Duration> {
        let each = count / self.streams.len();
        let calls = self.streams.iter_mut().map(|stream| call_http(stream, request, each));
        let called = self.runtime.block_on(join_all(calls));
        called.into_iter().flat_map(|times| times.expect("it answers")).collect()
    }
}

async fn call_http(
    stream: &mut TcpStream,
    request: &[u8],
    count: usize,
) -> io::Result<Vec<Duration>> {
    let mut chunk = vec![0; READ_BYTES];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        stream.write_all(request).await?;
        let mut read = stream.read(&mut chunk).await?;
        // The headers arrive in one read: they are short, and the server writes them at once.
        let (head, body) = lengths(&chunk[..read]).ok_or(io::ErrorKind::InvalidData)?;
        if !chunk.starts_with(b"HTTP/1.1 200 ") {
            return Err(io::Error::other(String::from_utf8_lossy(&chunk[..read])));
        }
        while read < head + body {
            match stream.read(&mut chunk).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
        }
        times.push(start.elapsed());
    }
    Ok(times)
}
