//! Handles one POSTed message. The response is JSON if it is ready soon, and an SSE stream if it is
//! slow or other messages come first.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use trunkline::channel::{bounded, bounded_bytes};
use trunkline::message::{Id, Message, Notification, Request, RpcError};
use trunkline::principal::RequestPath;

use super::AppState;
use super::body::{BodyError, RequestBody};
use super::connection_timer::ConnectionTimer;
use super::exchange::{DetachOnDrop, Exchange, ExchangeEvent};
use super::modern::modern;
use super::responses::{answered, put_answer, refuse};
use super::sessions::{HttpSession, SESSION};
use crate::access::scope::CallerIdentity;
use crate::client::caller::{Caller, Lease, SessionlessIds};
use crate::client::channel::{ClientChannel, MAX_UNREAD, MAX_UNREAD_BYTES, OutboundChannel};
use crate::handlers::notify::cancelled_id;
use crate::handlers::{discover, dispatch, request_log};
use crate::request::errors::{duplicate_id, handler_panicked, too_long};
use crate::request::incoming::{ClientProfile, IncomingRequest};
use crate::request::trace_context::{TRACEPARENT, TraceContext};
use crate::request::{malformed, mcp_headers, panics};

/// The header with the trace of the HTTP request.
static TRACEPARENT_HEADER: HeaderName = HeaderName::from_static(TRACEPARENT);

/// How long a legacy request may take before its response becomes a stream, which can be resumed.
const SOON: Duration = Duration::from_millis(250);

/// What comes with a message.
pub(super) struct MessageHead {
    pub(super) headers: HeaderMap,
    pub(super) path: RequestPath,
    /// The timer of its connection.
    pub(super) timer: ConnectionTimer,
}

/// Handles one message.
pub(super) async fn receive(
    state: &Arc<AppState>,
    identity: &Arc<CallerIdentity>,
    MessageHead { headers, path, timer }: MessageHead,
    received: Result<RequestBody, BodyError>,
) -> Response {
    let RequestBody { bytes: body, reservation } = match received {
        Ok(received) => received,
        Err(unread) => return unreadable(state, &unread),
    };
    if !is_json(&headers) {
        let text = "a message is application/json: say so in the Content-Type header\n";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response();
    }
    match Message::read(&body) {
        Ok(Message::Request(request)) => {
            let id = request.id.clone();
            let answering = async {
                let trace = headers.get(&TRACEPARENT_HEADER).and_then(|value| value.to_str().ok());
                let request = IncomingRequest::of(request)
                    .with_reservation(reservation)
                    .with_path(path)
                    .with_http_trace(trace.and_then(TraceContext::parse));
                on_request(state, identity, (headers, &timer), request).await
            };
            let answer = panics::outcome_of(answering).await;
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            answer.unwrap_or_else(|| refuse(status, Some(&id), &handler_panicked()))
        }
        Ok(Message::Notification(notification)) => {
            // Boxed, to keep the future of requests small.
            Box::pin(on_notification(state, identity, &headers, notification)).await
        }
        Ok(Message::Response(answer)) => match state.sessions.find(identity, &headers) {
            Ok(session) => {
                session.session.server_requests.on_response(answer);
                StatusCode::ACCEPTED.into_response()
            }
            Err(refusal) => *refusal,
        },
        Err(malformed) => {
            let (id, error) = malformed::parse_error(&body, malformed);
            refuse(StatusCode::BAD_REQUEST, id.as_ref(), &error)
        }
    }
}

/// The error for a message that could not be read completely.
fn unreadable(state: &AppState, unread: &BodyError) -> Response {
    match unread {
        BodyError::TooLong => {
            let error = too_long(state.message_bytes);
            refuse(StatusCode::PAYLOAD_TOO_LARGE, None, &error)
        }
        BodyError::Late => {
            (StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time\n").into_response()
        }
        BodyError::Broken => {
            (StatusCode::BAD_REQUEST, "the message is not whole\n").into_response()
        }
        BodyError::Busy => busy("too many bytes of messages are under way; try again later\n"),
    }
}

/// The error for a request above a resource limit.
fn busy(text: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json"))
}

/// Handles a notification: the cancellation of a legacy request, or one to forward to a server.
async fn on_notification(
    state: &AppState,
    identity: &Arc<CallerIdentity>,
    headers: &HeaderMap,
    notification: Notification,
) -> Response {
    if headers.contains_key(&SESSION) {
        let session = match state.sessions.find(identity, headers) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        match cancelled_id(&notification) {
            Some(id) => session.requests.cancel(&id, notification.params.as_ref()),
            None => {
                let requester = session.session.requester();
                state.gateway.relay_notification(identity, &requester, notification).await;
            }
        }
    } else if let Ok(client) = modern_teller(headers, &notification) {
        let requester = SessionlessIds::default().requester(&client, identity);
        state.gateway.relay_notification(identity, &requester, notification).await;
    }
    StatusCode::ACCEPTED.into_response()
}

/// The modern client of a notification, if its `_meta` and headers are complete as in a request.
fn modern_teller(
    headers: &HeaderMap,
    notification: &Notification,
) -> Result<ClientProfile, RpcError> {
    let Notification { method, params } = notification.clone();
    let incoming = IncomingRequest::of(Request { id: Id::number(0), method, params });
    let client = ClientProfile::of_request(&incoming.meta)?;
    mcp_headers::check(headers, &client.version, &incoming)?;
    Ok(client)
}

async fn on_request(
    state: &Arc<AppState>,
    identity: &Arc<CallerIdentity>,
    (headers, timer): (HeaderMap, &ConnectionTimer),
    incoming: Box<IncomingRequest>,
) -> Response {
    match mcp_headers::is_modern(&headers, &incoming) {
        Ok(true) => modern(state, identity, (headers, timer), incoming).await,
        Ok(false) if &*incoming.method == "initialize" => open(state, identity, &incoming).await,
        Ok(false) => match state.sessions.find(identity, &headers) {
            Ok(session) => legacy(state, &session, (incoming, timer)).await,
            Err(refusal) => *refusal,
        },
        Err(error) => refuse(StatusCode::BAD_REQUEST, Some(&incoming.id), &error),
    }
}

/// Opens a session.
async fn open(
    state: &AppState,
    identity: &Arc<CallerIdentity>,
    incoming: &IncomingRequest,
) -> Response {
    let refused = |error| refuse(StatusCode::BAD_REQUEST, Some(&incoming.id), &error);
    let client = match ClientProfile::of_initialize(&incoming.params) {
        Ok(client) => client,
        Err(error) => return refused(error),
    };
    let session = state.sessions.prepare(client, identity);
    let (outlet, _) = bounded(1);
    let caller = caller_of(&session, ClientChannel::new(OutboundChannel::Request(outlet)));
    let instructions = match state.gateway.instructions(&caller).await {
        Ok(instructions) => instructions,
        Err(error) => return refused(error),
    };
    // Only now, so that clients that give up earlier take no place of others.
    if !state.sessions.open(&session) {
        return busy("there are too many sessions; try again later\n");
    }
    request_log::session_opened(&session.session.client);
    let result = discover::initialize_result(&session.session.client, instructions);
    let mut answer = answered(&session.unread, &incoming.id, Ok(result.into()), StatusCode::OK);
    if let Ok(id) = session.session.id.as_str().parse() {
        answer.headers_mut().insert(&SESSION, id);
    }
    answer
}

fn caller_of(session: &HttpSession, channel: ClientChannel) -> Caller {
    let session = &session.session;
    Caller {
        client: Arc::clone(&session.client),
        identity: Arc::clone(&session.identity),
        level: Some(session.level()),
        channel: channel.with_server_requests(Arc::clone(&session.server_requests)),
        session: Some(Arc::clone(session)),
        admission: Lease::Request,
        path: RequestPath::default(),
        ids: SessionlessIds::default(),
    }
}

/// Handles a request in a session. A closed connection does not cancel it.
async fn legacy(
    state: &AppState,
    session: &Arc<HttpSession>,
    (incoming, timer): (Box<IncomingRequest>, &ConnectionTimer),
) -> Response {
    let id = incoming.id.clone();
    let Some(running) = session.requests.begin(&id) else {
        return refuse(StatusCode::BAD_REQUEST, Some(&id), &duplicate_id());
    };
    let (outlet, inbox) = bounded_bytes(MAX_UNREAD, MAX_UNREAD_BYTES);
    let channel = ClientChannel::new(OutboundChannel::Request(outlet))
        .with_cancellation(running.cancellation());
    let caller = Caller { path: incoming.path.clone(), ..caller_of(session, channel) };
    let handling = dispatch::handle(Arc::clone(&state.gateway), caller, incoming);
    let running = DetachOnDrop::new(running.run(handling));
    let mut exchange = Exchange::new(Box::pin(running), inbox);
    let first = tokio::select! {
        biased;
        event = exchange.next() => Some(event),
        () = timer.elapsed(SOON) => None,
    };
    let message = match first {
        Some(Some(ExchangeEvent::Response(answer))) => {
            return answered(&session.unread, &id, answer, StatusCode::OK);
        }
        Some(None) => return StatusCode::ACCEPTED.into_response(),
        Some(Some(ExchangeEvent::Message(message))) => Some(message),
        None => None,
    };
    let stream = session.stream();
    if let Some(message) = message {
        stream.push(message);
    }
    let answer = session.answer(&stream, 0);
    let (sessions, session) = (Arc::clone(&state.sessions), Arc::clone(session));
    tokio::spawn(async move {
        while let Some(event) = exchange.next().await {
            match event {
                ExchangeEvent::Message(message) => stream.push(message),
                ExchangeEvent::Response(answer) => put_answer(&stream, &id, answer),
            }
        }
        sessions.finish(&session, &stream);
    });
    answer
}
