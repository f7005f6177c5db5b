//! The servers over Streamable HTTP: every message is a POST to `/mcp`, answered with JSON.
//!
//! Nothing is kept between requests, so there are no sessions and no streams to open with GET.

mod neighbours;
mod headers;

use std::io;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use trunkline::message::Id;

use super::message::{self, Code, Failure, Message, Request};
use super::protocol::Era;
use super::{DemoServer, LONGEST_MESSAGE, answer};

pub(super) fn router(server: DemoServer) -> Router {
    Router::new()
        .route("/mcp", post(receive))
        .layer(DefaultBodyLimit::max(LONGEST_MESSAGE))
        .layer(middleware::from_fn(neighbours::admit))
        .with_state(server)
}

pub(super) async fn listen(server: DemoServer, listener: TcpListener) -> io::Result<()> {
    // Small answers must not wait for more to come. One that cannot be set so is served all the same.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router(server)).await
}

async fn receive(
    State(server): State<DemoServer>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return respond(StatusCode::PAYLOAD_TOO_LARGE, None, Err(Failure::too_long()));
        }
        Err(rejection) => return rejection.into_response(),
    };
    match message::parse(&body) {
        Ok(Message::Request(request)) => answer_request(server, &headers, &request),
        Ok(Message::Silent) => StatusCode::ACCEPTED.into_response(),
        Err(refusal) => respond(StatusCode::BAD_REQUEST, refusal.id.as_ref(), Err(refusal.failure)),
    }
}

fn answer_request(server: DemoServer, headers: &HeaderMap, request: &Request) -> Response {
    let era = match headers::admit(headers, request) {
        Ok(era) => era,
        Err(failure) => return respond(StatusCode::BAD_REQUEST, Some(&request.id), Err(failure)),
    };
    let outcome = answer::dispatch(server, era, request);
    let status = match &outcome {
        Ok(_) => StatusCode::OK,
        Err(failure) => status_of(era, failure.code),
    };
    respond(status, Some(&request.id), outcome)
}

/// The status of an answer that is an error. To a legacy client a 404 would mean that its session
/// has ended, so it gets every answer with a 200.
fn status_of(era: Era, code: Code) -> StatusCode {
    match (era, code) {
        (Era::Legacy, _) => StatusCode::OK,
        (Era::Modern, Code::MethodNotFound) => StatusCode::NOT_FOUND,
        (Era::Modern, _) => StatusCode::BAD_REQUEST,
    }
}

fn respond(status: StatusCode, id: Option<&Id>, outcome: Result<Value, Failure>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], message::reply(id, outcome)).into_response()
}
