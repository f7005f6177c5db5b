//! The demo servers over a pair of streams.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
use tokio::task::JoinHandle;
use trunkline_gateway::demo::DemoServer;

use crate::support::demo_server::{MODERN, legacy, modern};

const LONGEST_MESSAGE: usize = 1024 * 1024;

/// The client's end of a pipe to a server.
struct Pipe {
    stream: BufReader<DuplexStream>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Pipe {
    fn to(server: DemoServer) -> Self {
        let (near, far) = duplex(4 * LONGEST_MESSAGE);
        let (reader, writer) = split(far);
        let server = tokio::spawn(async move { server.serve(reader, writer).await });
        Self { stream: BufReader::new(near), server }
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Closes the client's side, lets the server finish, and reads the rest.
    async fn end(mut self) -> Vec<Value> {
        self.stream.shutdown().await.unwrap();
        self.server.await.unwrap().unwrap();
        let mut rest = Vec::new();
        let mut lines = self.stream.lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest
    }
}

#[tokio::test]
async fn both_generations_are_served_on_one_pipe() {
    let mut pipe = Pipe::to(DemoServer::Words);
    pipe.write(format!("{}\n", modern(MODERN, "server/discover", json!({}))).as_bytes()).await;
    assert_eq!(pipe.read().await["result"]["resultType"], "complete");
    pipe.write(format!("{}\n", legacy("initialize", &json!({}))).as_bytes()).await;
    assert_eq!(pipe.read().await["result"]["protocolVersion"], "2025-11-25");
    pipe.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
    pipe.write(format!("{}\n", legacy("tools/list", &json!({}))).as_bytes()).await;
    assert_eq!(pipe.read().await["result"]["tools"][0]["name"], "count_words");
    assert!(pipe.end().await.is_empty());
}

#[tokio::test]
async fn blank_lines_are_skipped_and_the_end_ends_the_last_line() {
    let mut pipe = Pipe::to(DemoServer::Words);
    pipe.write(b"\n \r\n").await;
    pipe.write(legacy("ping", &json!({})).as_bytes()).await;
    assert_eq!(pipe.end().await.len(), 1);
}

#[tokio::test]
async fn garbage_is_answered_and_does_not_end_the_server() {
    let mut pipe = Pipe::to(DemoServer::Words);
    pipe.write(b"hello\n\xff\xfe\n").await;
    assert_eq!(pipe.read().await["error"]["code"], -32_700);
    assert_eq!(pipe.read().await["error"]["code"], -32_700);
    pipe.write(format!("{}\r\n", legacy("ping", &json!({}))).as_bytes()).await;
    assert_eq!(pipe.read().await["result"], json!({}));
}

#[tokio::test]
async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let ping = legacy("ping", &json!({}));
    let longest = format!("{ping}{}\n", " ".repeat(LONGEST_MESSAGE - ping.len()));
    let mut pipe = Pipe::to(DemoServer::Words);
    pipe.write(longest.as_bytes()).await;
    assert_eq!(pipe.read().await["result"], json!({}));
    for excess in [1, LONGEST_MESSAGE, 2 * LONGEST_MESSAGE + 1] {
        pipe.write(format!("{}{longest}", " ".repeat(excess)).as_bytes()).await;
        let refused = pipe.read().await;
        assert_eq!(refused["error"]["code"], -32_600);
        assert!(refused["error"]["message"].as_str().unwrap().contains("1048576 bytes"));
    }
    pipe.write(format!("{ping}\n").as_bytes()).await;
    assert_eq!(pipe.read().await["result"], json!({}));
    assert!(pipe.end().await.is_empty());
}
