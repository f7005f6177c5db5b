//! Requests of modern clients: each is independent, and is cancelled by closing its connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::stream::unfold;
use tokio::time::timeout;
use trunkline::channel::{Sender, bounded_bytes};
use trunkline::message::RpcError;
use trunkline::principal::Requester;
use trunkline::protocol::code;

use super::AppState;
use super::connection_timer::ConnectionTimer;
use super::event_stream::{HEARTBEAT, KEEP_ALIVE};
use super::exchange::{Exchange, ExchangeEvent};
use super::responses::{answered, counted_response, refuse};
use super::sessions::events;
use super::unread::MAX_UNCOUNTED_BYTES;
use crate::access::budget::UnreadMessages;
use crate::access::scope::CallerIdentity;
use crate::client::caller::{Caller, Lease, SessionlessIds};
use crate::client::channel::{ClientChannel, MAX_UNREAD, MAX_UNREAD_BYTES, OutboundChannel};
use crate::handlers::dispatch;
use crate::request::errors::unknown_token;
use crate::request::incoming::{ClientProfile, IncomingRequest};
use crate::request::mcp_headers;

/// How long a modern request may take before the response becomes a stream. A plain response has a
/// meaningful status, so streams are used only where keep-alives are needed.
const LATER: Duration = Duration::from_secs(5);

/// Handles a modern request. It is cancelled by closing its connection.
pub(super) async fn modern(
    state: &Arc<AppState>,
    identity: &Arc<CallerIdentity>,
    (headers, timer): (HeaderMap, &ConnectionTimer),
    incoming: Box<IncomingRequest>,
) -> Response {
    let id = incoming.id.clone();
    let (outlet, inbox) = bounded_bytes(MAX_UNREAD, MAX_UNREAD_BYTES);
    let (caller, unread) = match modern_caller(state, identity, (&headers, &incoming), outlet) {
        Ok(caller) => caller,
        Err(error) => return refuse(status_of(&error), Some(&id), &error),
    };
    let incoming = incoming.with_headers(headers);
    let handling = dispatch::handle(Arc::clone(&state.gateway), caller, incoming);
    let mut exchange = Exchange::new(Box::pin(async { Some(handling.await) }), inbox);
    let first = tokio::select! {
        biased;
        event = exchange.next() => event,
        () = timer.elapsed(LATER) => None,
    };
    let first = match first {
        Some(ExchangeEvent::Response(answer)) => {
            let status = answer.as_ref().map_or_else(status_of, |_| StatusCode::OK);
            return answered(&unread, &id, answer, status);
        }
        Some(ExchangeEvent::Message(message)) => Some(message),
        None => None,
    };
    // Spawned, so that the response counts as unread as soon as it exists.
    streamed(exchange.spawn(move |answer| counted_response(&unread, &id, answer)), first)
}

fn modern_caller(
    state: &AppState,
    identity: &Arc<CallerIdentity>,
    (headers, incoming): (&HeaderMap, &IncomingRequest),
    outlet: Sender<Bytes>,
) -> Result<(Caller, UnreadMessages), RpcError> {
    let client = ClientProfile::of_request(&incoming.meta)?;
    mcp_headers::check(headers, &client.version, incoming)?;
    let ids = SessionlessIds::default();
    let Requester { principal, .. } = ids.requester(&client, identity);
    let unread = state.sessions.unread.answers_to(principal);
    let caller = Caller {
        client: Arc::new(client),
        identity: Arc::clone(identity),
        level: incoming.level()?,
        channel: ClientChannel::new(OutboundChannel::CountedRequest(outlet, unread.clone())),
        session: None,
        admission: admission(state, headers, incoming)?,
        path: incoming.path.clone(),
        ids,
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

/// The rest of an exchange as an SSE stream.
fn streamed(exchange: Exchange<Bytes>, first: Option<Bytes>) -> Response {
    let next = first.map(event).into_iter().flatten().collect();
    let body = unfold(ModernStream { exchange, next }, |mut stream| async {
        let chunk = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), stream))
    });
    events(Body::from_stream(body))
}

/// The SSE stream of a modern request. Dropping it cancels the request.
struct ModernStream {
    exchange: Exchange<Bytes>,
    /// Parts of the next events.
    next: VecDeque<Bytes>,
}

impl ModernStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(next) = self.next.pop_front() {
            return Some(next);
        }
        let message = match timeout(KEEP_ALIVE, self.exchange.next()).await {
            Err(_) => return Some(Bytes::from_static(HEARTBEAT)),
            Ok(event) => event?.into_bytes(),
        };
        self.next.extend(event(message));
        self.next.pop_front()
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
