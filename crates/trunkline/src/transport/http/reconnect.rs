//! Resumes a broken event stream: delay, `Last-Event-ID` and retry limits.

use std::cmp::min;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::time::{Instant, sleep};

use super::client::HttpClient;
use super::headers;
use super::request::{HttpRequest, HttpResponse, is_event_stream, next_event};
use super::sse_decoder::{SseDecoder, SseEvent};
use crate::error::Error;
use crate::transport::MAX_MESSAGE_BYTES;

/// Delay before a stream is reopened if the server sends no `retry`.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// Minimum delay, whatever the server sends: it may end every stream at once, for the whole life of
/// the request or the server. Doubled after each short-lived stream.
const SHORTEST_DELAY: Duration = Duration::from_millis(100);

/// Upper limit of the growing minimum delay: servers that end streams on purpose, to be polled,
/// send about this value themselves.
const LONGEST_FLOOR: Duration = Duration::from_secs(1);

/// Lifetime of a stream that resets the minimum delay.
const LASTING: Duration = Duration::from_secs(5);

/// Maximum delay, whatever the server sends.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Result of opening a stream.
pub(super) enum ReopenedStream {
    Stream(HttpResponse),
    /// The server responded, but not with a stream.
    Refused(HttpResponse),
    /// A retry may succeed.
    NotNow(Error),
    Never(Error),
}

/// An event stream that is resumed after it broke.
pub(super) struct Reconnect {
    client: HttpClient,
    /// The request that the stream belongs to. Few streams break, so a request for the stream is
    /// built only then.
    request: Arc<HttpRequest>,
    decoder: SseDecoder,
    /// Event ID at which the stream was last resumed.
    opened_at: Option<Bytes>,
    fruitless: u32,
    /// Minimum delay before the next attempt.
    floor: Duration,
    /// Time of the last attempt to open it.
    opened: Instant,
}

impl Reconnect {
    /// A stream that reuses the headers of its request.
    pub(super) fn new(client: HttpClient, request: Arc<HttpRequest>) -> Self {
        let decoder = SseDecoder::new(MAX_MESSAGE_BYTES);
        Self {
            client,
            request,
            decoder,
            opened_at: None,
            fruitless: 0,
            floor: SHORTEST_DELAY,
            opened: Instant::now(),
        }
    }

    /// The next event of an open stream; `None` at its end.
    pub(super) async fn event(
        &mut self,
        stream: &mut HttpResponse,
    ) -> Result<Option<SseEvent>, Error> {
        next_event(stream, &mut self.decoder).await
    }

    /// Whether the stream can be resumed: an event had an ID.
    pub(super) fn can_resume(&self) -> bool {
        self.decoder.last_id().is_some()
    }

    /// Number of attempts without progress.
    pub(super) fn fruitless_attempts(&self) -> u32 {
        self.fruitless
    }

    /// Counts a received event as progress, although it has no new ID.
    pub(super) fn record_progress(&mut self) {
        self.fruitless = 0;
    }

    /// Waits for the delay that the server requested, and longer after every attempt without
    /// progress.
    pub(super) async fn wait(&mut self) {
        let place = self.decoder.last_id();
        if place != self.opened_at.as_ref() {
            self.fruitless = 0;
            self.opened_at = place.cloned();
        }
        let delay = self.decoder.retry().unwrap_or(DEFAULT_DELAY).max(SHORTEST_DELAY);
        let delay = delay.saturating_mul(1 << min(self.fruitless, 5)).max(self.next_floor());
        self.fruitless += 1;
        sleep(min(delay, LONGEST_DELAY)).await;
    }

    /// Minimum delay after the stream that just ended.
    fn next_floor(&mut self) -> Duration {
        if self.opened.elapsed() >= LASTING {
            self.floor = SHORTEST_DELAY;
        }
        let floor = self.floor;
        self.floor = min(floor * 2, LONGEST_FLOOR);
        floor
    }

    /// Opens the stream, from the last event ID if there is one.
    pub(super) async fn open(&mut self) -> ReopenedStream {
        self.decoder.restart();
        self.opened = Instant::now();
        match self.client.send(&self.request_from_here()).await {
            Ok(response) if is_event_stream(&response) => ReopenedStream::Stream(response),
            Ok(response) => ReopenedStream::Refused(response),
            Err(error) if error.kind().is_retryable() => ReopenedStream::NotNow(error),
            Err(error) => ReopenedStream::Never(error),
        }
    }

    fn request_from_here(&self) -> HttpRequest {
        let mut headers = HeaderMap::clone(&self.request.headers);
        headers::add_stream_headers(&mut headers);
        let place = self.decoder.last_id().and_then(|id| HeaderValue::from_bytes(id).ok());
        if let Some(place) = place {
            headers.insert(headers::LAST_EVENT_ID, place);
        }
        HttpRequest::without_body(Method::GET, self.request.address.clone(), headers)
    }
}

/// Whether a refusal with this status is temporary. Some servers allow one stream and notice late
/// that the last one was closed: they respond 409.
pub(super) fn is_passing(status: StatusCode) -> bool {
    let is_final = matches!(status, StatusCode::NOT_IMPLEMENTED | StatusCode::LOOP_DETECTED);
    (status.is_server_error() && !is_final) || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::protocol::ProtocolVersion;
    use crate::transport::http::HttpTransport;
    use crate::transport::tests::scripted_server::{Reply, ScriptedServer, client, request};

    /// Times of the first connections to a server that ends every stream at once, requests no
    /// delay, and pretends progress each time.
    async fn connections(starts: impl FnOnce(&mut HttpTransport)) -> Vec<Instant> {
        let times = Arc::new(Mutex::new(Vec::new()));
        let connected = Arc::clone(&times);
        let server = ScriptedServer::start(move |_| {
            let mut connected = connected.lock().unwrap();
            connected.push(Instant::now());
            let id = connected.len();
            let told = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
            Reply::events(&format!("retry: 0\nid: {id}\ndata: {told}\n\n"))
        })
        .await;
        let mut transport = HttpTransport::new(client(), server.target());
        transport.set_protocol_version(ProtocolVersion::parse("2025-11-25").unwrap());
        starts(&mut transport);
        let endless = async {
            loop {
                transport.next().await;
            }
        };
        tokio::select! {
            () = server.saw(5) => {}
            () = endless => {}
        }
        let times = times.lock().unwrap();
        times.clone()
    }

    #[tokio::test]
    async fn reconnect_has_a_minimum_delay() {
        let (resumed, listened) = tokio::join!(
            connections(|transport| transport.send(request(1, "tools/call"))),
            connections(HttpTransport::open_get_stream),
        );
        for times in [resumed, listened] {
            let delays = times.windows(2).map(|pair| pair[1] - pair[0]);
            for (delay, least) in delays.zip([100, 200, 400, 800]) {
                assert!(delay >= Duration::from_millis(least), "{delay:?} instead of {least} ms");
            }
        }
    }
}
