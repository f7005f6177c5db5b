//! Requests of modern clients: each is independent, and is cancelled by closing its connection.

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
use trunkline::channel::{Receiver, Sender, bounded_bytes};
use trunkline::message::{Id, RpcError};
use trunkline::principal::Requester;
use trunkline::protocol::code;

use super::AppState;
use super::event_stream::{HEARTBEAT, KEEP_ALIVE};
use super::responses::{answered, counted_response, refuse};
use super::sessions::events;
use super::unread::MAX_UNCOUNTED_BYTES;
use crate::access::budget::UnreadMessages;
use crate::access::scope::CallerIdentity;
use crate::client::caller::{Caller, Lease, requester_without_session};
use crate::client::channel::{ClientChannel, MAX_UNREAD, MAX_UNREAD_BYTES, OutboundChannel};
use crate::handlers::dispatch;
use crate::request::errors::unknown_token;
use crate::request::incoming::{ClientProfile, IncomingRequest};
use crate::request::param_headers;
use crate::request::response::RpcResult;

/// How long a modern request may take before the response becomes a stream. A plain response has a
/// meaningful status, so streams are used only where keep-alives are needed.
const LATER: Duration = Duration::from_secs(5);

type ModernFuture = Pin<Box<dyn Future<Output = RpcResult> + Send>>;

/// Handles a modern request. It is cancelled by closing its connection.
pub(super) async fn modern(
    state: &Arc<AppState>,
    identity: &Arc<CallerIdentity>,
    headers: HeaderMap,
    incoming: IncomingRequest,
) -> Response {
    let id = incoming.id.clone();
    let (outlet, inbox) = bounded_bytes(MAX_UNREAD, MAX_UNREAD_BYTES);
    let (caller, unread) = match modern_caller(state, identity, (&headers, &incoming), outlet) {
        Ok(caller) => caller,
        Err(error) => return refuse(status_of(&error), Some(&id), &error),
    };
    let incoming = incoming.with_headers(headers);
    let answering: ModernFuture =
        Box::pin(dispatch::handle(Arc::clone(&state.gateway), caller, incoming));
    let mut work = ModernExchange { answering: Some(answering), inbox, id, last: None, unread };
    match timeout(LATER, work.next()).await {
        Ok(Some(ModernEvent::Answer(answer))) => {
            let status = answer.as_ref().map_or_else(status_of, |_| StatusCode::OK);
            answered(&work.unread, &work.id, answer, status)
        }
        Ok(Some(ModernEvent::Message(message))) => work.streamed(Some(message)),
        Ok(None) | Err(_) => work.streamed(None),
    }
}

fn modern_caller(
    state: &AppState,
    identity: &Arc<CallerIdentity>,
    (headers, incoming): (&HeaderMap, &IncomingRequest),
    outlet: Sender<Bytes>,
) -> Result<(Caller, UnreadMessages), RpcError> {
    let client = ClientProfile::of_request(&incoming.said)?;
    param_headers::check(headers, &client.version, incoming)?;
    let Requester { principal, .. } = requester_without_session(&client, identity);
    let unread = state.sessions.unread.answers_to(principal);
    let caller = Caller {
        client: Arc::new(client),
        identity: Arc::clone(identity),
        level: incoming.level()?,
        channel: ClientChannel::new(OutboundChannel::CountedRequest(outlet, unread.clone())),
        session: None,
        admission: admission(state, headers, incoming)?,
        path: incoming.path.clone(),
    };
    Ok((caller, unread))
}

/// The authorization of a request. Only `subscriptions/listen` needs more than the initial check.
fn admission(
    state: &AppState,
    headers: &HeaderMap,
    incoming: &IncomingRequest,
) -> Result<Lease, RpcError> {
    if &*incoming.method != "subscriptions/listen" {
        return Ok(Lease::Request);
    }
    state.guard.admission(headers).ok_or_else(unknown_token)
}

/// A modern request that is being handled. Dropping it cancels it.
struct ModernExchange {
    answering: Option<ModernFuture>,
    inbox: Receiver<Bytes>,
    id: Id,
    last: Option<RpcResult>,
    unread: UnreadMessages,
}

enum ModernEvent {
    Message(Bytes),
    Answer(RpcResult),
}

impl ModernExchange {
    /// The next message; `None` after the response.
    async fn next(&mut self) -> Option<ModernEvent> {
        if let Some(answering) = &mut self.answering {
            tokio::select! {
                biased;
                message = self.inbox.recv() => return Some(ModernEvent::Message(message)),
                answer = answering => self.last = Some(answer),
            }
            self.answering = None;
        }
        // Messages sent before the response are delivered before it.
        match self.inbox.try_recv() {
            Some(message) => Some(ModernEvent::Message(message)),
            None => self.last.take().map(ModernEvent::Answer),
        }
    }

    /// The rest of the exchange as an SSE stream.
    fn streamed(self, first: Option<Bytes>) -> Response {
        let Self { answering, inbox, id, last, unread } = self;
        // Continues while the client does not read, so that the response counts as unread as soon
        // as it exists.
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
        let stream = ModernStream { answer: Some(answering_task), inbox, next };
        let body = unfold(stream, |mut stream| async {
            let chunk = stream.next().await?;
            Some((Ok::<_, std::convert::Infallible>(chunk), stream))
        });
        events(Body::from_stream(body))
    }
}

/// The SSE stream of a modern request: messages, then the response. Dropping it cancels the
/// request.
struct ModernStream {
    /// `None` once the response is taken.
    answer: Option<JoinSet<Option<Bytes>>>,
    inbox: Receiver<Bytes>,
    /// Parts of the next events.
    next: VecDeque<Bytes>,
}

impl ModernStream {
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

    /// The next message; `None` after the response. Messages sent before the response come before
    /// it.
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

/// An SSE event with a message, in parts: a long one is not copied.
fn event(message: Bytes) -> impl Iterator<Item = Bytes> {
    const START: &[u8] = b"data: ";
    const END: &[u8] = b"\n\n";
    let parts = match message.len() <= MAX_UNCOUNTED_BYTES {
        true => [[START, &message[..], END].concat().into(), Bytes::new(), Bytes::new()],
        false => [Bytes::from_static(START), message, Bytes::from_static(END)],
    };
    parts.into_iter().filter(|part| !part.is_empty())
}

/// The HTTP status of an error response to a modern client.
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
