//! Opens sessions by login links, and lets only these see the page.

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use maud::Markup;

use super::form::FormFields;
use super::respond::{self, PageResult, html};
use crate::access::Refusal;
use crate::api::problem::ApiError;
use crate::control::Control;
use crate::templates;

/// Files have their digest in the address.
const FOREVER: &str = "public, max-age=31536000, immutable";

pub(super) async fn require_session(
    State(control): State<Control>,
    request: Request,
    next: Next,
) -> Response {
    let checked = control.access().check(request.method(), request.headers(), request.uri());
    let is_htmx = respond::is_htmx(request.headers());
    match checked {
        Ok(()) => respond::render_error(is_htmx, next.run(request).await),
        Err(refusal) => refused(is_htmx, refusal),
    }
}

pub(super) async fn require_host(
    State(control): State<Control>,
    request: Request,
    next: Next,
) -> Response {
    let is_htmx = respond::is_htmx(request.headers());
    match control.access().check_host(request.headers(), request.uri()) {
        Ok(()) => respond::render_error(is_htmx, next.run(request).await),
        Err(refusal) => refused(is_htmx, refusal),
    }
}

fn refused(is_htmx: bool, refusal: Refusal) -> Response {
    let detail = match refusal {
        Refusal::NoLogin => {
            let mut response = html(StatusCode::UNAUTHORIZED, |_| templates::login_required());
            // An open page shows this instead of a notice: nothing on it works any more.
            response.headers_mut().insert("hx-refresh", HeaderValue::from_static("true"));
            return response;
        }
        Refusal::ForeignHost(reason) => reason.trim_end(),
        Refusal::CrossSite => "a page of another origin may not change anything here",
    };
    respond::error(is_htmx, &ApiError::new(StatusCode::FORBIDDEN, detail))
}

/// Opens a session, and leaves the address with the secret at once.
pub(super) async fn open(
    State(control): State<Control>,
    method: Method,
    RawQuery(query): RawQuery,
) -> Response {
    // A look at the link must not use it up.
    if method != Method::GET {
        return html(StatusCode::NO_CONTENT, |_| Markup::default());
    }
    let fields = FormFields::parse(query.as_deref().unwrap_or_default());
    let cookie = control.access().open_session(fields.get("t"));
    let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) else {
        return html(StatusCode::UNAUTHORIZED, |_| templates::login_required());
    };
    let mut response = html(StatusCode::SEE_OTHER, |_| Markup::default());
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie);
    headers.insert(LOCATION, HeaderValue::from_static("/servers"));
    response
}

pub(super) async fn asset(Path(name): Path<String>) -> PageResult {
    let asset = templates::asset(&name).ok_or_else(|| ApiError::not_found("file", &name))?;
    let mut response = Response::new(Body::from(asset.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FOREVER));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    Ok(response)
}
