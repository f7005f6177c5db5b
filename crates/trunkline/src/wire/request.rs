//! One HTTP request, followed through redirects that stay with the same server, and its answer.

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response};
use url::Url;

use super::client::HttpClient;
use super::events::{Event, EventDecoder};
use super::target::is_same_origin;
use super::{MAX_MESSAGE_BYTES, failure};
use crate::error::{Error, ErrorKind};

/// Redirects that are followed at most: one adds a slash, one changes a path; more is a loop.
const MAX_REDIRECTS: usize = 5;

/// What is sent.
#[derive(Clone)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl HttpClient {
    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(&self, request: &HttpRequest) -> Result<Response, Error> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let sent = self.send_to(&url, request).await;
            let response = sent.map_err(|error| self.explain(&url, &error))?;
            match redirect(&url, &response)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(failure::redirected_too_often(&request.url))
    }

    fn explain(&self, url: &Url, error: &reqwest::Error) -> Error {
        let explained = failure::unreachable(url, error);
        let is_on_the_way =
            matches!(explained.kind(), ErrorKind::Unreachable | ErrorKind::TimedOut);
        if self.has_proxies && is_on_the_way && error.is_connect() {
            return explained.with_hint("check the proxy that is configured, and the server");
        }
        if let Some(hint) = &self.root_certificates_hint
            && explained.hint() == Some(failure::UNKNOWN_AUTHORITY)
        {
            return explained.with_hint(&**hint);
        }
        explained
    }

    async fn send_to(&self, url: &Url, request: &HttpRequest) -> Result<Response, reqwest::Error> {
        let builder = self.inner.request(request.method.clone(), url.clone());
        let builder = builder.headers(request.headers.clone());
        // A GET or DELETE with a body, even an empty one, is something servers may refuse.
        let builder =
            if request.body.is_empty() { builder } else { builder.body(request.body.clone()) };
        builder.send().await
    }
}

/// Where an answer points to, if it is a redirect. The method stays: a message is always a POST,
/// and what made browsers turn it into a GET has no meaning here.
fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, Error> {
    if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(next) = location.and_then(|location| url.join(location).ok()) else {
        return Ok(None);
    };
    if !is_same_origin(url, &next) {
        return Err(failure::redirected_away(url, &next));
    }
    Ok(Some(next))
}

/// Whether an answer is a stream of events.
pub(super) fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let essence = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    response.status().is_success()
        && essence.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream"))
}

/// The whole body of an answer, within the bound.
pub(super) async fn collect(response: &mut Response) -> Result<Bytes, Error> {
    let mut body = Bytes::new();
    let length = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE_BYTES {
        return Err(failure::too_large(response.url()));
    }
    while let Some(chunk) = chunk(response).await? {
        if body.len() + chunk.len() > MAX_MESSAGE_BYTES {
            return Err(failure::too_large(response.url()));
        }
        body = joined(body, chunk, length);
    }
    Ok(body)
}

/// Most bodies are one chunk, which is not copied. Others are copied once, into as much room as
/// they are going to need, if that was said.
fn joined(before: Bytes, chunk: Bytes, length: usize) -> Bytes {
    if before.is_empty() {
        return chunk;
    }
    let mut both = before.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(length.max(shared.len() + chunk.len()));
        copy.extend_from_slice(&shared);
        copy
    });
    both.extend_from_slice(&chunk);
    both.freeze()
}

/// The next event of a stream; nothing when the stream is at its end. Cancel-safe: what came is in
/// the decoder.
pub(super) async fn next_event(
    response: &mut Response,
    decoder: &mut EventDecoder,
) -> Result<Option<Event>, Error> {
    loop {
        let event = decoder.next().map_err(|_| failure::too_large(response.url()))?;
        if event.is_some() {
            return Ok(event);
        }
        match chunk(response).await? {
            Some(chunk) => decoder.push(&chunk),
            None => return Ok(None),
        }
    }
}

async fn chunk(response: &mut Response) -> Result<Option<Bytes>, Error> {
    let chunk = response.chunk().await;
    chunk.map_err(|error| failure::unreachable(response.url(), &error))
}
