//! Lets only the owner in, and sets the headers of all responses.

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::ApiError;
use crate::access::Refusal;
use crate::control::Control;

/// Headers of every response: nothing is cached, guessed or framed.
const HEADERS: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(super) async fn require_owner(
    State(control): State<Control>,
    request: Request,
    next: Next,
) -> Response {
    let checked = control.access().check(request.method(), request.headers(), request.uri());
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => refused(refusal),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::ForeignHost(reason) => {
            ApiError::new(StatusCode::FORBIDDEN, reason.trim_end()).into_response()
        }
        Refusal::CrossSite => {
            let detail = "a page of another origin may not change anything here";
            ApiError::new(StatusCode::FORBIDDEN, detail).into_response()
        }
        Refusal::NoLogin => {
            let detail = "open the page with a link of `trunkline page`, or give the token that \
                          `trunkline page --token` prints as `Authorization: Bearer …`";
            let error = ApiError::new(StatusCode::UNAUTHORIZED, detail);
            ([(WWW_AUTHENTICATE, "Bearer")], error).into_response()
        }
    }
}
