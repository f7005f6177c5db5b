//! One message of a client, and the answer to it: JSON if it is there soon, a stream of events if
//! something else comes first.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, unfold};
use tokio::time::{sleep, timeout};
use trunkline::message::{Id, Message, Notification, Request, RpcError, code};
use trunkline::queue::{Receiver, Sender, queue, weighed_queue};

use super::Door;
use super::body::{Received, Unread};
use super::replay::{HEARTBEAT, KEEP_ALIVE};
use super::sessions::{HttpSession, SESSION, events};
use crate::asked::{Asked, Client};
use crate::caller::{Admission, Caller, id_without_session};
use crate::gateway::cancelled;
use crate::offer;
use crate::protocol::refusal;
use crate::reply::{Answer, response, response_in_parts};
use crate::scope::Identity;
use crate::session::Running;
use crate::talk::{LastWords, MAX_UNREAD, MAX_UNREAD_BYTES, Outlet, Talk};
use crate::{headers, malformed, panics};

/// How long a legacy client waits for a plain answer before it gets a stream, which it can take up
/// again if it breaks.
const SOON: Duration = Duration::from_millis(250);

/// How long a modern client waits for a plain answer. The status of the answer says something to
/// it, so that streams come only where they have to show that they are alive.
const LATER: Duration = Duration::from_secs(5);

type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Takes one message.
pub(super) async fn receive(
    door: &Arc<Door>,
    identity: &Arc<Identity>,
    headers: HeaderMap,
    received: Result<Received, Unread>,
) -> Response {
    let Received { bytes: body, reservation } = match received {
        Ok(received) => received,
        Err(unread) => return unreadable(door, &unread),
    };
    if !is_json(&headers) {
        let text = "a message is application/json: say so in the Content-Type header\n";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response();
    }
    match Message::read(&body) {
        Ok(Message::Request(request)) => {
            let id = request.id.clone();
            let answering = async {
                let request = Asked::of(request).with_reservation(reservation);
                asked(door, identity, headers, request).await
            };
            let answer = panics::outcome_of(answering).await;
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            answer.unwrap_or_else(|| refuse(status, Some(&id), &panics::internal_error()))
        }
        Ok(Message::Notification(notification)) => {
            told(door, identity, &headers, notification).await
        }
        Ok(Message::Response(answer)) => match door.sessions.find(identity, &headers) {
            Ok(session) => {
                session.session.questions.answered(answer);
                StatusCode::ACCEPTED.into_response()
            }
            Err(refusal) => *refusal,
        },
        Err(malformed) => {
            let (id, error) = malformed::explained(&body, malformed);
            refuse(StatusCode::BAD_REQUEST, id.as_ref(), &error)
        }
    }
}

/// The refusal of a message that was not read to its end.
fn unreadable(door: &Door, unread: &Unread) -> Response {
    match unread {
        Unread::TooLong => {
            let error = malformed::too_long(door.message_bytes);
            refuse(StatusCode::PAYLOAD_TOO_LARGE, None, &error)
        }
        Unread::Late => {
            (StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time\n").into_response()
        }
        Unread::Broken => (StatusCode::BAD_REQUEST, "the message is not whole\n").into_response(),
        Unread::Busy => busy("too many bytes of messages are under way; try again later\n"),
    }
}

/// The refusal of something for which there is no room just now.
fn busy(text: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json"))
}

/// What a client tells: a legacy one about its requests, and either what is for a server.
async fn told(
    door: &Door,
    identity: &Identity,
    headers: &HeaderMap,
    notification: Notification,
) -> Response {
    if headers.contains_key(SESSION) {
        let session = match door.sessions.find(identity, headers) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        match cancelled(&notification) {
            Some(id) => session.session.cancel(&id, notification.params.as_ref()),
            None => {
                door.gateway.told(identity, Some(session.session.id.as_str()), notification).await;
            }
        }
    } else if let Ok(client) = modern_teller(headers, &notification) {
        let id = id_without_session(&client, identity);
        door.gateway.told(identity, Some(id.as_str()), notification).await;
    }
    StatusCode::ACCEPTED.into_response()
}

/// The modern client that tells something, once it declares itself as in a request.
fn modern_teller(headers: &HeaderMap, notification: &Notification) -> Result<Client, RpcError> {
    let Notification { method, params } = notification.clone();
    let asked = Asked::of(Request { id: Id::number(0), method, params });
    let client = Client::of_request(&asked.said)?;
    headers::check(headers, &client.version, &asked)?;
    Ok(client)
}

async fn asked(
    door: &Arc<Door>,
    identity: &Arc<Identity>,
    headers: HeaderMap,
    asked: Asked,
) -> Response {
    match headers::is_modern(&headers, &asked) {
        Ok(true) => modern(door, identity, headers, asked).await,
        Ok(false) if &*asked.method == "initialize" => open(door, identity, &asked).await,
        Ok(false) => match door.sessions.find(identity, &headers) {
            Ok(session) => legacy(door, &session, asked).await,
            Err(refusal) => *refusal,
        },
        Err(error) => refuse(StatusCode::BAD_REQUEST, Some(&asked.id), &error),
    }
}

/// Opens a session.
async fn open(door: &Door, identity: &Arc<Identity>, asked: &Asked) -> Response {
    let refused = |error| refuse(StatusCode::BAD_REQUEST, Some(&asked.id), &error);
    let client = match Client::of_initialize(&asked.params) {
        Ok(client) => client,
        Err(error) => return refused(error),
    };
    let session = door.sessions.prepare(client, identity);
    let (outlet, _) = queue(1);
    let caller = caller_of(&session, outlet, LastWords::default());
    let instructions = match door.gateway.instructions(&caller).await {
        Ok(instructions) => instructions,
        Err(error) => return refused(error),
    };
    // Not before: whoever does not wait for that long takes no room of others.
    if !door.sessions.open(&session) {
        return busy("there are too many sessions; try again later\n");
    }
    let result = offer::initialized(&session.session.client, instructions);
    let mut answer = answered(&asked.id, Ok(result.into()), StatusCode::OK);
    if let Ok(id) = session.session.id.as_str().parse() {
        answer.headers_mut().insert(SESSION, id);
    }
    answer
}

fn caller_of(session: &HttpSession, outlet: Sender<Bytes>, last_words: LastWords) -> Caller {
    let session = &session.session;
    Caller {
        client: Arc::clone(&session.client),
        identity: Arc::clone(&session.identity),
        level: Some(session.level()),
        talk: Talk::new(Outlet::Request(outlet))
            .with_questions(Arc::clone(&session.questions))
            .with_last_words(last_words),
        session: Some(Arc::clone(session)),
        admission: Admission::Asked,
    }
}

/// A request in a session. Its client may go away without giving it up.
async fn legacy(door: &Door, session: &Arc<HttpSession>, asked: Asked) -> Response {
    let id = asked.id.clone();
    let Some(running) = session.session.begin(&id) else {
        let error = RpcError::new(code::INVALID_REQUEST, "a request of this id is not over yet");
        return refuse(StatusCode::BAD_REQUEST, Some(&id), &error);
    };
    let (outlet, inbox) = weighed_queue(MAX_UNREAD, MAX_UNREAD_BYTES);
    let caller = caller_of(session, outlet, running.last_words());
    let answering: Answering = Box::pin(Arc::clone(&door.gateway).answer(caller, asked));
    let mut work = Work { going_on: Some((answering, running)), inbox, last: None };
    let first = tokio::select! {
        biased;
        event = work.next() => event,
        () = sleep(SOON) => Event::Nothing,
    };
    let message = match first {
        Event::Over(answer) => return answered(&id, answer, StatusCode::OK),
        Event::Cancelled => return StatusCode::ACCEPTED.into_response(),
        Event::Said(message) => Some(message),
        Event::Nothing => None,
    };
    let stream = session.stream();
    if let Some(message) = message {
        stream.push(message);
    }
    let answer = session.answer(&stream, 0);
    let (sessions, session) = (Arc::clone(&door.sessions), Arc::clone(session));
    tokio::spawn(async move {
        loop {
            match work.next().await {
                Event::Said(message) => stream.push(message),
                Event::Over(answer) => {
                    stream.push(response(&id, answer));
                    break;
                }
                Event::Cancelled | Event::Nothing => break,
            }
        }
        sessions.finish(&session, &stream);
    });
    answer
}

/// A request that is being worked on, with what is said meanwhile. If its client goes away before
/// it has an answer, it is worked on all the same: only a cancellation cancels.
struct Work {
    /// Nothing once it is over.
    going_on: Option<(Answering, Running)>,
    inbox: Receiver<Bytes>,
    last: Option<Answer>,
}

enum Event {
    Over(Answer),
    Said(Bytes),
    Cancelled,
    Nothing,
}

impl Work {
    async fn next(&mut self) -> Event {
        if let Some((answering, running)) = &mut self.going_on {
            tokio::select! {
                biased;
                message = self.inbox.recv() => return Event::Said(message),
                answer = answering => self.last = Some(answer),
                () = running.cancelled() => {}
            }
            self.going_on = None;
        }
        // What was said before the answer comes before it.
        match (self.inbox.try_recv(), self.last.take()) {
            (Some(message), last) => {
                self.last = last;
                Event::Said(message)
            }
            (None, Some(answer)) => Event::Over(answer),
            (None, None) => Event::Cancelled,
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let Some((answering, running)) = self.going_on.take() else { return };
        tokio::spawn(async move {
            tokio::select! {
                _ = answering => {}
                () = running.cancelled() => {}
            }
        });
    }
}

/// A request that stands for itself. Its client goes away to cancel it.
async fn modern(
    door: &Arc<Door>,
    identity: &Arc<Identity>,
    headers: HeaderMap,
    asked: Asked,
) -> Response {
    let id = asked.id.clone();
    let (outlet, inbox) = weighed_queue(MAX_UNREAD, MAX_UNREAD_BYTES);
    let caller = match modern_caller(door, identity, (&headers, &asked), outlet) {
        Ok(caller) => caller,
        Err(error) => return refuse(status_of(&error), Some(&id), &error),
    };
    let asked = asked.with_headers(headers);
    let answering: Answering = Box::pin(Arc::clone(&door.gateway).answer(caller, asked));
    let mut work = Exchange { answering: Some(answering), inbox, id, last: None };
    match timeout(LATER, work.next()).await {
        Ok(Some(Said::Answer(answer))) => {
            let status = answer.as_ref().map_or_else(status_of, |_| StatusCode::OK);
            answered(&work.id, answer, status)
        }
        Ok(Some(Said::Message(message))) => work.streamed(Some(message)),
        Ok(None) | Err(_) => work.streamed(None),
    }
}

fn modern_caller(
    door: &Door,
    identity: &Arc<Identity>,
    (headers, asked): (&HeaderMap, &Asked),
    outlet: Sender<Bytes>,
) -> Result<Caller, RpcError> {
    let client = Client::of_request(&asked.said)?;
    headers::check(headers, &client.version, asked)?;
    let caller = Caller {
        client: Arc::new(client),
        identity: Arc::clone(identity),
        level: asked.level()?,
        talk: Talk::new(Outlet::Request(outlet)),
        session: None,
        admission: admission(door, headers, asked)?,
    };
    Ok(caller)
}

/// For how long a request may go on. Only one that listens goes on for longer than its answer takes.
fn admission(door: &Door, headers: &HeaderMap, asked: &Asked) -> Result<Admission, RpcError> {
    if &*asked.method != "subscriptions/listen" {
        return Ok(Admission::Asked);
    }
    let gone = || RpcError::new(code::INVALID_REQUEST, "the token is not known any more");
    door.guard.admission(headers).ok_or_else(gone)
}

/// A modern request that is being worked on. Dropping it cancels it.
struct Exchange {
    answering: Option<Answering>,
    inbox: Receiver<Bytes>,
    id: Id,
    last: Option<Answer>,
}

enum Said {
    Message(Bytes),
    Answer(Answer),
}

impl Exchange {
    /// What is said next; nothing after the answer.
    async fn next(&mut self) -> Option<Said> {
        if let Some(answering) = &mut self.answering {
            tokio::select! {
                biased;
                message = self.inbox.recv() => return Some(Said::Message(message)),
                answer = answering => self.last = Some(answer),
            }
            self.answering = None;
        }
        // What was said before the answer comes before it.
        match self.inbox.try_recv() {
            Some(message) => Some(Said::Message(message)),
            None => self.last.take().map(Said::Answer),
        }
    }

    /// The rest of it as a stream of events.
    fn streamed(self, first: Option<Bytes>) -> Response {
        let first = first.map(|message| event(&message));
        let body = unfold((self, first), |(mut work, first)| async {
            if let Some(first) = first {
                return Some((Ok::<_, std::convert::Infallible>(first), (work, None)));
            }
            let chunk = match timeout(KEEP_ALIVE, work.next()).await {
                Err(_) => Bytes::from_static(HEARTBEAT),
                Ok(Some(Said::Message(message))) => event(&message),
                Ok(Some(Said::Answer(answer))) => event(&response(&work.id, answer)),
                Ok(None) => return None,
            };
            Some((Ok(chunk), (work, None)))
        });
        events(Body::from_stream(body))
    }
}

fn event(message: &Bytes) -> Bytes {
    [b"data: ", &message[..], b"\n\n"].concat().into()
}

/// The status of an answer to a modern client that is an error.
fn status_of(error: &RpcError) -> StatusCode {
    match error.code() {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION
        | code::INVALID_PARAMS
        | code::INVALID_REQUEST => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The answer to a request as a whole body. A long one is not copied for that.
fn answered(id: &Id, answer: Answer, status: StatusCode) -> Response {
    let [first, inside, last] = response_in_parts(id, answer);
    if inside.is_empty() {
        return json(status, first.into());
    }
    let length = first.len() + inside.len() + last.len();
    let parts = stream::iter([first, inside, last].map(Ok::<_, std::convert::Infallible>));
    let mut response = json(status, Body::from_stream(parts));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn refuse(status: StatusCode, id: Option<&Id>, error: &RpcError) -> Response {
    json(status, refusal(id, error).into())
}
