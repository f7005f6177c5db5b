//! Requests to URLs that a server names, such as the metadata of its authorization server: guarded
//! against private addresses, limited in time and size.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Method, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::address_guard::AddressGuard;
use super::client::HttpClient;
use super::connector::OUR_NAME;
use super::request::{HttpRequest, HttpResponse};
use super::url::{ServerUrl, origin};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::principal::RequestPath;

/// Time for one request, from the connection to the last byte of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Limit on the bytes of a response: metadata documents have a few kilobytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Limit on redirects of a metadata document.
const MAX_METADATA_REDIRECTS: usize = 3;

/// Sends requests to URLs that a server names.
#[derive(Clone, Debug)]
pub(crate) struct GuardedClient {
    client: HttpClient,
    guard: AddressGuard,
}

/// A response, read completely. It may contain tokens, so it has no `Debug`.
pub(crate) struct GuardedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A POST with credentials.
pub(crate) struct GuardedPost<'a> {
    pub(crate) url: &'a Url,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(HeaderName, Secret)>,
    pub(crate) body: String,
}

impl GuardedClient {
    pub(crate) fn new(client: &HttpClient, guard: AddressGuard) -> Self {
        Self { client: client.guarded(guard.clone()), guard }
    }

    /// Checks a URL that is not requested here, but opened in a browser.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Error> {
        self.guard.check(url)
    }

    /// Reads a document that needs no credentials. Redirects are followed, and checked like the first URL.
    pub(crate) async fn get(&self, url: &Url) -> Result<GuardedResponse, Error> {
        let mut url = url.clone();
        for _ in 0..=MAX_METADATA_REDIRECTS {
            let response = self.request(Method::GET, &url, HeaderMap::new(), Bytes::new()).await?;
            match response.redirect(&url) {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        let message = format!("{} redirects again and again", origin(&url));
        Err(Error::new(ErrorKind::ProtocolViolation, message))
    }

    /// Posts a form or a document that may contain credentials. A redirect is refused.
    pub(crate) async fn post(&self, post: GuardedPost<'_>) -> Result<GuardedResponse, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(post.content_type));
        for (name, value) in &post.headers {
            let mut header = HeaderValue::from_str(value.expose()).map_err(|_| {
                let message = format!("the value of the header `{name}` cannot be sent");
                Error::new(ErrorKind::UnusableValue, message)
            })?;
            header.set_sensitive(true);
            headers.insert(name, header);
        }
        let response = self.request(Method::POST, post.url, headers, post.body.into()).await?;
        match response.status.is_redirection() {
            true => {
                let message = format!("{} redirects a request with credentials", origin(post.url));
                Err(Error::new(ErrorKind::ProtocolViolation, message)
                    .with_hint("its operator has to name the final address in its metadata"))
            }
            false => Ok(response),
        }
    }

    async fn request(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<GuardedResponse, Error> {
        self.guard.check(url)?;
        let Some(address) = ServerUrl::new(url.clone()) else {
            return Err(Error::new(ErrorKind::ProtocolViolation, "the address cannot be used"));
        };
        headers.insert(HOST, address.host().clone());
        headers.insert(USER_AGENT, OUR_NAME);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let (headers, path) = (Arc::new(headers), RequestPath::default());
        let request = HttpRequest { method, address, headers, about: None, path, body };
        let response = async { self.client.send_once(&request).await?.read().await };
        timeout(REQUEST_TIMEOUT, response).await.unwrap_or_else(|_| {
            let seconds = REQUEST_TIMEOUT.as_secs();
            let message = format!("{} did not answer within {seconds} s", origin(url));
            Err(Error::new(ErrorKind::TimedOut, message).with_hint("try again later"))
        })
    }
}

impl GuardedResponse {
    fn redirect(&self, from: &Url) -> Option<Url> {
        if !matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = self.headers.get(LOCATION)?.to_str().ok()?;
        from.join(location).ok()
    }
}

impl HttpResponse {
    /// Reads the whole body within the limit.
    async fn read(mut self) -> Result<GuardedResponse, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                let kibibytes = MAX_RESPONSE_BYTES / 1024;
                let message = format!("{} sent more than {kibibytes} KiB", origin(self.url()));
                return Err(Error::new(ErrorKind::TooLarge, message)
                    .with_hint("documents for logins are a few kilobytes: tell its operator"));
            }
            body.extend_from_slice(&chunk);
        }
        let (status, headers) = (self.status(), self.headers().clone());
        Ok(GuardedResponse { status, headers, body: body.into() })
    }
}
