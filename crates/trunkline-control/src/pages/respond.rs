//! Responses of the page: whole pages, fragments for htmx, and errors.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::Markup;
use trunkline_gateway::new_token;

use crate::api::problem::ApiError;
use crate::api::trust;
use crate::control::Control;
use crate::templates::{self, Nonce, PageFrame, Section};

/// Headers of every response, beside the content security policy.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// HTML with a content security policy of its own.
pub(super) fn html(status: StatusCode, body: impl FnOnce(Nonce<'_>) -> Markup) -> Response {
    let nonce = new_token();
    let nonce = Nonce(&nonce);
    let mut response = Response::new(Body::from(body(nonce).into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = templates::content_security_policy(nonce).parse() {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// A part of a page.
pub(super) fn fragment(body: impl FnOnce(Nonce<'_>) -> Markup) -> Response {
    html(StatusCode::OK, body)
}

/// A whole page.
pub(super) async fn page(
    control: &Control,
    title: &str,
    section: Section,
    body: impl FnOnce(Nonce<'_>) -> Markup,
) -> Response {
    let pending_decisions = pending(control).await;
    html(StatusCode::OK, |nonce| {
        let frame = PageFrame { nonce, title, section: Some(section), pending_decisions };
        templates::layout(&frame, &body(nonce))
    })
}

/// Files that wait for a decision.
pub(super) async fn pending(control: &Control) -> usize {
    let requests = trust::requests(control).await;
    requests.iter().filter(|request| request.state == "pending").count()
}

/// Whether htmx sent a request, and wants a part of a page.
pub(super) fn is_htmx(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request")
}

/// An error of a handler. [`render_error`] makes it a page, since only the request says which form.
#[derive(Clone)]
pub(super) struct PageError(ApiError);

impl From<ApiError> for PageError {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}

/// The response of a handler.
pub(super) type PageResult = Result<Response, PageError>;

/// Renders the error of a handler, or of an extractor in front of it.
pub(super) fn render_error(is_htmx: bool, mut response: Response) -> Response {
    if let Some(PageError(found)) = response.extensions_mut().remove() {
        return error(is_htmx, &found);
    }
    let is_plain = response
        .headers()
        .get(CONTENT_TYPE)
        .is_none_or(|it| it.as_bytes().starts_with(b"text/plain"));
    let status = response.status();
    match is_plain && (status.is_client_error() || status.is_server_error()) {
        true => error(is_htmx, &ApiError::new(status, "the request cannot be read")),
        false => response,
    }
}

/// An error, as a page or as a notice on the page that is open.
pub(super) fn error(is_htmx: bool, error: &ApiError) -> Response {
    let problem = error.problem();
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
    html(status, |_| match is_htmx {
        true => templates::error_notice(&problem.title, &problem.detail),
        false => templates::error(problem.status, &problem.title, &problem.detail),
    })
}

/// After a change: the part that changed for htmx, and the page for a browser without scripts.
pub(super) fn after_change(
    headers: &HeaderMap,
    address: &str,
    body: impl FnOnce(Nonce<'_>) -> Markup,
) -> Response {
    match is_htmx(headers) {
        true => fragment(body),
        false => axum::response::Redirect::to(address).into_response(),
    }
}
