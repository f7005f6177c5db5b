//! The gateway over Streamable HTTP: every message is a POST; streams are what is not over yet.

pub(crate) mod origin;
mod cors;
mod access;
mod unread;
mod retained_events;
mod event_stream;
mod responses;
mod sessions;
mod body;
mod modern;
mod post;
mod accept_status;
mod accept;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::net::TcpListener;
use trunkline::config::CHAIN_HEADER;
use trunkline::host::Host;

use crate::access::budget::ByteBudget;
use crate::access::scope::Scope;
use crate::handlers::gateway::Gateway;
use crate::options::GatewayOptions;
use crate::request::panics;
pub use crate::transport::http::accept_status::AcceptStatus;
use accept::ConnectionState;
use access::AccessControl;
use sessions::Sessions;

/// Answer to a request that this gateway has sent itself, perhaps by way of others.
const LOOP: &str = "this address leads back to the gateway that sent the request; it would call itself without end\n";

/// Everything a handler needs.
pub(crate) struct AppState {
    gateway: Arc<Gateway>,
    sessions: Arc<Sessions>,
    guard: AccessControl,
    /// The longest message.
    message_bytes: usize,
    /// Messages that are under way.
    bodies: Arc<ByteBudget>,
}

/// All servers of a host as one MCP server: at `/mcp` with everything, at `/mcp/agents/{name}` with
/// what an agent sees, at `/mcp/bundles/{name}` with what is in a bundle.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn router(host: Host, options: GatewayOptions) -> Router {
    let limits = options.limits;
    let gateway = Gateway::new(host, &limits);
    let state = Arc::new(AppState {
        sessions: Sessions::new(Arc::clone(&gateway), limits),
        gateway,
        guard: AccessControl::new(options),
        message_bytes: limits.message_bytes,
        bodies: ByteBudget::new(body::MAX_BODY_BYTES_OF_ALL, body::MAX_BODY_BYTES_OF_ONE),
    });
    Router::new()
        .route("/mcp", any(handle))
        .route("/mcp/", any(handle))
        .route("/mcp/agents/{name}", any(of_agent))
        .route("/mcp/bundles/{name}", any(of_bundle))
        .with_state(state)
}

/// Serves a router on a listener, until the returned future is dropped.
///
/// # Errors
///
/// When the listener fails.
pub async fn listen(router: Router, listener: TcpListener) -> io::Result<()> {
    accept::receive(router, listener, std::future::pending(), |_| ()).await
}

/// Serves a router on a listener until something has happened, such as [`Host::shutdown_started`], and returns
/// once everybody has their answers. Streams of legacy clients do not end by themselves: put a bound
/// on it.
///
/// # Errors
///
/// When the listener fails.
pub async fn listen_until(
    router: Router,
    listener: TcpListener,
    end: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    accept::receive(router, listener, end, |_| ()).await
}

/// Does what [`listen_until`] does, and reports when connections cannot be accepted any more and when
/// they can be again: once each, however often it is tried.
///
/// # Errors
///
/// When the listener fails.
pub async fn listen_reporting(
    router: Router,
    listener: TcpListener,
    end: impl Future<Output = ()> + Send + 'static,
    report: impl FnMut(AcceptStatus) + Send,
) -> io::Result<()> {
    accept::receive(router, listener, end, report).await
}

async fn handle(State(state): State<Arc<AppState>>, request: Request) -> Response {
    enter(&state, &Scope::default(), request).await
}

async fn of_agent(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    enter(&state, &Scope::of_agent(name), request).await
}

async fn of_bundle(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    enter(&state, &Scope::of_bundle(name), request).await
}

/// Lets somebody in who may come in, and does what they ask for.
async fn enter(state: &Arc<AppState>, scope: &Scope, mut request: Request) -> Response {
    let headers = std::mem::take(request.headers_mut());
    if let Err(problem) = state.guard.check_host_and_origin(&headers, request.uri()) {
        return (StatusCode::FORBIDDEN, problem).into_response();
    }
    let page = state.guard.page(&headers);
    if let (&Method::OPTIONS, Some(page)) = (request.method(), &page) {
        return page.preflight(&headers);
    }
    let response = panics::outcome_of(answer(state, scope, headers, request)).await;
    let response = response.unwrap_or_else(|| {
        let text = "the gateway failed on this request because of a defect in it\n";
        (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
    });
    match page {
        Some(page) => page.add_headers(response),
        None => response,
    }
}

/// Whether this gateway itself has sent a request: one of its servers is its own address (CON-16).
fn is_loop(state: &AppState, headers: &HeaderMap) -> bool {
    let chain = headers.get(CHAIN_HEADER).and_then(|value| value.to_str().ok());
    chain.is_some_and(|chain| state.gateway.host.chain().is_loop(chain))
}

async fn answer(
    state: &Arc<AppState>,
    scope: &Scope,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let identity = match state.guard.identify(&headers, scope) {
        Ok(identity) => Arc::new(identity),
        Err(refusal) => return refusal.into_response(),
    };
    if is_loop(state, &headers) {
        return (StatusCode::LOOP_DETECTED, LOOP).into_response();
    }
    if let Err(unknown) = identity.scope.check(&state.gateway.host) {
        return (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response();
    }
    if let Err(refusal) = ConnectionState::authenticate(&request, &identity.principal) {
        return refusal.into_response();
    }
    #[cfg(test)]
    assert!(headers.get("x-test-panic").is_none_or(|it| it != "GET"));
    match *request.method() {
        Method::POST => {
            let received = body::receive(state, &identity.principal, request.into_body()).await;
            post::receive(state, &identity, headers, received).await
        }
        Method::GET => match state.guard.identity_with_lease(&headers, scope) {
            Ok((identity, lease)) => state.sessions.open_stream(&identity, &headers, lease),
            Err(refusal) => refusal.into_response(),
        },
        Method::DELETE => state.sessions.end(&identity, &headers),
        _ => (StatusCode::METHOD_NOT_ALLOWED, [("Allow", "POST, GET, DELETE")]).into_response(),
    }
}
