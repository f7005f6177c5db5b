//! One JSON-RPC request over HTTP, from its POST to its response, with as many reconnects as
//! needed.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::time::timeout;
use tracing::debug;
use url::Url;

use super::client::HttpClient;
use super::endpoint::HttpEndpoint;
use super::error::{self, UnexpectedResponse};
use super::headers;
use super::in_flight::ExchangeEvent;
use super::reconnect::{Reconnect, ReopenedStream, is_passing};
use super::request::{HttpRequest, HttpResponse, collect_answer, is_event_stream};
use super::sse_decoder::SseEvent;
use crate::error::{Error, ErrorKind};
use crate::message::{Id, MAX_DEPTH, Message, ParseError, Raw, Response, RpcError};
use crate::transport::InboundEvent;
use crate::transport::truncation::TruncatedMessage;

/// Attempts to resume a stream without progress.
const MAX_FRUITLESS: u32 = 5;

/// Time for a stream to end after the response. A stream that ended leaves a reusable connection;
/// any other is closed.
const LINGERING: Duration = Duration::from_secs(1);

/// A request, and the properties of its response.
pub(super) struct ExchangeRequest {
    pub(super) id: u64,
    pub(super) request: Arc<HttpRequest>,
    /// Whether the response may contain a session ID.
    pub(super) begins_session: bool,
    /// Whether a broken stream may be resumed.
    pub(super) is_resumable: bool,
}

/// A request in flight.
pub(super) struct Exchange {
    client: HttpClient,
    target: Arc<HttpEndpoint>,
    question: ExchangeRequest,
    stream: Reconnect,
    stage: ExchangeStage,
    /// Whether an event was received.
    has_events: bool,
}

/// The next step, with the state it needs.
enum ExchangeStage {
    Post,
    Answer(HttpResponse),
    Events(HttpResponse),
    Resume,
    Linger(HttpResponse),
    Over,
}

impl Exchange {
    /// An exchange that has not started.
    pub(super) fn new(
        client: HttpClient,
        target: Arc<HttpEndpoint>,
        question: ExchangeRequest,
    ) -> Self {
        let stream = Reconnect::new(client.clone(), Arc::clone(&question.request));
        Self { client, target, question, stream, stage: ExchangeStage::Post, has_events: false }
    }

    /// All events of the exchange, up to the final one.
    pub(super) fn run(self) -> impl Stream<Item = ExchangeEvent> + Send + 'static {
        stream::unfold(self, Self::step)
    }

    async fn step(mut self) -> Option<(ExchangeEvent, Self)> {
        loop {
            let step = match mem::replace(&mut self.stage, ExchangeStage::Over) {
                ExchangeStage::Post => self.post().await,
                ExchangeStage::Answer(response) => self.answer(response).await,
                ExchangeStage::Events(stream) => self.events(stream).await,
                ExchangeStage::Resume => self.resume().await,
                ExchangeStage::Linger(stream) => drain_stream(stream).await,
                ExchangeStage::Over => return None,
            };
            if let Some(step) = step {
                return Some((step, self));
            }
        }
    }

    async fn post(&mut self) -> Option<ExchangeEvent> {
        let response = match self.client.send(&self.question.request).await {
            Ok(response) => response,
            Err(error) => return self.failed(error),
        };
        debug!(id = self.question.id, status = response.status().as_u16(), "HTTP response");
        if response.status().is_success() && self.client.note_gateways(response.headers()).is_err()
        {
            // The lists of such a server contain this process's own items, and would grow with each
            // request.
            let error = error::leads_back(self.target.address.url());
            return Some(ExchangeEvent::Came(InboundEvent::Closed(error)));
        }
        let session = response.headers().get(headers::SESSION_ID).cloned();
        let session =
            session.filter(|_| self.question.begins_session && response.status().is_success());
        self.stage = if is_event_stream(&response) {
            ExchangeStage::Events(response)
        } else {
            ExchangeStage::Answer(response)
        };
        session.map(|mut session| {
            session.set_sensitive(true);
            ExchangeEvent::Session(session)
        })
    }

    /// Handles a response that is not an event stream.
    async fn answer(&mut self, mut response: HttpResponse) -> Option<ExchangeEvent> {
        let body = match collect_answer(&mut response).await {
            Ok(TruncatedMessage { line, missing: 0 }) => line,
            Ok(short) => return self.answered_in_part(short, response.url()),
            Err(error) => return self.failed(error),
        };
        let answer = self.judge(&response, &body);
        let found = answer_to(self.question.id, &body);
        let names_request = found.as_ref().is_some_and(|found| found.names_request);
        if !answer.is_decided_by_status(names_request)
            && let Some(found) = found
        {
            return self.answered(found);
        }
        if matches!(Message::read(&body), Err(ParseError::TooDeep(_))) {
            let message = format!("the answer is nested deeper than {MAX_DEPTH} levels");
            return self.failed(Error::new(ErrorKind::ProtocolViolation, message));
        }
        if !response.status().is_success() {
            return self.failed(answer.refusal());
        }
        let error = answer.not_mcp();
        if body.is_empty() && answer.has_session { self.empty(error) } else { self.failed(error) }
    }

    fn judge<'a>(&'a self, response: &'a HttpResponse, body: &'a [u8]) -> UnexpectedResponse<'a> {
        UnexpectedResponse {
            target: &self.target,
            status: response.status(),
            headers: response.headers(),
            body,
            has_session: self.question.request.headers.contains_key(headers::SESSION_ID),
        }
    }

    async fn events(&mut self, mut stream: HttpResponse) -> Option<ExchangeEvent> {
        match self.stream.event(&mut stream).await {
            Ok(Some(event)) => {
                self.has_events = true;
                self.take(event, stream)
            }
            Ok(None) if self.is_over_without_event() => {
                self.empty(self.judge(&stream, b"").not_mcp())
            }
            Ok(None) => self.resume_or_fail(error::broken_off(self.target.address.url())),
            Err(error) => self.resume_or_fail(error),
        }
    }

    /// Handles a response whose result was truncated.
    fn answered_in_part(&self, short: TruncatedMessage, url: &Url) -> Option<ExchangeEvent> {
        let is_own = |answer: &Response| answer.id.as_number() == Some(self.question.id);
        match short.answer().filter(is_own) {
            Some(answer) => {
                Some(ExchangeEvent::Last(self.question.id, InboundEvent::Response(answer)))
            }
            None => self.failed(error::too_large(url)),
        }
    }

    fn take(&mut self, event: SseEvent, stream: HttpResponse) -> Option<ExchangeEvent> {
        if event.missing > 0 {
            let short = TruncatedMessage { line: event.data, missing: event.missing };
            let step = self.answered_in_part(short, stream.url());
            self.stage = ExchangeStage::Linger(stream);
            return step;
        }
        if let Some(found) = answer_to(self.question.id, &event.data).filter(|_| event.is_message())
        {
            self.stage = ExchangeStage::Linger(stream);
            return self.answered(found);
        }
        self.stage = ExchangeStage::Events(stream);
        let is_message = event.is_message();
        let aside = InboundEvent::OnRequestStream { id: self.question.id, line: event.data };
        is_message.then_some(ExchangeEvent::Came(aside))
    }

    /// Resumes a broken stream, if that is possible.
    fn resume_or_fail(&mut self, error: Error) -> Option<ExchangeEvent> {
        let can_resume = self.question.is_resumable && self.stream.can_resume();
        let is_hopeless = error.kind() == ErrorKind::TooLarge;
        if !can_resume || is_hopeless || self.stream.fruitless_attempts() >= MAX_FRUITLESS {
            return self.failed(error);
        }
        self.stage = ExchangeStage::Resume;
        None
    }

    async fn resume(&mut self) -> Option<ExchangeEvent> {
        self.stream.wait().await;
        match self.stream.open().await {
            ReopenedStream::Stream(stream) => {
                self.stage = ExchangeStage::Events(stream);
                None
            }
            ReopenedStream::Refused(response) => {
                let error = self.judge(&response, b"").refusal();
                if is_passing(response.status()) {
                    self.resume_or_fail(error)
                } else {
                    self.failed(error)
                }
            }
            ReopenedStream::NotNow(error) => self.resume_or_fail(error),
            ReopenedStream::Never(error) => self.failed(error),
        }
    }

    fn answered(&self, found: ExchangeResult) -> Option<ExchangeEvent> {
        let response = Response { id: Id::number(self.question.id), outcome: found.outcome };
        Some(ExchangeEvent::Last(self.question.id, InboundEvent::Response(response)))
    }

    /// Whether the stream of a session ended without an event and cannot be resumed.
    fn is_over_without_event(&self) -> bool {
        let has_session = self.question.request.headers.contains_key(headers::SESSION_ID);
        has_session && !self.has_events && !self.stream.can_resume()
    }

    fn empty(&self, error: Error) -> Option<ExchangeEvent> {
        let id = self.question.id;
        Some(ExchangeEvent::Last(id, InboundEvent::EmptyReply { id, error }))
    }

    fn failed(&self, error: Error) -> Option<ExchangeEvent> {
        Some(ExchangeEvent::Last(
            self.question.id,
            InboundEvent::RequestFailed { id: self.question.id, error },
        ))
    }
}

async fn drain_stream(mut stream: HttpResponse) -> Option<ExchangeEvent> {
    let end = async { while let Ok(Some(_)) = stream.chunk().await {} };
    let _ = timeout(LINGERING, end).await;
    None
}

/// The response to a request.
struct ExchangeResult {
    outcome: Result<Raw, RpcError>,
    /// Whether it carries the ID of the request.
    names_request: bool,
}

/// The response to a request, if a message is one.
///
/// An error with another ID, or without one, is about the message that was posted: a server that
/// could not parse it, or rejected it before, does not know its ID.
fn answer_to(id: u64, bytes: &Bytes) -> Option<ExchangeResult> {
    let error = match Message::read(bytes) {
        Ok(Message::Response(Response { id: named, outcome })) => {
            if named.as_number() == Some(id) {
                return Some(ExchangeResult { outcome, names_request: true });
            }
            outcome.err()
        }
        Ok(Message::Request(_) | Message::Notification(_)) | Err(ParseError::TooDeep(_)) => None,
        Err(_) => Raw::read(bytes).ok()?.get("error").and_then(RpcError::from_raw),
    };
    Some(ExchangeResult { outcome: Err(error?), names_request: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Option<(String, bool)> {
        let found = answer_to(7, &Bytes::copy_from_slice(text.as_bytes()))?;
        let text = found.outcome.map_or_else(|error| error.raw().to_string(), |it| it.to_string());
        Some((text, found.names_request))
    }

    #[test]
    fn an_answer_is_known_by_its_id() {
        let own = r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#;
        assert_eq!(answer(own), Some((r#"{"a":1}"#.to_owned(), true)));
        for other in [
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"{"error":"Not Found"}"#,
            "<html>",
            "",
        ] {
            assert_eq!(answer(other), None, "{other}");
        }
    }

    #[test]
    fn error_without_an_id_belongs_to_the_posted_request() {
        let error = r#"{"code":-32022,"data":[1]}"#;
        for id in ["null", "\"server-error\"", "8"] {
            let text = format!(r#"{{"id":{id},"error":{error}}}"#);
            assert_eq!(answer(&text), Some((error.to_owned(), false)));
        }
        let text = format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#);
        assert_eq!(answer(&text), Some((error.to_owned(), false)));
    }
}
