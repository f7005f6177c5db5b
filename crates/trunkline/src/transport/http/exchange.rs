//! One request from its POST to its answer, over as many connections as that takes.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::time::timeout;
use url::Url;

use super::client::HttpClient;
use super::endpoint::HttpTarget;
use super::error::{self, Answer};
use super::headers;
use super::in_flight::Step;
use super::reconnect::{Opened, Reopening, is_passing};
use super::request::{HttpRequest, HttpResponse, collect_answer, is_event_stream};
use super::sse_decoder::Event;
use crate::error::{Error, ErrorKind};
use crate::message::{Id, MAX_DEPTH, Malformed, Message, Raw, Response, RpcError};
use crate::transport::Incoming;
use crate::transport::truncation::ShortMessage;

/// How often a stream is opened again without getting any further.
const MAX_FRUITLESS: u32 = 5;

/// How long a stream may take to end once the answer has come. A stream that ended leaves a
/// connection that can be used again; one that does not is closed.
const LINGERING: Duration = Duration::from_secs(1);

/// What is asked, and what may come of it.
pub(super) struct Question {
    pub(super) id: u64,
    pub(super) request: Arc<HttpRequest>,
    /// Whether the answer may name a session.
    pub(super) begins_session: bool,
    /// Whether a stream that broke may go on where it did.
    pub(super) is_resumable: bool,
}

/// A request on its way.
pub(super) struct Exchange {
    client: HttpClient,
    target: Arc<HttpTarget>,
    question: Question,
    stream: Reopening,
    stage: Stage,
    /// Whether an event has come.
    has_events: bool,
}

/// What has to be done next, with what that needs.
enum Stage {
    Post,
    Answer(HttpResponse),
    Events(HttpResponse),
    Resume,
    Linger(HttpResponse),
    Over,
}

impl Exchange {
    /// An exchange that has not begun.
    pub(super) fn new(client: HttpClient, target: Arc<HttpTarget>, question: Question) -> Self {
        let stream = Reopening::new(client.clone(), Arc::clone(&question.request));
        Self { client, target, question, stream, stage: Stage::Post, has_events: false }
    }

    /// Everything that comes of it, up to the last word.
    pub(super) fn run(self) -> impl Stream<Item = Step> + Send + 'static {
        stream::unfold(self, Self::step)
    }

    async fn step(mut self) -> Option<(Step, Self)> {
        loop {
            let step = match mem::replace(&mut self.stage, Stage::Over) {
                Stage::Post => self.post().await,
                Stage::Answer(response) => self.answer(response).await,
                Stage::Events(stream) => self.events(stream).await,
                Stage::Resume => self.resume().await,
                Stage::Linger(stream) => linger(stream).await,
                Stage::Over => return None,
            };
            if let Some(step) = step {
                return Some((step, self));
            }
        }
    }

    async fn post(&mut self) -> Option<Step> {
        let response = match self.client.send(&self.question.request).await {
            Ok(response) => response,
            Err(error) => return self.lost(error),
        };
        let session = response.headers().get(headers::SESSION_ID).cloned();
        let session =
            session.filter(|_| self.question.begins_session && response.status().is_success());
        self.stage = if is_event_stream(&response) {
            Stage::Events(response)
        } else {
            Stage::Answer(response)
        };
        session.map(|mut session| {
            session.set_sensitive(true);
            Step::Session(session)
        })
    }

    /// The answer is the body, or there is none.
    async fn answer(&mut self, mut response: HttpResponse) -> Option<Step> {
        let body = match collect_answer(&mut response).await {
            Ok(ShortMessage { line, missing: 0 }) => line,
            Ok(short) => return self.answered_in_part(short, response.url()),
            Err(error) => return self.lost(error),
        };
        let answer = self.judge(&response, &body);
        let found = answer_to(self.question.id, &body);
        let names_request = found.as_ref().is_some_and(|found| found.names_request);
        if !answer.is_decided_by_status(names_request)
            && let Some(found) = found
        {
            return self.answered(found);
        }
        if matches!(Message::read(&body), Err(Malformed::TooDeep(_))) {
            let message = format!("the answer is nested deeper than {MAX_DEPTH} levels");
            return self.lost(Error::new(ErrorKind::NotMcp, message));
        }
        if !response.status().is_success() {
            return self.lost(answer.refusal());
        }
        let error = answer.nonsense();
        if body.is_empty() && answer.has_session { self.empty(error) } else { self.lost(error) }
    }

    fn judge<'a>(&'a self, response: &'a HttpResponse, body: &'a [u8]) -> Answer<'a> {
        Answer {
            target: &self.target,
            status: response.status(),
            headers: response.headers(),
            body,
            has_session: self.question.request.headers.contains_key(headers::SESSION_ID),
        }
    }

    async fn events(&mut self, mut stream: HttpResponse) -> Option<Step> {
        match self.stream.event(&mut stream).await {
            Ok(Some(event)) => {
                self.has_events = true;
                self.take(event, stream)
            }
            Ok(None) if self.is_over_without_event() => {
                self.empty(self.judge(&stream, b"").nonsense())
            }
            Ok(None) => self.go_on(error::broken_off(self.target.address.url())),
            Err(error) => self.go_on(error),
        }
    }

    /// The answer came without a part of its result.
    fn answered_in_part(&self, short: ShortMessage, url: &Url) -> Option<Step> {
        let is_own = |answer: &Response| answer.id.as_number() == Some(self.question.id);
        match short.answer().filter(is_own) {
            Some(answer) => Some(Step::Last(self.question.id, Incoming::Answer(answer))),
            None => self.lost(error::too_large(url)),
        }
    }

    fn take(&mut self, event: Event, stream: HttpResponse) -> Option<Step> {
        if event.missing > 0 {
            let short = ShortMessage { line: event.data, missing: event.missing };
            let step = self.answered_in_part(short, stream.url());
            self.stage = Stage::Linger(stream);
            return step;
        }
        if let Some(found) = answer_to(self.question.id, &event.data).filter(|_| event.is_message())
        {
            self.stage = Stage::Linger(stream);
            return self.answered(found);
        }
        self.stage = Stage::Events(stream);
        let is_message = event.is_message();
        let aside = Incoming::Aside { id: self.question.id, line: event.data };
        is_message.then_some(Step::Came(aside))
    }

    /// The stream broke: on to the next one, if there can be one.
    fn go_on(&mut self, error: Error) -> Option<Step> {
        let can_resume = self.question.is_resumable && self.stream.has_place();
        let is_hopeless = error.kind() == ErrorKind::TooLarge;
        if !can_resume || is_hopeless || self.stream.fruitless() >= MAX_FRUITLESS {
            return self.lost(error);
        }
        self.stage = Stage::Resume;
        None
    }

    async fn resume(&mut self) -> Option<Step> {
        self.stream.wait().await;
        match self.stream.open().await {
            Opened::Stream(stream) => {
                self.stage = Stage::Events(stream);
                None
            }
            Opened::Refused(response) => {
                let error = self.judge(&response, b"").refusal();
                if is_passing(response.status()) { self.go_on(error) } else { self.lost(error) }
            }
            Opened::NotNow(error) => self.go_on(error),
            Opened::Never(error) => self.lost(error),
        }
    }

    fn answered(&self, found: Found) -> Option<Step> {
        let response = Response { id: Id::number(self.question.id), outcome: found.outcome };
        Some(Step::Last(self.question.id, Incoming::Answer(response)))
    }

    /// Whether a stream of a session that ended has had nothing in it, and can not be taken up again.
    fn is_over_without_event(&self) -> bool {
        let has_session = self.question.request.headers.contains_key(headers::SESSION_ID);
        has_session && !self.has_events && !self.stream.has_place()
    }

    fn empty(&self, error: Error) -> Option<Step> {
        let id = self.question.id;
        Some(Step::Last(id, Incoming::Empty { id, error }))
    }

    fn lost(&self, error: Error) -> Option<Step> {
        Some(Step::Last(self.question.id, Incoming::Lost { id: self.question.id, error }))
    }
}

async fn linger(mut stream: HttpResponse) -> Option<Step> {
    let end = async { while let Ok(Some(_)) = stream.chunk().await {} };
    let _ = timeout(LINGERING, end).await;
    None
}

/// The answer to a request.
struct Found {
    outcome: Result<Raw, RpcError>,
    /// Whether it says so itself.
    names_request: bool,
}

/// The answer to a request, if a message is one.
///
/// An error under another id, or none, is about the one message that was posted: servers that
/// could not read it, or refused it before they did, do not know its id.
fn answer_to(id: u64, bytes: &Bytes) -> Option<Found> {
    let error = match Message::read(bytes) {
        Ok(Message::Response(Response { id: named, outcome })) => {
            if named.as_number() == Some(id) {
                return Some(Found { outcome, names_request: true });
            }
            outcome.err()
        }
        Ok(Message::Request(_) | Message::Notification(_)) | Err(Malformed::TooDeep(_)) => None,
        Err(_) => Raw::read(bytes).ok()?.get("error").and_then(RpcError::from_raw),
    };
    Some(Found { outcome: Err(error?), names_request: false })
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
    fn an_error_that_knows_no_id_is_about_what_was_posted() {
        let error = r#"{"code":-32022,"data":[1]}"#;
        for id in ["null", "\"server-error\"", "8"] {
            let text = format!(r#"{{"id":{id},"error":{error}}}"#);
            assert_eq!(answer(&text), Some((error.to_owned(), false)));
        }
        let text = format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#);
        assert_eq!(answer(&text), Some((error.to_owned(), false)));
    }
}
