//! CORS headers for the configured origins: browsers check them before a request, and before a page
//! may read the response.
//!
//! Fifty lines in place of `tower-http`: the list of origins is the one that requests are checked
//! against, so that the two cannot differ.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// An allowed origin.
pub(super) struct CorsOrigin {
    origin: HeaderValue,
}

impl CorsOrigin {
    /// The origin of a request, if it is one of these.
    pub(super) fn of(headers: &HeaderMap, origins: &[String]) -> Option<Self> {
        let origin = headers.get(ORIGIN)?;
        let is_known = |known: &String| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
        origins.iter().any(is_known).then(|| Self { origin: origin.clone() })
    }

    /// The response to a preflight request: allows all methods of the endpoint, and any header.
    pub(super) fn preflight(&self, headers: &HeaderMap) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let answers = response.headers_mut();
        let methods = HeaderValue::from_static("POST, GET, DELETE");
        answers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        if let Some(incoming) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            answers.insert(ACCESS_CONTROL_ALLOW_HEADERS, incoming.clone());
        }
        answers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        self.add_headers(response)
    }

    /// Adds the headers with which a browser lets the page read the response.
    pub(super) fn add_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.origin.clone());
        let exposed = HeaderValue::from_static("mcp-session-id, www-authenticate, retry-after");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.append(VARY, HeaderValue::from_static("origin"));
        response
    }
}
