//! Streamable HTTP: every message is a POST, whose response is one message or a stream of them.

pub(super) mod proxy;
pub(super) mod url;
pub(super) mod address_guard;
mod fair_reader;
pub(super) mod gateways;
mod tls;
mod connector;
pub(super) mod pool;
pub(super) mod client;
pub(super) mod endpoint;
mod informational;
pub(super) mod error;
pub(super) mod sse_decoder;
pub(super) mod headers;
pub(super) mod request;
pub(super) mod in_flight;
pub(super) mod notify;
mod reconnect;
mod exchange;
mod get_stream;
pub(super) mod guarded;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use tokio::time::timeout;

use super::stderr_tail::StderrTail;
use super::{InboundEvent, MessageKind, OutboundMessage};
use crate::config::Secret;
use crate::principal::RequestPath;
use crate::protocol::{Era, ProtocolVersion};
use client::HttpClient;
use endpoint::HttpEndpoint;
use exchange::{Exchange, ExchangeRequest};
use get_stream::GetStream;
use in_flight::{ExchangeEvent, InFlight};
use notify::deliver;
use request::HttpRequest;

/// Timeout for the DELETE that ends a session: it is a courtesy, and a server that is gone does not
/// need it.
const GOODBYE: Duration = Duration::from_secs(3);

/// A transport to a server that speaks Streamable HTTP.
pub(crate) struct HttpTransport {
    client: HttpClient,
    target: Arc<HttpEndpoint>,
    version: Option<ProtocolVersion>,
    session: Option<HeaderValue>,
    /// Headers of every POST, rebuilt only when they change.
    post_headers: Arc<HeaderMap>,
    exchanges: InFlight,
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport")
            .field("target", &self.target)
            .field("version", &self.version)
            .field("exchanges", &self.exchanges)
            .finish_non_exhaustive()
    }
}

impl HttpTransport {
    /// A transport without a connection: the first one is made when a message is sent.
    pub(crate) fn new(client: HttpClient, target: HttpEndpoint) -> Self {
        let mut transport = Self {
            client: client.for_server(),
            target: Arc::new(target),
            version: None,
            session: None,
            post_headers: Arc::default(),
            exchanges: InFlight::default(),
        };
        transport.prepare_posts();
        transport
    }

    /// Sets the version that every further message carries. It also selects the era, which decides
    /// whether headers repeat the method and name of a message, and whether streams are resumed.
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
        let OutboundMessage { line, purpose, path } = message;
        match purpose {
            MessageKind::Request { id, .. } => {
                let question = ExchangeRequest {
                    id,
                    begins_session: is_initialize(&purpose),
                    request: Arc::new(HttpRequest { path, ..self.post(purpose, line) }),
                    is_resumable: !self.is_modern(),
                };
                let exchange = Exchange::new(self.client.clone(), self.target.clone(), question);
                self.exchanges.start_request(id, exchange.run());
            }
            MessageKind::Notification { .. } | MessageKind::Response => {
                let bytes = line.len();
                let request = self.post(purpose.clone(), line);
                self.exchanges.send_notification(
                    deliver(self.client.clone(), request),
                    &purpose,
                    bytes,
                );
            }
        }
    }

    /// The next event; waits for ever when nothing is in flight. Cancel safe.
    pub(crate) async fn next(&mut self) -> InboundEvent {
        loop {
            match self.exchanges.next().await {
                ExchangeEvent::Came(incoming) | ExchangeEvent::Last(_, incoming) => {
                    return incoming;
                }
                ExchangeEvent::Session(session) => {
                    self.session = Some(session);
                    self.prepare_posts();
                }
                ExchangeEvent::Posted(_) | ExchangeEvent::Delivered => {}
            }
        }
    }

    /// Cancels a request and closes its connection, which is the cancellation of 2026-07-28.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.exchanges.cancel(id);
    }

    /// Opens the GET stream for messages that the server initiates, if it has one. Not used in
    /// 2026-07-28, where `subscriptions/listen` replaces it.
    pub(crate) fn open_get_stream(&mut self) {
        let listening = GetStream::new(self.client.clone(), self.request(Method::GET));
        self.exchanges.start(listening.run());
    }

    /// Closes all streams and ends the session, if there is one.
    pub(crate) async fn close(self) {
        let goodbye = self.session.is_some().then(|| self.request(Method::DELETE));
        drop(self.exchanges);
        if let Some(request) = goodbye {
            let _ = timeout(GOODBYE, self.client.send(&request)).await;
        }
    }

    fn is_modern(&self) -> bool {
        self.version.is_some_and(|version| version.era() == Era::Modern)
    }

    fn prepare_posts(&mut self) {
        let mut headers = self.headers();
        headers::add_post_headers(&mut headers);
        self.post_headers = Arc::new(headers);
    }

    fn post(&self, purpose: MessageKind, body: Bytes) -> HttpRequest {
        let mut headers = Arc::clone(&self.post_headers);
        let begins_anew = is_initialize(&purpose);
        if begins_anew {
            // `initialize` starts over, whatever was negotiated before.
            let headers = Arc::make_mut(&mut headers);
            headers.remove(headers::PROTOCOL_VERSION);
            headers.remove(headers::SESSION_ID);
        }
        let about = (self.is_modern() && !begins_anew).then_some(purpose);
        let address = self.target.address.clone();
        let path = RequestPath::default();
        HttpRequest { method: Method::POST, address, headers, about, path, body }
    }

    fn request(&self, method: Method) -> HttpRequest {
        let address = self.target.address.clone();
        HttpRequest::without_body(method, address, self.headers())
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = self.target.headers();
        if let Some(version) = self.version {
            let version = HeaderValue::from_static(version.as_str());
            headers.insert(headers::PROTOCOL_VERSION, version);
        }
        if let Some(session) = self.session.as_ref().filter(|_| !self.is_modern()) {
            headers.insert(headers::SESSION_ID, session.clone());
        }
        headers
    }
}

fn is_initialize(purpose: &MessageKind) -> bool {
    matches!(purpose, MessageKind::Request { method, .. } if &**method == "initialize")
}
