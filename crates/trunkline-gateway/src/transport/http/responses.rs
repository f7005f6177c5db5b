//! Responses as HTTP bodies and as events, counted until they are read.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use trunkline::message::{Id, RpcError};

use super::event_stream::EventStream;
use super::unread::counted_parts;
use crate::access::budget::UnreadMessages;
use crate::request::errors::{error_message, too_much_unread};
use crate::request::response::{RpcResult, response, response_in_parts};

/// A response as an HTTP body. A long one is not copied.
pub(super) fn answered(
    unread: &UnreadMessages,
    id: &Id,
    answer: RpcResult,
    status: StatusCode,
) -> Response {
    let [first, inside, last] = match counted_parts(unread, response_in_parts(id, answer)) {
        Ok(parts) => parts,
        Err(error) => return refuse(StatusCode::OK, Some(id), &error),
    };
    if inside.is_empty() {
        return json(status, first.into());
    }
    let length = first.len() + inside.len() + last.len();
    let parts = stream::iter([first, inside, last].map(Ok::<_, std::convert::Infallible>));
    let mut response = json(status, Body::from_stream(parts));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

pub(super) fn refuse(status: StatusCode, id: Option<&Id>, error: &RpcError) -> Response {
    json(status, error_message(id, error).into())
}

/// Adds a response to its stream, or the error that the budget is exhausted.
pub(super) fn put_answer(stream: &EventStream, id: &Id, answer: RpcResult) {
    let message = response(id, answer);
    let length = message.len();
    if stream.push_answer(message).is_err() {
        // Errors are short, and short responses are always added.
        let _ = stream.push_answer(response(id, Err(too_much_unread(length))));
    }
}

/// The response to a request, counted until it is written; or the error in its place.
pub(super) fn counted_response(unread: &UnreadMessages, id: &Id, answer: RpcResult) -> Bytes {
    let [message] = counted_parts(unread, [response(id, answer)])
        .unwrap_or_else(|error| [response(id, Err(error))]);
    message
}
