//! Requests of modern clients: each stands for itself, and its client goes away to cancel it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::stream::unfold;
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline::message::{Id, RpcError};
use trunkline::protocol::code;
use trunkline::queue::{Receiver, Sender, weighed_queue};

use super::Door;
use super::event_stream::{HEARTBEAT, KEEP_ALIVE};
use super::responses::{answered, counted_response, refuse};
use super::sessions::events;
use super::unread::MAX_UNCOUNTED_BYTES;
use crate::access::budget::UnreadMessages;
use crate::access::scope::Identity;
use crate::client::caller::{Admission, Caller, id_without_session};
use crate::client::channel::{MAX_UNREAD, MAX_UNREAD_BYTES, Outlet, Talk};
use crate::request::incoming::{Asked, Client};
use crate::request::param_headers;
use crate::request::response::Answer;

/// How long a modern client waits for a plain answer. The status of the answer says something to
/// it, so that streams come only where they have to show that they are alive.
const LATER: Duration = Duration::from_secs(5);

type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A request that stands for itself. Its client goes away to cancel it.
pub(super) async fn modern(
    door: &Arc<Door>,
    identity: &Arc<Identity>,
    headers: HeaderMap,
    asked: Asked,
) -> Response {
    let id = asked.id.clone();
    let (outlet, inbox) = weighed_queue(MAX_UNREAD, MAX_UNREAD_BYTES);
    let (caller, unread) = match modern_caller(door, identity, (&headers, &asked), outlet) {
        Ok(caller) => caller,
        Err(error) => return refuse(status_of(&error), Some(&id), &error),
    };
    let asked = asked.with_headers(headers);
    let answering: Answering = Box::pin(Arc::clone(&door.gateway).answer(caller, asked));
    let mut work = Exchange { answering: Some(answering), inbox, id, last: None, unread };
    match timeout(LATER, work.next()).await {
        Ok(Some(Said::Answer(answer))) => {
            let status = answer.as_ref().map_or_else(status_of, |_| StatusCode::OK);
            answered(&work.unread, &work.id, answer, status)
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
) -> Result<(Caller, UnreadMessages), RpcError> {
    let client = Client::of_request(&asked.said)?;
    param_headers::check(headers, &client.version, asked)?;
    let principal = identity.principal.of_client(&id_without_session(&client, identity));
    let unread = door.sessions.unread.answers_to(principal);
    let caller = Caller {
        client: Arc::new(client),
        identity: Arc::clone(identity),
        level: asked.level()?,
        talk: Talk::new(Outlet::CountedRequest(outlet, unread.clone())),
        session: None,
        admission: admission(door, headers, asked)?,
    };
    Ok((caller, unread))
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
    unread: UnreadMessages,
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
        let Self { answering, inbox, id, last, unread } = self;
        // Goes on while the client does not read, so that the answer is counted as soon as it is there.
        let mut answering_task = JoinSet::new();
        answering_task.spawn(async move {
            let answer = match (last, answering) {
                (Some(last), _) => last,
                (None, Some(answering)) => answering.await,
                (None, None) => return None,
            };
            Some(counted_response(&unread, &id, answer))
        });
        let next = first.map(event).into_iter().flatten().collect();
        let stream = AnswerStream { answer: Some(answering_task), inbox, next };
        let body = unfold(stream, |mut stream| async {
            let chunk = stream.next().await?;
            Some((Ok::<_, std::convert::Infallible>(chunk), stream))
        });
        events(Body::from_stream(body))
    }
}

/// The stream on which a modern client gets an answer and what comes before it. Dropping it cancels
/// the request.
struct AnswerStream {
    /// Nothing once it is over.
    answer: Option<JoinSet<Option<Bytes>>>,
    inbox: Receiver<Bytes>,
    /// Parts of events that come next.
    next: VecDeque<Bytes>,
}

impl AnswerStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(next) = self.next.pop_front() {
            return Some(next);
        }
        let message = match timeout(KEEP_ALIVE, self.message()).await {
            Err(_) => return Some(Bytes::from_static(HEARTBEAT)),
            Ok(message) => message?,
        };
        self.next.extend(event(message));
        self.next.pop_front()
    }

    /// The next message; nothing after the answer. What was said before the answer comes before it.
    async fn message(&mut self) -> Option<Bytes> {
        let answer = self.answer.as_mut()?;
        let answer = tokio::select! {
            biased;
            message = self.inbox.recv() => return Some(message),
            answer = answer.join_next() => answer,
        };
        self.answer = None;
        let answer = answer.and_then(Result::ok).flatten();
        let mut messages = std::iter::from_fn(|| self.inbox.try_recv()).chain(answer);
        let first = messages.next();
        let rest: Vec<_> = messages.flat_map(event).collect();
        self.next.extend(rest);
        first
    }
}

/// An event with a message, in parts: a long one is not copied.
fn event(message: Bytes) -> impl Iterator<Item = Bytes> {
    const START: &[u8] = b"data: ";
    const END: &[u8] = b"\n\n";
    let parts = match message.len() <= MAX_UNCOUNTED_BYTES {
        true => [[START, &message[..], END].concat().into(), Bytes::new(), Bytes::new()],
        false => [Bytes::from_static(START), message, Bytes::from_static(END)],
    };
    parts.into_iter().filter(|part| !part.is_empty())
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
