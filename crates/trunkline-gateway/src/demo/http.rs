//! The demo servers over Streamable HTTP: every message is a POST to `/mcp`, with a JSON response.
//!
//! No state is kept between requests, so there are no sessions and no GET streams.

use std::io;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use trunkline::message::RpcError;
use trunkline::protocol::{Era, code};

use super::{DemoServer, LONGEST_MESSAGE, answer};
use crate::request::errors::{error_message, response, too_long};
use crate::request::incoming::{ClientProfile, IncomingRequest};
use crate::request::mcp_headers;
use crate::transport::http::origin;

pub(super) fn router(server: DemoServer) -> Router {
    Router::new()
        .route("/mcp", post(receive))
        .layer(DefaultBodyLimit::max(LONGEST_MESSAGE))
        .layer(middleware::from_fn(admit))
        .with_state(server)
}

pub(super) async fn listen(server: DemoServer, listener: TcpListener) -> io::Result<()> {
    // Small responses must not wait for more data. A socket that refuses the option is served
    // anyway.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router(server)).await
}

async fn admit(request: Request, next: Next) -> Response {
    match origin::check((request.headers(), request.uri()), &[], &[]) {
        Ok(()) => next.run(request).await,
        Err(problem) => (StatusCode::FORBIDDEN, problem).into_response(),
    }
}

async fn receive(
    State(server): State<DemoServer>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            let error = too_long(LONGEST_MESSAGE);
            return respond(StatusCode::PAYLOAD_TOO_LARGE, error_message(None, &error));
        }
        Err(rejection) => return rejection.into_response(),
    };
    match answer::read(&body) {
        Ok(Some(incoming)) => answer_request(server, &headers, &incoming),
        Ok(None) => StatusCode::ACCEPTED.into_response(),
        Err((id, error)) => respond(StatusCode::BAD_REQUEST, error_message(id.as_ref(), &error)),
    }
}

fn answer_request(server: DemoServer, headers: &HeaderMap, incoming: &IncomingRequest) -> Response {
    let era = match era(headers, incoming) {
        Ok(era) => era,
        Err(error) => return respond(StatusCode::BAD_REQUEST, response(&incoming.id, Err(error))),
    };
    let outcome = answer::dispatch(server, era, incoming);
    let status = outcome.as_ref().map_or_else(|error| status_of(era, error), |_| StatusCode::OK);
    respond(status, response(&incoming.id, outcome))
}

/// The era of a request, by its headers and its body.
fn era(headers: &HeaderMap, incoming: &IncomingRequest) -> Result<Era, RpcError> {
    if !mcp_headers::is_modern(headers, incoming)? {
        return Ok(Era::Legacy);
    }
    let client = ClientProfile::of_request(&incoming.meta)?;
    mcp_headers::check(headers, &client.version, incoming)?;
    Ok(Era::Modern)
}

/// The status of an error response. Legacy clients always get 200, because a 404 would mean that
/// their session has ended.
fn status_of(era: Era, error: &RpcError) -> StatusCode {
    match (era, error.code()) {
        (Era::Legacy, _) => StatusCode::OK,
        (Era::Modern, code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (Era::Modern, _) => StatusCode::BAD_REQUEST,
    }
}

fn respond(status: StatusCode, body: Bytes) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
