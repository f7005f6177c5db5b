//! Serves Streamable HTTP at `/mcp`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::eras::ServedEras;
use crate::profile::Profile;
use crate::server::Fixture;
use crate::world::World;

/// The body limit of `rmcp`.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Serves until stdin closes or SIGTERM arrives. The first line of its output is the URL, as in
/// `http://127.0.0.1:4321/mcp`.
pub(crate) async fn serve(
    listen: SocketAddr,
    generation: ServedEras,
    profile: Profile,
) -> Result<()> {
    let listener = TcpListener::bind(listen).await;
    let listener = listener.with_context(|| format!("cannot listen at {listen}"))?;
    // Installed before the URL is printed: its reader may send SIGTERM at once.
    let mut terminated = signal(SignalKind::terminate())?;
    announce(listener.local_addr()?);
    tokio::select! {
        served = axum::serve(listener, router(generation, profile)) => served?,
        () = input_ends() => {}
        _ = terminated.recv() => {}
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the parent process waits for this line")]
fn announce(address: SocketAddr) {
    println!("http://{address}/mcp");
}

async fn input_ends() {
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 256];
    while input.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}

fn router(generation: ServedEras, profile: Profile) -> Router {
    let world = Arc::new(World::new(profile));
    let sessions = world.sessions.clone();
    let is_modern = generation == ServedEras::Modern;
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_legacy_session_mode(!is_modern)
        .with_stateless_protocol_metadata_required(is_modern);
    let make = move || Ok(Fixture::new(world.clone(), generation));
    let service = StreamableHttpService::new(make, sessions, config);
    Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn_with_state(generation, refuse_other_generations))
}

/// Responds to messages of an unsupported era before `rmcp` receives them.
async fn refuse_other_generations(
    State(generation): State<ServedEras>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    if generation == ServedEras::Legacy && names_modern_version(&request) {
        return unsupported_version();
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MOST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message = serde_json::from_slice(&bytes).ok();
    if let Some(refusal) = message.and_then(|message| generation.refusal(&message)) {
        return bad_request(&json!(refusal));
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

fn names_modern_version(request: &Request) -> bool {
    let version = request.headers().get("mcp-protocol-version");
    version.is_some_and(|version| version == ProtocolVersion::V_2026_07_28.as_str())
}

/// The error response of legacy servers, as the most common implementation sends it.
fn unsupported_version() -> Response {
    let message = "Bad Request: Unsupported protocol version: 2026-07-28";
    let error = json!({ "code": -32000, "message": message });
    bad_request(&json!({ "jsonrpc": "2.0", "error": error, "id": null }))
}

fn bad_request(body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, headers, body.to_string()).into_response()
}
