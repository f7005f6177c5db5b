//! The gateway over Streamable HTTP: every message is a POST; streams are what is not over yet.

mod guard;
mod headers;
mod replay;
mod sessions;
mod post;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use trunkline::host::Host;

use self::guard::Guard;
use self::sessions::Sessions;
use crate::gateway::Gateway;
use crate::options::Options;
use crate::scope::Scope;

/// Everything a handler needs.
pub(crate) struct Door {
    gateway: Arc<Gateway>,
    sessions: Arc<Sessions>,
    guard: Guard,
}

/// All servers of a host as one MCP server: at `/mcp` with everything, at `/mcp/agents/{name}` with
/// what an agent sees, at `/mcp/bundles/{name}` with what is in a bundle.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn router(host: Arc<Host>, options: Options) -> Router {
    let limits = options.limits;
    let gateway = Gateway::new(host);
    let door = Arc::new(Door {
        sessions: Sessions::new(Arc::clone(&gateway), limits),
        gateway,
        guard: Guard::new(options),
    });
    Router::new()
        .route("/mcp", any(everything))
        .route("/mcp/agents/{name}", any(of_agent))
        .route("/mcp/bundles/{name}", any(of_bundle))
        .layer(DefaultBodyLimit::max(limits.message_bytes))
        .layer(middleware::from_fn_with_state(Arc::clone(&door), admit))
        .with_state(door)
}

/// Serves a router on a listener, until the returned future is dropped.
///
/// # Errors
///
/// When the listener fails.
pub async fn listen(router: Router, listener: TcpListener) -> io::Result<()> {
    // Small answers must not wait for more to come. One that cannot be set so is served all the same.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}

type Body = Result<Bytes, BytesRejection>;

async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    match door.guard.check_neighbours(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => (StatusCode::FORBIDDEN, problem).into_response(),
    }
}

async fn everything(
    State(door): State<Arc<Door>>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Response {
    enter(door, Scope::default(), (method, headers), body).await
}

async fn of_agent(
    State(door): State<Arc<Door>>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Response {
    enter(door, Scope::of_agent(name), (method, headers), body).await
}

async fn of_bundle(
    State(door): State<Arc<Door>>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Response {
    enter(door, Scope::of_bundle(name), (method, headers), body).await
}

/// Lets somebody in who may come in, and does what they ask for.
async fn enter(
    door: Arc<Door>,
    scope: Scope,
    (method, headers): (Method, HeaderMap),
    body: Body,
) -> Response {
    let identity = match door.guard.identify(&headers, &scope) {
        Ok(identity) => Arc::new(identity),
        Err(refusal) => return refusal.into_response(),
    };
    if let Err(unknown) = identity.scope.view(&door.gateway.host) {
        return (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response();
    }
    match method {
        Method::POST => post::receive(&door, &identity, &headers, body).await,
        Method::GET => door.sessions.open_stream(&identity, &headers),
        Method::DELETE => door.sessions.end(&identity, &headers),
        _ => (StatusCode::METHOD_NOT_ALLOWED, [("Allow", "POST, GET, DELETE")]).into_response(),
    }
}
