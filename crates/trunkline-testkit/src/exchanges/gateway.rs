//! A gateway with a well-behaved server, and clients that send arbitrary bytes.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Request, Response};
use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::time::timeout;
use tower_service::Service as _;
use trunkline::host::Host;
use trunkline::message::{Message, Raw};
use trunkline_gateway::{GatewayOptions, Scope, router, serve_stream};

use super::transcript::{Requests, response_id};
use super::{LONGEST_EXCHANGE, host_of, modern, start_words};

/// Capacity of a stream.
const STREAM_BYTES: usize = 64 * 1024;

/// A gateway in this process.
pub(super) struct Gateway {
    host: Host,
    router: Router,
    /// The header value of a legacy session.
    session: HeaderValue,
}

impl Gateway {
    pub(super) async fn start() -> Self {
        let words = start_words().await;
        let host = host_of(&json!({ "words": { "type": "http", "url": words } }));
        let router = router(host.clone(), GatewayOptions::default());
        let gateway = Self { host, router, session: HeaderValue::from_static("") };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "exchanges", "version": "1" } });
        let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let response = gateway.post(Bytes::from(open.to_string()), &[]).await;
        let session = response.headers().get("mcp-session-id").expect("a session").clone();
        Self { session, ..gateway }
    }

    pub(super) async fn check(&self, bytes: &[u8]) {
        let checked = timeout(LONGEST_EXCHANGE, async {
            self.check_stream(bytes).await;
            self.check_post(bytes, &self.modern_headers(bytes)).await;
            let legacy = [
                (HeaderName::from_static("mcp-session-id"), self.session.clone()),
                (
                    HeaderName::from_static("mcp-protocol-version"),
                    "2025-11-25".parse().expect("a header"),
                ),
            ];
            self.check_post(bytes, &legacy).await;
            self.check_other_client().await;
        });
        checked.await.expect("everything is answered in time");
    }

    /// Sends the bytes as lines, followed by a request.
    async fn check_stream(&self, bytes: &[u8]) {
        let (near, far) = duplex(STREAM_BYTES);
        let (reader, writer) = split(far);
        let serving =
            tokio::spawn(serve_stream(self.host.clone(), Scope::default(), reader, writer));
        let last = modern("the last one", "server/discover", json!({}));
        let input = [bytes, b"\n", last.to_string().as_bytes(), b"\n"].concat();
        let requests = Requests::in_lines(&input);
        let (mut reader, mut writer) = split(near);
        let writing = tokio::spawn(async move {
            writer.write_all(&input).await.expect("it reads");
            writer.shutdown().await.expect("it can be ended");
            writer
        });
        let mut output = Vec::new();
        reader.read_to_end(&mut output).await.expect("it writes");
        serving.await.expect("it does not panic").expect("it ends in order");
        drop(writing.await);
        requests.check(&output);
    }

    /// The headers that a modern client would send with this body.
    fn modern_headers(&self, body: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = vec![(
            HeaderName::from_static("mcp-protocol-version"),
            "2026-07-28".parse().expect("a header"),
        )];
        let Ok(Message::Request(request)) = Message::read(&Bytes::copy_from_slice(body)) else {
            return headers;
        };
        let params = request.params.as_ref();
        let subject = params.and_then(|it| it.get("name").or_else(|| it.get("uri")));
        let subject = subject.as_ref().and_then(Raw::as_str).and_then(|it| it.parse().ok());
        let method = request.method.parse().ok();
        headers.extend(method.map(|it| (HeaderName::from_static("mcp-method"), it)));
        headers.extend(subject.map(|it| (HeaderName::from_static("mcp-name"), it)));
        headers
    }

    async fn post(
        &self,
        body: impl Into<Body>,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Response<Body> {
        let mut request = Request::post("/mcp")
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.into())
            .expect("a request");
        request
            .headers_mut()
            .extend(headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
        let Ok(response) = self.router.clone().call(request).await;
        response
    }

    /// Sends the bytes as the body of a POST.
    async fn check_post(&self, bytes: &[u8], headers: &[(HeaderName, HeaderValue)]) {
        let body = Bytes::copy_from_slice(bytes);
        let request = match Message::read(&body) {
            Ok(Message::Request(request)) => Some(request),
            _ => None,
        };
        // The response stream stays open until the client disconnects.
        if request.as_ref().is_some_and(|it| &*it.method == "subscriptions/listen") {
            return;
        }
        let response = self.post(body, headers).await;
        let (status, kind) = (response.status(), response.headers().get("content-type").cloned());
        assert_ne!(status.as_u16(), 500, "a panic");
        let answer = to_bytes(response.into_body(), usize::MAX).await.expect("a whole answer");
        let responses: Vec<_> = match kind.as_ref().and_then(|kind| kind.to_str().ok()) {
            Some("application/json") => vec![response_id(&answer)],
            Some("text/event-stream") => {
                let lines = answer.split(|byte| *byte == b'\n');
                let data = lines.filter_map(|line| line.strip_prefix(b"data: "));
                data.filter(|data| !data.is_empty()).map(response_id).collect()
            }
            _ => return,
        };
        if let Some(request) = request.filter(|_| status.is_success()) {
            let ids: Vec<_> = responses.into_iter().flatten().collect();
            assert_eq!(ids, [request.id.normalized()], "{answer:?}");
        }
    }

    /// Checks that another client gets its own response.
    async fn check_other_client(&self) {
        let params = json!({ "name": "words_shout", "arguments": { "text": "hello" } });
        let call = modern("another client", "tools/call", params).to_string();
        let response = self.post(call.clone(), &self.modern_headers(call.as_bytes())).await;
        let answer = to_bytes(response.into_body(), usize::MAX).await.expect("a whole answer");
        let is_own = memchr::memmem::find(&answer, b"another client").is_some();
        let is_right = memchr::memmem::find(&answer, b"HELLO").is_some();
        assert!(is_own && is_right, "{answer:?}");
    }
}
