//! Service of a listener: the MCP endpoint of a host, and a router for all other paths.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Request;
use tower_service::Service as _;
use trunkline::host::Host;

use super::accept::{ConnectionService, ConnectionState, ServiceFuture};
use super::{AppState, endpoint_routes, enter};
use crate::access::scope::Scope;
use crate::options::GatewayOptions;

/// The path of the endpoint for the whole catalog.
pub(super) const ENDPOINT: &str = "/mcp";

/// All servers of a host as one MCP server over HTTP, with other routes beside it. Also made of a
/// [`Router`] alone.
///
/// Most requests are for one path, which is served without the router: it would cost as much as
/// the access control.
#[derive(Clone)]
pub struct HttpService {
    endpoint: Option<Arc<AppState>>,
    routes: Arc<LazyRouter>,
}

/// A router that is built for the first request to it: while a gateway starts its servers, it would cost as much as
/// the start of one.
type LazyRouter = LazyLock<Router, Box<dyn FnOnce() -> Router + Send>>;

fn lazily(routes: impl FnOnce() -> Router + Send + 'static) -> Arc<LazyRouter> {
    Arc::new(LazyLock::new(Box::new(routes)))
}

impl HttpService {
    /// Serves the whole catalog of a host at `/mcp`, the view of an agent at `/mcp/agents/{name}`,
    /// and a bundle at `/mcp/bundles/{name}`; see [`router`](super::router).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(host: Host, options: GatewayOptions) -> Self {
        let state = AppState::new(host, options);
        let endpoint = Some(Arc::clone(&state));
        Self { endpoint, routes: lazily(|| endpoint_routes(state)) }
    }

    /// Adds routes for other paths. The function is called for the first request to a path other than `/mcp`. If it
    /// panics, or has a path that is served already, that request and all later ones to such paths panic.
    #[must_use]
    pub fn merge(self, routes: impl FnOnce() -> Router + Send + 'static) -> Self {
        let before = self.routes;
        let routes = lazily(move || LazyLock::force(&before).clone().merge(routes()));
        Self { routes, ..self }
    }

    fn route(&self, connection: &ConnectionState, mut request: Request) -> ServiceFuture {
        request.extensions_mut().insert(connection.clone());
        let mut routes = LazyLock::force(&self.routes).clone();
        Box::pin(routes.call(request))
    }
}

impl ConnectionService for HttpService {
    fn call(&self, connection: &ConnectionState, request: Request) -> ServiceFuture {
        match &self.endpoint {
            Some(state) if request.uri().path() == ENDPOINT => {
                let (state, connection) = (Arc::clone(state), Some(connection.clone()));
                let request = (connection, Box::new(request));
                Box::pin(async { Ok(enter(state, Scope::default(), request).await) })
            }
            _ => self.route(connection, request),
        }
    }
}

impl From<Router> for HttpService {
    fn from(routes: Router) -> Self {
        Self { endpoint: None, routes: lazily(|| routes) }
    }
}
