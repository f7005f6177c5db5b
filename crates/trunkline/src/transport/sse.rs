//! HTTP+SSE, the transport of 2024-11-05: one stream for messages from the server, a POST for each
//! message to it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};

use super::http::client::HttpClient;
use super::http::endpoint::HttpEndpoint;
use super::http::error::{self, UnexpectedResponse};
use super::http::headers;
use super::http::in_flight::{ExchangeEvent, InFlight};
use super::http::notify::deliver;
use super::http::request::{HttpRequest, HttpResponse, collect, is_event_stream, next_event};
use super::http::sse_decoder::SseDecoder;
use super::http::url::{ServerUrl, origin};
use super::stderr_tail::StderrTail;
use super::{InboundEvent, MAX_MESSAGE_BYTES, MessageKind, OutboundMessage};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::principal::RequestPath;
use crate::protocol::ProtocolVersion;

/// A transport to a server that speaks HTTP+SSE.
pub(crate) struct SseTransport {
    client: HttpClient,
    target: Arc<HttpEndpoint>,
    /// The URL for POSTs, which the server chooses and which identifies the session.
    endpoint: ServerUrl,
    version: Option<ProtocolVersion>,
    /// Headers of every POST, rebuilt only when they change.
    post_headers: Arc<HeaderMap>,
    exchanges: InFlight,
}

impl fmt::Debug for SseTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseTransport")
            .field("target", &self.target)
            .field("version", &self.version)
            .field("exchanges", &self.exchanges)
            .finish_non_exhaustive()
    }
}

impl SseTransport {
    /// Opens the stream and waits for the `endpoint` event.
    pub(crate) async fn open(client: HttpClient, target: HttpEndpoint) -> Result<Self, Error> {
        let mut stream = open_stream(&client, &target).await?;
        let mut decoder = SseDecoder::new(MAX_MESSAGE_BYTES);
        let endpoint = endpoint(&mut stream, &mut decoder).await?;
        let mut exchanges = InFlight::default();
        exchanges.start(messages(stream, decoder));
        let mut transport = Self {
            client,
            target: Arc::new(target),
            endpoint,
            version: None,
            post_headers: Arc::default(),
            exchanges,
        };
        transport.prepare_posts();
        Ok(transport)
    }

    /// Sets the version that every further message carries.
    pub(crate) fn set_protocol_version(&mut self, version: ProtocolVersion) {
        self.version = Some(version);
        self.prepare_posts();
    }

    /// Text from the server, safe to display.
    pub(crate) fn quoted(&self, text: &str) -> String {
        error::quoted(&self.target, text)
    }

    /// A tail without lines, which redacts the secrets that the server received.
    pub(crate) fn tail(&self) -> StderrTail {
        StderrTail::with_secrets(self.target.secrets().into_iter().map(Secret::new))
    }

    /// Queues a message, which is sent in [`next`](Self::next).
    pub(crate) fn send(&mut self, message: OutboundMessage) {
        let bytes = message.line.len();
        let request = HttpRequest { path: message.path, ..self.post(message.line) };
        match message.purpose {
            MessageKind::Request { id, .. } => {
                let posting = post(self.client.clone(), self.target.clone(), request, id);
                self.exchanges.start_request(id, stream::once(posting));
            }
            purpose => self.exchanges.send_notification(
                deliver(self.client.clone(), request),
                &purpose,
                bytes,
            ),
        }
    }

    /// The next event. Cancel safe.
    pub(crate) async fn next(&mut self) -> InboundEvent {
        loop {
            if let ExchangeEvent::Came(incoming) | ExchangeEvent::Last(_, incoming) =
                self.exchanges.next().await
            {
                return incoming;
            }
        }
    }

    /// Aborts the POST of a request, if it is in flight. The caller notifies the server of the
    /// cancellation.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.exchanges.cancel(id);
    }

    /// Does nothing: the one stream also carries messages that the server initiates.
    pub(crate) fn open_listening_stream(&mut self) {}

    /// Closes the stream, which ends the session.
    pub(crate) async fn close(self) {}

    fn prepare_posts(&mut self) {
        let mut headers = self.target.headers();
        headers::add_post_headers(&mut headers);
        if let Some(version) = self.version {
            let version = HeaderValue::from_static(version.as_str());
            headers.insert(headers::PROTOCOL_VERSION, version);
        }
        self.post_headers = Arc::new(headers);
    }

    fn post(&self, body: Bytes) -> HttpRequest {
        let address = self.endpoint.clone();
        let headers = Arc::clone(&self.post_headers);
        let path = RequestPath::default();
        HttpRequest { method: Method::POST, address, headers, about: None, path, body }
    }
}

async fn open_stream(client: &HttpClient, target: &HttpEndpoint) -> Result<HttpResponse, Error> {
    let mut headers = target.headers();
    headers::add_stream_headers(&mut headers);
    let request = HttpRequest::without_body(Method::GET, target.address.clone(), headers);
    let mut response = client.send(&request).await?;
    if is_event_stream(&response) {
        return Ok(response);
    }
    let body = collect(&mut response).await?;
    let answer = answer(target, &response, &body);
    Err(if response.status().is_success() { answer.not_mcp() } else { answer.refusal() })
}

fn answer<'a>(
    target: &'a HttpEndpoint,
    response: &'a HttpResponse,
    body: &'a [u8],
) -> UnexpectedResponse<'a> {
    UnexpectedResponse {
        target,
        status: response.status(),
        headers: response.headers(),
        body,
        has_session: false,
    }
}

async fn endpoint(stream: &mut HttpResponse, decoder: &mut SseDecoder) -> Result<ServerUrl, Error> {
    while let Some(event) = next_event(stream, decoder).await? {
        if event.name == "endpoint" {
            return endpoint_of(stream.address(), &event.data);
        }
    }
    Err(error::broken_off(stream.url()))
}

/// The URL of an `endpoint` event. Another origin is refused: it could collect the configured
/// headers.
fn endpoint_of(base: &ServerUrl, data: &[u8]) -> Result<ServerUrl, Error> {
    let text = str::from_utf8(data).ok();
    let Some(endpoint) = text.and_then(|text| base.join(text.trim())) else {
        let base = origin(base.url());
        let message = format!("{base} takes messages at something that is no address");
        return Err(Error::new(ErrorKind::ProtocolViolation, message));
    };
    if !base.is_same_origin(&endpoint) {
        let (base, other) = (origin(base.url()), origin(endpoint.url()));
        let message = format!("{base} wants messages to go to another server, {other}");
        return Err(Error::new(ErrorKind::ProtocolViolation, message));
    }
    Ok(endpoint)
}

/// All messages of the stream, and then its end.
fn messages(
    stream: HttpResponse,
    decoder: SseDecoder,
) -> impl Stream<Item = ExchangeEvent> + Send + 'static {
    stream::unfold(Some((stream, decoder)), async |open| {
        let (mut stream, mut decoder) = open?;
        loop {
            match next_event(&mut stream, &mut decoder).await {
                Ok(Some(event)) if event.is_message() => {
                    let message = match event.missing {
                        0 => Some(InboundEvent::Message(event.data)),
                        _ => event.short_answer().map(InboundEvent::Response),
                    };
                    let Some(message) = message else {
                        return Some((ended(error::too_large(stream.url())), None));
                    };
                    return Some((ExchangeEvent::Came(message), Some((stream, decoder))));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Some((ended(error::broken_off(stream.url())), None)),
                Err(error) => return Some((ended(error), None)),
            }
        }
    })
}

fn ended(error: Error) -> ExchangeEvent {
    ExchangeEvent::Came(InboundEvent::Closed(error))
}

async fn post(
    client: HttpClient,
    target: Arc<HttpEndpoint>,
    request: HttpRequest,
    id: u64,
) -> ExchangeEvent {
    match accepted(&client, &target, &request).await {
        Ok(()) => ExchangeEvent::Posted(id),
        Err(error) => ExchangeEvent::Last(id, InboundEvent::RequestFailed { id, error }),
    }
}

async fn accepted(
    client: &HttpClient,
    target: &HttpEndpoint,
    request: &HttpRequest,
) -> Result<(), Error> {
    let mut response = client.send(request).await?;
    let body = collect(&mut response).await?;
    if response.status().is_success() {
        return Ok(());
    }
    Err(UnexpectedResponse { has_session: true, ..answer(target, &response, &body) }.refusal())
}
