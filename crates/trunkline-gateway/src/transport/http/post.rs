//! One message of a client, and the answer to it: JSON if it is there soon, a stream of events if
//! something else comes first.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::time::sleep;
use trunkline::message::{Id, Message, Notification, Request, RpcError};
use trunkline::protocol::code;
use trunkline::queue::{Receiver, Sender, queue, weighed_queue};

use super::Door;
use super::body::{Received, Unread};
use super::modern::modern;
use super::responses::{answered, put_answer, refuse};
use super::sessions::{HttpSession, SESSION};
use crate::access::scope::Identity;
use crate::client::caller::{Admission, Caller, id_without_session};
use crate::client::channel::{LastWords, MAX_UNREAD, MAX_UNREAD_BYTES, Outlet, Talk};
use crate::client::session::Running;
use crate::handlers::discover;
use crate::handlers::gateway::cancelled;
use crate::request::incoming::{Asked, Client};
use crate::request::response::Answer;
use crate::request::{malformed, panics, param_headers};

/// How long a legacy client waits for a plain answer before it gets a stream, which it can take up
/// again if it breaks.
const SOON: Duration = Duration::from_millis(250);

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
    param_headers::check(headers, &client.version, &asked)?;
    Ok(client)
}

async fn asked(
    door: &Arc<Door>,
    identity: &Arc<Identity>,
    headers: HeaderMap,
    asked: Asked,
) -> Response {
    match param_headers::is_modern(&headers, &asked) {
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
    let result = discover::initialized(&session.session.client, instructions);
    let mut answer = answered(&session.unread, &asked.id, Ok(result.into()), StatusCode::OK);
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
        Event::Over(answer) => return answered(&session.unread, &id, answer, StatusCode::OK),
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
                    put_answer(&stream, &id, answer);
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
