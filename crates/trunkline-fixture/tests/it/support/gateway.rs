//! A gateway with the fixture server behind it, for the duration of a test.

use std::env;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions};
use trunkline_gateway::{client_capabilities, router, serve};

use crate::support::http_fixture::{Listening, PROGRAM};

/// The transport to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upstream {
    Stdio,
    Http,
}

/// Whether the process of the server is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    ByAll,
    ByNobody,
}

/// A gateway that listens, and ends with the test.
pub(crate) struct Gateway {
    pub(crate) url: String,
    host: Host,
    serving: AbortHandle,
    _server: Option<Listening>,
}

impl Gateway {
    /// A gateway to a server of these eras.
    pub(crate) async fn to(upstream: Upstream, generation: &str, shared: Shared) -> Self {
        Self::to_server(upstream, &["--generation", generation], shared).await
    }

    /// A gateway to a server with these options.
    pub(crate) async fn to_server(upstream: Upstream, options: &[&str], shared: Shared) -> Self {
        let (server, mut entry) = match upstream {
            Upstream::Stdio => {
                let arguments = [&["stdio"], options].concat();
                (None, json!({ "command": PROGRAM, "args": arguments }))
            }
            Upstream::Http => {
                let server = Listening::with(options);
                let entry = json!({ "url": server.url });
                (Some(server), entry)
            }
        };
        // The suite uses the upstream names of tools.
        entry["prefix"] = "".into();
        entry["access"] = "read-write".into();
        if shared == Shared::ByNobody {
            entry["share"] = "per-client".into();
        }
        Self::over(&entry, server, |router| router).await
    }

    /// A gateway that loses the content of results.
    pub(crate) async fn broken() -> Self {
        let entry = json!({
            "command": PROGRAM,
            "args": ["stdio"],
            "prefix": "",
            "access": "read-write",
        });
        Self::over(&entry, None, |router| router.layer(from_fn(spoil))).await
    }

    async fn over(
        entry: &Value,
        server: Option<Listening>,
        change: impl FnOnce(Router) -> Router,
    ) -> Self {
        let text = json!({ "mcpServers": { "fixture": entry } }).to_string();
        let loaded = config::parse("test", text);
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        let child = ChildOptions::from_environment(env::vars_os());
        let options =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default())
                .with_capabilities(client_capabilities());
        let agents = loaded.config.agents().named.clone();
        let host = Host::start(loaded.config, agents, HostOptions::new(options));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = change(router(host.clone(), trunkline_gateway::GatewayOptions::default()));
        let serving = tokio::spawn(serve(listener, router).into_future()).abort_handle();
        let url = format!("http://localhost:{port}/mcp");
        Self { url, host, serving, _server: server }
    }

    pub(crate) async fn end(self) {
        self.serving.abort();
        self.host.shutdown().await;
    }
}

/// Removes the content from every JSON response.
async fn spoil(request: Request, next: Next) -> Response {
    let (mut head, body) = next.run(request).await.into_parts();
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != Some("application/json") {
        return Response::from_parts(head, body);
    }
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
    if let Some(result) = answer["result"].as_object_mut() {
        result.remove("content");
        result.remove("resultType");
        result.remove("messages");
    }
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(answer.to_string()))
}
