//! A browser without a user, for authorization servers that approve at once.

use axum::body::{Body, to_bytes};
use axum::http::header::LOCATION;
use axum::http::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// Size limit of pages, far above those of tests.
const MAX_LOGIN_PAGE_BYTES: usize = 1024 * 1024;

/// Opens an authorization URL, and returns the address that the server redirects to: the redirect
/// URI of the client with the authorization response. Does not follow it, so that nothing has to
/// listen there.
///
/// # Panics
///
/// When the server does not redirect.
pub async fn open(authorization_url: &str) -> String {
    let response = request(Method::GET, authorization_url, Body::empty()).await;
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(location) = location else {
        panic!("{authorization_url} answered with {} and does not redirect", response.status())
    };
    location.to_owned()
}

/// Opens an address, and returns the text of the page.
///
/// # Panics
///
/// When there is no response.
pub async fn visit(url: &str) -> String {
    let response = request(Method::GET, url, Body::empty()).await;
    let read = to_bytes(response.into_body(), MAX_LOGIN_PAGE_BYTES).await;
    String::from_utf8_lossy(&read.unwrap_or_else(|error| panic!("{url}: {error}"))).into_owned()
}

/// Sends a request over a connection of its own, without following redirects.
///
/// # Panics
///
/// When there is no response.
pub(crate) async fn request(method: Method, url: &str, body: Body) -> Response<Body> {
    let request = Request::builder().method(method).uri(url).body(body);
    let request = request.unwrap_or_else(|error| panic!("{url}: {error}"));
    let response = Client::builder(TokioExecutor::new()).build_http().request(request).await;
    response.unwrap_or_else(|error| panic!("{url}: {error}")).map(Body::new)
}
