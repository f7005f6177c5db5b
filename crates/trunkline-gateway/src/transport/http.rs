//! Serves the gateway over Streamable HTTP: every message is a POST; slow responses become SSE
//! streams.

pub(crate) mod origin;
mod conversation;
mod cors;
mod access;
mod unread;
mod retained_events;
mod event_stream;
mod exchange;
mod responses;
mod sessions;
mod connection_timer;
mod body;
mod modern;
mod post;
mod accept_status;
mod accept;
mod service;

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::net::TcpListener;
use tracing::info;
use trunkline::config::CHAIN_HEADER;
use trunkline::host::Host;
use trunkline::principal::RequestPath;

use crate::access::budget::ByteBudget;
use crate::access::scope::{CallerIdentity, Scope};
use crate::handlers::gateway::Gateway;
use crate::options::GatewayOptions;
use crate::request::panics;
pub use crate::transport::http::accept_status::AcceptStatus;
use accept::ConnectionState;
use access::AccessControl;
use connection_timer::ConnectionTimer;
use post::MessageHead;
use service::ENDPOINT;
pub use service::HttpService;
use sessions::Sessions;

/// Lists the gateways that a request came through, and in a response those behind this one.
static CHAIN: HeaderName = HeaderName::from_static(CHAIN_HEADER);

/// Everything a handler needs.
pub(crate) struct AppState {
    gateway: Arc<Gateway>,
    sessions: Arc<Sessions>,
    guard: AccessControl,
    /// Limit of a message in bytes.
    message_bytes: usize,
    /// Budget for the bytes of request bodies.
    bodies: Arc<ByteBudget>,
}

/// Creates a router that serves all servers of a host as one MCP server: the whole catalog at
/// `/mcp`, the view of an agent at `/mcp/agents/{name}`, and a bundle at `/mcp/bundles/{name}`.
///
/// Servers that start from now on receive the capabilities that the gateway can pass on to clients,
/// unless the host was built with others. For servers that start eagerly, build the host with
/// [`client_capabilities`](crate::client_capabilities).
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn router(host: Host, options: GatewayOptions) -> Router {
    endpoint_routes(AppState::new(host, options))
}

impl AppState {
    fn new(host: Host, options: GatewayOptions) -> Arc<Self> {
        let limits = options.limits;
        let gateway = Gateway::new(host, &limits, options.observer.clone().map(|it| it.0));
        Arc::new(Self {
            sessions: Sessions::new(Arc::clone(&gateway), limits),
            gateway,
            guard: AccessControl::new(options),
            message_bytes: limits.message_bytes,
            bodies: ByteBudget::new(body::MAX_BODY_BYTES_OF_ALL, body::MAX_BODY_BYTES_OF_ONE),
        })
    }
}

fn endpoint_routes(state: Arc<AppState>) -> Router {
    Router::new()
        .route(ENDPOINT, any(handle))
        .route("/mcp/", any(handle))
        .route("/mcp/agents/{name}", any(of_agent))
        .route("/mcp/bundles/{name}", any(of_bundle))
        .with_state(state)
}

/// Serves a service or a router on a listener, until the returned future is dropped or the listener
/// fails.
///
/// ```no_run
/// # async fn example(host: trunkline::Host) -> std::io::Result<()> {
/// use tokio::net::TcpListener;
/// use trunkline_gateway::{GatewayOptions, HttpService, serve};
///
/// let listener = TcpListener::bind("127.0.0.1:7420").await?;
/// let service = HttpService::new(host.clone(), GatewayOptions::default());
/// serve(listener, service)
///     .with_graceful_shutdown(async move { host.shutdown_started().await })
///     .await
/// # }
/// ```
pub fn serve(listener: TcpListener, service: impl Into<HttpService>) -> Serve<'static> {
    let (shutdown, report) = (Box::pin(std::future::pending()), Box::new(|_| ()));
    Serve { listener, service: service.into(), shutdown, report }
}

/// A service that is served when this is awaited; see [`serve`].
#[must_use = "connections are accepted when it is awaited"]
pub struct Serve<'r> {
    listener: TcpListener,
    service: HttpService,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
    report: Box<dyn FnMut(AcceptStatus) + Send + Sync + 'r>,
}

impl<'r> Serve<'r> {
    /// Stops accepting connections when `signal` completes, such as [`Host::shutdown_started`], and
    /// returns once all responses are sent. Streams of legacy clients do not end by themselves, so
    /// add a timeout.
    pub fn with_graceful_shutdown(self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { shutdown: Box::pin(signal), ..self }
    }

    /// Reports when connections cannot be accepted any more, and when they can again: once each,
    /// however many attempts fail.
    pub fn on_accept_status<'s>(
        self,
        report: impl FnMut(AcceptStatus) + Send + Sync + 's,
    ) -> Serve<'s> {
        let Self { listener, service, shutdown, .. } = self;
        Serve { listener, service, shutdown, report: Box::new(report) }
    }
}

impl<'r> IntoFuture for Serve<'r> {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'r>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { listener, service, shutdown, report } = self;
        Box::pin(accept::receive(service, listener, shutdown, report))
    }
}

/// A response that is being made. Boxed, because the router moves it several times.
type EndpointFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

fn handle(State(state): State<Arc<AppState>>, request: Request) -> EndpointFuture {
    Box::pin(enter(state, Scope::default(), with_connection(request)))
}

fn of_agent(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
    request: Request,
) -> EndpointFuture {
    Box::pin(enter(state, Scope::of_agent(name), with_connection(request)))
}

fn of_bundle(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
    request: Request,
) -> EndpointFuture {
    Box::pin(enter(state, Scope::of_bundle(name), with_connection(request)))
}

/// A request with its connection; without one if another program serves the router. It is boxed,
/// because each of the futures around its handler has room for it.
type ReceivedRequest = (Option<ConnectionState>, Box<Request>);

fn with_connection(request: Request) -> ReceivedRequest {
    (request.extensions().get().cloned(), Box::new(request))
}

/// Handles a request, and logs the status of an HTTP error.
async fn enter(state: Arc<AppState>, scope: Scope, request: ReceivedRequest) -> Response {
    let response = check_and_answer(&state, &scope, request).await;
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        info!(status = status.as_u16(), "request rejected");
    }
    response
}

/// Checks `Host`, `Origin` and CORS, then handles the request.
async fn check_and_answer(
    state: &Arc<AppState>,
    scope: &Scope,
    (connection, mut request): ReceivedRequest,
) -> Response {
    let headers = std::mem::take(request.headers_mut());
    if let Err(problem) = state.guard.check_host_and_origin(&headers, request.uri()) {
        return (StatusCode::FORBIDDEN, problem).into_response();
    }
    let page = state.guard.page(&headers);
    if let (&Method::OPTIONS, Some(page)) = (request.method(), &page) {
        return page.preflight(&headers);
    }
    let in_conversation;
    let scope = match conversation::of_request(&headers, request.uri()) {
        Ok(None) => scope,
        Ok(conversation) => {
            in_conversation = Scope { conversation, ..scope.clone() };
            &in_conversation
        }
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let answering = answer(state, scope, headers, (connection, request));
    let response = panics::outcome_of(answering).await;
    let response = response.unwrap_or_else(|| {
        let text = "the gateway failed on this request because of a defect in it\n";
        (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
    });
    match page {
        Some(page) => page.add_headers(response),
        None => response,
    }
}

/// A request that has passed the checks of its headers.
struct AdmittedRequest<'s> {
    /// The endpoint.
    scope: &'s Scope,
    identity: Arc<CallerIdentity>,
    method: Method,
    headers: HeaderMap,
    body: Body,
    /// The timer of its connection.
    timer: ConnectionTimer,
}

/// Handles a request of another Trunkline: adds the gateways behind this one to the response, and
/// rejects a request that came through this gateway before (CON-16).
async fn answer_in_chain(state: &Arc<AppState>, admitted: AdmittedRequest<'_>) -> Response {
    let host = &state.gateway.host;
    let chain = admitted.headers.get(&CHAIN).and_then(|value| value.to_str().ok());
    let Some(chain) = chain else {
        return answer_method(state, admitted, RequestPath::default()).await;
    };
    let path = match host.chain().admit(chain) {
        Ok(path) => path,
        Err(error) => return (StatusCode::LOOP_DETECTED, format!("{error}\n")).into_response(),
    };
    let mut response = answer_method(state, admitted, path).await;
    // After the response: its list may come from gateways that were reached only now.
    if let Ok(chain) = host.chain_header().parse() {
        response.headers_mut().insert(&CHAIN, chain);
    }
    response
}

async fn answer(
    state: &Arc<AppState>,
    scope: &Scope,
    headers: HeaderMap,
    (connection, request): ReceivedRequest,
) -> Response {
    let identity = match state.guard.identify(&headers, scope) {
        Ok(identity) => identity,
        Err(refusal) => return refusal.into_response(),
    };
    if let Err(unknown) = identity.scope.check(&state.gateway.host) {
        return (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response();
    }
    let timer = match &connection {
        Some(connection) => match connection.authenticate(&identity.principal) {
            Ok(()) => connection.timer(),
            Err(refusal) => return refusal.into_response(),
        },
        None => ConnectionTimer::default(),
    };
    #[cfg(test)]
    assert!(headers.get("x-test-panic").is_none_or(|it| it != "GET"));
    let method = request.method().clone();
    let body = request.into_body();
    let admitted = AdmittedRequest { scope, identity, method, headers, body, timer };
    answer_in_chain(state, admitted).await
}

async fn answer_method(
    state: &Arc<AppState>,
    AdmittedRequest { scope, identity, method, headers, body, timer }: AdmittedRequest<'_>,
    path: RequestPath,
) -> Response {
    match method {
        Method::POST => {
            let received = body::receive(state, &identity.principal, (body, &timer)).await;
            let head = MessageHead { headers, path, timer };
            post::receive(state, &identity, head, received).await
        }
        Method::GET => match state.guard.identity_with_lease(&headers, scope) {
            Ok((identity, lease)) => state.sessions.open_stream(&identity, &headers, lease),
            Err(refusal) => refusal.into_response(),
        },
        Method::DELETE => state.sessions.end(&identity, &headers),
        _ => (StatusCode::METHOD_NOT_ALLOWED, [("Allow", "POST, GET, DELETE")]).into_response(),
    }
}
