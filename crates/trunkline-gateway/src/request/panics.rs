//! Turns a panic in a request handler into an error response, so that other requests continue.
//!
//! Functions around futures are not `async`: an `async fn` keeps its argument beside the future that
//! it awaits, so that each such function doubles the size, and all of it is moved for every request.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::errors::handler_panicked;
use super::response::RpcResult;

/// Completes with an internal error if the handler panics. The future is not polled again after
/// that. The panic hook of the process has logged the location by then.
pub(crate) fn answer_or_error(
    answering: impl Future<Output = RpcResult>,
) -> impl Future<Output = RpcResult> {
    outcome_of(answering).map(|result| result.unwrap_or_else(|| Err(handler_panicked())))
}

/// Completes with `None` if the future panics.
pub(crate) fn outcome_of<T>(future: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    AssertUnwindSafe(future).catch_unwind().map(Result::ok)
}

/// Calls a function, and returns `None` if it panics.
pub(crate) fn result_of<T>(function: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(AssertUnwindSafe(function)).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;
    use trunkline::config::{self, EmptyResolver};
    use trunkline::connection::{ChildOptions, HttpOptions};
    use trunkline::host::{Host, HostOptions};
    use trunkline::protocol::code;

    use crate::{GatewayOptions, Scope, router, serve, serve_stream};

    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    fn host() -> Host {
        let config = config::parse("test", "{}").config;
        let child = ChildOptions::from_environment(std::iter::empty());
        let connections = trunkline::connection::ConnectionOptions::new(
            Arc::new(EmptyResolver),
            child,
            HttpOptions::default(),
        );
        Host::start(config, Default::default(), HostOptions::new(connections))
    }

    fn request(id: &Value, method: &str) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": meta } })
            .to_string()
    }

    #[tokio::test]
    async fn a_panic_is_answered_on_a_stream_and_ends_nothing_else() {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(serve_stream(host(), Scope::default(), reader, writer));
        let mut stream = BufReader::new(near);
        for method in ["test/panic", "test/panic-unanswered", "test/panic", "server/discover"] {
            let message = request(&json!(method), method);
            stream.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            let mut line = String::new();
            timeout(LONGEST_WAIT, stream.read_line(&mut line)).await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["id"], method);
            let is_panic = answer["error"]["code"] == code::INTERNAL_ERROR;
            assert_eq!(is_panic, method != "server/discover", "{answer}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_over_http_and_ends_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, router(host(), GatewayOptions::default())).into_future());
        for (method, status) in [("test/panic", 200), ("server/discover", 200), ("GET", 500)] {
            let (verb, body) = match method {
                "GET" => ("GET", String::new()),
                _ => ("POST", request(&json!(7), method)),
            };
            let head = format!(
                "{verb} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                 MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
                 X-Test-Panic: {verb}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            let mut answer = String::new();
            timeout(LONGEST_WAIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            let is_panic = answer.contains(r#""id":7"#) && answer.contains("-32603");
            assert_eq!(is_panic, method == "test/panic", "{answer}");
        }
    }
}
