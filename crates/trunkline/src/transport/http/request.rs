//! One HTTP request, with redirects within the same origin, and its response.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION,
};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode};
use url::Url;

use super::client::HttpClient;
use super::informational::InformationalLimit;
use super::pool::{LeasedConnection, MAX_HEAD_BYTES, SendError};
use super::sse_decoder::{SseDecoder, SseEvent};
use super::url::{ServerUrl, origin};
use super::{error, headers};
use crate::auth::{AfterRefusal, AuthHeaders, AuthRefusal, AuthRequest, RequestAuth};
use crate::config::CHAIN_HEADER;
use crate::error::{Error, ErrorKind};
use crate::principal::RequestPath;
use crate::transport::truncation::{MessageTruncator, TruncatedMessage};
use crate::transport::{MAX_MESSAGE_BYTES, MessageKind};

/// Limit on redirects: one adds a slash, one changes a path; more is a loop.
const MAX_REDIRECTS: usize = 5;

/// Limit on how often one request is sent: with a token that has been revoked, with a nonce that is
/// required, and with that nonce and another token.
const MAX_AUTH_ATTEMPTS: u32 = 4;

/// An HTTP request.
pub(in crate::transport) struct HttpRequest {
    pub(in crate::transport) method: Method,
    pub(in crate::transport) address: ServerUrl,
    /// Headers shared by many requests.
    pub(in crate::transport) headers: Arc<HeaderMap>,
    /// The message whose method, name and parameters are repeated in headers of this request only.
    pub(in crate::transport) about: Option<MessageKind>,
    /// The processes that the message came through.
    pub(in crate::transport) path: RequestPath,
    pub(in crate::transport) body: Bytes,
}

impl HttpRequest {
    /// A request without a body.
    pub(in crate::transport) fn without_body(
        method: Method,
        address: ServerUrl,
        headers: HeaderMap,
    ) -> Self {
        let headers = Arc::new(headers);
        let path = RequestPath::default();
        Self { method, address, headers, about: None, path, body: Bytes::new() }
    }

    /// All headers for a URL, which may differ from the original one after a redirect.
    fn headers_for(&self, address: &ServerUrl, auth: Option<&AuthHeaders>) -> HeaderMap {
        let mut headers = HeaderMap::clone(&self.headers);
        if let Some(auth) = auth {
            auth.apply(&mut headers);
        }
        if let Some(purpose) = &self.about {
            headers::add_message_headers(&mut headers, purpose);
        }
        if let Some(credentials) = address.credentials() {
            headers.entry(AUTHORIZATION).or_insert_with(|| credentials.clone());
        }
        headers
    }
}

/// A response: its headers, and a body that may not have arrived yet.
pub(in crate::transport) struct HttpResponse {
    head: Parts,
    body: Incoming,
    address: ServerUrl,
    /// After `body`, because it is dropped last.
    connection: LeasedConnection,
}

impl HttpResponse {
    pub(in crate::transport) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(in crate::transport) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The URL of the response, after redirects.
    pub(in crate::transport) fn address(&self) -> &ServerUrl {
        &self.address
    }

    pub(in crate::transport) fn url(&self) -> &Url {
        self.address.url()
    }

    /// The next chunk of the body; `None` at its end. Cancel safe.
    pub(in crate::transport) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        // A body with a `Content-Length` ends before the connection reports it.
        while !self.body.is_end_stream() {
            let Some(frame) = self.body.frame().await else { break };
            let frame = frame.map_err(|error| error::unreachable(self.url(), &error))?;
            // Other frames are trailers, which are ignored.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        self.connection.on_read();
        Ok(None)
    }
}

impl HttpClient {
    /// Sends a request and waits for the response headers. A request that is refused for its
    /// credentials is sent again if there are others.
    pub(in crate::transport) async fn send(
        &self,
        request: &HttpRequest,
    ) -> Result<HttpResponse, Error> {
        match self.auth() {
            None => self.follow(request, None).await,
            // Boxed: few requests need it, and all would carry its size.
            Some(auth) => Box::pin(self.send_authorized(request, auth)).await,
        }
    }

    async fn send_authorized(
        &self,
        request: &HttpRequest,
        auth: &dyn RequestAuth,
    ) -> Result<HttpResponse, Error> {
        let about = AuthRequest { method: &request.method, url: request.address.url() };
        let mut attempts = 1;
        loop {
            let sent = auth.headers(about).await?;
            let mut response = self.follow(request, Some(&sent)).await?;
            let status = response.status().as_u16();
            if !matches!(status, 401 | 403) {
                auth.on_accepted(&sent, response.headers());
                return Ok(response);
            }
            let refusal = AuthRefusal { status, headers: response.headers(), sent: &sent };
            let after = auth.on_refused(refusal).await?;
            if after == AfterRefusal::Accept || attempts == MAX_AUTH_ATTEMPTS {
                return Ok(response);
            }
            attempts += 1;
            // Its connection can be reused once the body was read.
            let _ = collect(&mut response).await;
        }
    }

    async fn follow(
        &self,
        request: &HttpRequest,
        auth: Option<&AuthHeaders>,
    ) -> Result<HttpResponse, Error> {
        let mut address = request.address.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_to(&address, request, auth).await?;
            match redirect(&address, &response.head)? {
                Some(next) if auth.is_some_and(|auth| !auth.is_empty()) => {
                    return Err(error::redirects_credentials(address.url(), next.url()));
                }
                Some(next) => address = next,
                None => return Ok(response),
            }
        }
        Err(error::redirected_too_often(request.address.url()))
    }

    /// Sends a request without credentials of the server, and follows no redirect.
    pub(super) async fn send_once(&self, request: &HttpRequest) -> Result<HttpResponse, Error> {
        self.send_to(&request.address, request, None).await
    }

    fn explain(&self, address: &ServerUrl, error: &SendError) -> Error {
        let explained = error::unreachable(address.url(), error);
        let is_on_the_way =
            matches!(explained.kind(), ErrorKind::Unreachable | ErrorKind::TimedOut);
        if let Some(proxy) = self.detours().proxy_for(address.uri())
            && is_on_the_way
            && error.is_connect()
        {
            // Without the credentials of the proxy.
            let host = proxy.uri().host().unwrap_or_default();
            let port = proxy.uri().port().map(|port| format!(":{port}")).unwrap_or_default();
            return explained.with_hint(format!(
                "it is reached through the proxy `{host}{port}`: check the proxy, and the server"
            ));
        }
        if let Some(hint) = self.root_certificates_hint()
            && explained.hint() == Some(error::UNKNOWN_AUTHORITY)
        {
            return explained.with_hint(hint);
        }
        explained
    }

    async fn send_to(
        &self,
        address: &ServerUrl,
        request: &HttpRequest,
        auth: Option<&AuthHeaders>,
    ) -> Result<HttpResponse, Error> {
        let mut sent = Request::new(Full::new(request.body.clone()));
        *sent.method_mut() = request.method.clone();
        *sent.headers_mut() = request.headers_for(address, auth);
        if let Some(chain) = self.chain(&request.path) {
            sent.headers_mut().insert(CHAIN_HEADER, chain);
        }
        if let Some(credentials) = self.detours().credentials(address.uri()) {
            sent.headers_mut().entry(PROXY_AUTHORIZATION).or_insert(credentials);
        }
        let limit = InformationalLimit::to(&mut sent);
        let received = limit.apply(self.pool().send(address, sent)).await;
        let received = received.ok_or_else(|| error::too_many_informational(address.url()))?;
        let (response, connection) = received.map_err(|error| self.explain(address, &error))?;
        // The buffer of the connection accepts nearly twice as much.
        if head_bytes(response.headers()) > MAX_HEAD_BYTES {
            return Err(error::head_too_large(&origin(address.url())));
        }
        let (head, body) = response.into_parts();
        Ok(HttpResponse { head, body, address: address.clone(), connection })
    }
}

/// Bytes of headers as they are sent: each with a colon, a space and a line break.
fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// Target of a redirect response. The method is preserved: a message is always a POST, and the
/// reason for browsers to switch to GET does not apply.
fn redirect(address: &ServerUrl, head: &Parts) -> Result<Option<ServerUrl>, Error> {
    if !matches!(head.status.as_u16(), 301 | 302 | 307 | 308) {
        return Ok(None);
    }
    let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(next) = location.and_then(|location| address.join(location)) else {
        return Ok(None);
    };
    if !address.is_same_origin(&next) {
        return Err(error::redirected_away(address.url(), next.url()));
    }
    Ok(Some(next))
}

/// Whether a response is an event stream.
pub(in crate::transport) fn is_event_stream(response: &HttpResponse) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let essence = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    response.status().is_success()
        && essence.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream"))
}

/// The whole body of a response, within the size limit. Most bodies are one chunk, which is not
/// copied; others are copied once, into a buffer of the announced size.
pub(in crate::transport) async fn collect(response: &mut HttpResponse) -> Result<Bytes, Error> {
    let length = usize::try_from(response.body.size_hint().lower()).unwrap_or(usize::MAX);
    within_bound(response, length)?;
    let Some(first) = response.chunk().await? else { return Ok(Bytes::new()) };
    let Some(mut next) = response.chunk().await? else { return Ok(first) };
    let mut body = BytesMut::with_capacity(length.max(first.len() + next.len()));
    body.extend_from_slice(&first);
    loop {
        within_bound(response, body.len() + next.len())?;
        body.extend_from_slice(&next);
        next = match response.chunk().await? {
            Some(chunk) => chunk,
            None => return Ok(body.freeze()),
        };
    }
}

/// The body of the response to a request. A JSON body that is too long is truncated.
pub(in crate::transport) async fn collect_answer(
    response: &mut HttpResponse,
) -> Result<TruncatedMessage, Error> {
    let length = usize::try_from(response.body.size_hint().lower()).unwrap_or(usize::MAX);
    if !is_json(response) || (length > 0 && length <= MAX_MESSAGE_BYTES) {
        return collect(response).await.map(TruncatedMessage::whole);
    }
    let Some(first) = response.chunk().await? else {
        return Ok(TruncatedMessage::whole(Bytes::new()));
    };
    let Some(second) = response.chunk().await? else { return Ok(TruncatedMessage::whole(first)) };
    let mut body = BytesMut::from(first);
    body.extend_from_slice(&second);
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_MESSAGE_BYTES {
            body.extend_from_slice(&chunk);
            return shortened(response, &body.split().freeze()).await;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(TruncatedMessage::whole(body.freeze()))
}

/// Truncates a body that began with `begin`.
async fn shortened(response: &mut HttpResponse, begin: &[u8]) -> Result<TruncatedMessage, Error> {
    let mut truncator = MessageTruncator::new(MAX_MESSAGE_BYTES);
    truncator.push(begin);
    while let Some(chunk) = response.chunk().await? {
        truncator.push(&chunk);
        if truncator.is_broken() {
            break;
        }
    }
    truncator.finish().ok_or_else(|| error::too_large(response.url()))
}

/// Whether the content type of a response is JSON.
fn is_json(response: &HttpResponse) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let essence = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    response.status().is_success()
        && essence.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

fn within_bound(response: &HttpResponse, length: usize) -> Result<(), Error> {
    if length > MAX_MESSAGE_BYTES {
        return Err(error::too_large(response.url()));
    }
    Ok(())
}

/// The next event of a stream; `None` at its end. Cancel safe: received bytes are in the decoder.
pub(in crate::transport) async fn next_event(
    response: &mut HttpResponse,
    decoder: &mut SseDecoder,
) -> Result<Option<SseEvent>, Error> {
    loop {
        let event = decoder.next().map_err(|_| error::too_large(response.url()))?;
        if event.is_some() {
            return Ok(event);
        }
        match response.chunk().await? {
            Some(chunk) => decoder.push(&chunk),
            None if decoder.is_shortening() => return Err(error::too_large(response.url())),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use hyper::header::HOST;
    use tokio::time::timeout;

    use super::*;
    use crate::transport::http::endpoint::HttpEndpoint;
    use crate::transport::http::informational::MAX_PRELIMINARY;
    use crate::transport::tests::scripted_server::{
        PATIENCE, Reply, ScriptedServer, Seen, client, round_trips,
    };

    fn get(url: &str, headers: HeaderMap) -> HttpRequest {
        let address = ServerUrl::new(Url::parse(url).unwrap()).unwrap();
        HttpRequest::without_body(Method::GET, address, headers)
    }

    async fn body(client: &HttpClient, request: &HttpRequest) -> Result<Bytes, Error> {
        let answer = async { collect(&mut client.send(request).await?).await };
        timeout(PATIENCE, answer).await.expect("an answer")
    }

    fn ports(server: &ScriptedServer) -> Vec<u16> {
        server.seen().iter().map(|seen| seen.port).collect()
    }

    #[tokio::test]
    async fn a_body_is_whole_in_however_many_parts_it_comes() {
        let long = "x".repeat(1_000_000);
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                       3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0\r\nx-trailer: y\r\n\r\n";
        let replies = vec![
            Reply::new(200, &[], ""),
            Reply::new(200, &[], "{}"),
            Reply::new(200, &[], &long),
            Reply::raw(chunked),
            Reply::raw("HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        ];
        let server = ScriptedServer::in_turn(replies).await;
        let (client, request) = (client(), get(&server.origin, HeaderMap::new()));
        for expected in ["", "{}", &long, "abcdef", "until the end"] {
            assert!(body(&client, &request).await.unwrap() == expected);
        }
    }

    #[tokio::test]
    async fn credentials_in_an_address_are_sent_unless_others_are_configured() {
        let server = ScriptedServer::start(|_| Reply::new(200, &[], "")).await;
        let url = server.origin.replace("http://", "http://me:p%40ss@");
        let configured = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("x"))]);
        let client = client();
        body(&client, &get(&format!("{url}/a#b"), HeaderMap::new())).await.unwrap();
        body(&client, &get(&url, configured)).await.unwrap();
        let seen = server.seen();
        assert_eq!(seen[0].path, "/a");
        let sent: Vec<_> = seen.iter().map(|seen| seen.header("authorization").unwrap()).collect();
        // `me:p@ss`
        assert_eq!(sent, ["Basic bWU6cEBzcw==", "x"]);
    }

    /// The response of Starlette where a slash is missing.
    #[tokio::test]
    async fn credentials_in_an_address_are_sent_after_a_redirect_to_the_same_server() {
        let server = ScriptedServer::start(|seen| {
            let here = format!("http://{}/mcp/", seen.header("host").unwrap());
            match &*seen.path {
                "/mcp" => Reply::new(307, &[("location", &*here)], ""),
                _ => Reply::new(200, &[], "{}"),
            }
        })
        .await;
        let url = server.origin.replace("http://", "http://me:p%40ss@");
        let host = HeaderValue::from_str(server.origin.strip_prefix("http://").unwrap()).unwrap();
        let request = get(&format!("{url}/mcp"), HeaderMap::from_iter([(HOST, host)]));
        body(&client(), &request).await.unwrap();
        let seen = server.seen();
        assert_eq!(seen[1].path, "/mcp/");
        assert_eq!(seen[1].header("authorization"), seen[0].header("authorization"));
    }

    #[tokio::test]
    async fn a_connection_is_used_again() {
        let server = ScriptedServer::start(|_| Reply::new(200, &[], "{}")).await;
        let (client, request) = (client(), get(&server.origin, HeaderMap::new()));
        for _ in 0..5 {
            body(&client, &request).await.unwrap();
        }
        let ports = ports(&server);
        assert_eq!(ports, [ports[0]; 5]);
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_meanwhile_is_replaced() {
        let server = ScriptedServer::start(|_| Reply::new(200, &[], "{}").then_close()).await;
        let (client, request) = (client(), get(&server.origin, HeaderMap::new()));
        for _ in 0..5 {
            body(&client, &request).await.unwrap();
            round_trips().await;
        }
        let mut ports = ports(&server);
        ports.dedup();
        assert_eq!(ports.len(), 5);
    }

    /// A request that may have been executed is not sent again.
    #[tokio::test]
    async fn a_connection_that_breaks_under_a_request_is_not_replaced() {
        let close_at_second = |seen: &Seen| match seen.path.as_str() {
            "/first" => Reply::new(200, &[], "{}"),
            _ => Reply::raw(""),
        };
        let server = ScriptedServer::start(close_at_second).await;
        let client = client();
        let ask = |path: &str| get(&format!("{}{path}", server.origin), HeaderMap::new());
        body(&client, &ask("/first")).await.unwrap();
        let error = body(&client, &ask("/second")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Broken);
        assert_eq!(server.seen().len(), 2);
    }

    /// Some informational responses are legitimate: they keep a connection alive while a server
    /// works.
    #[tokio::test]
    async fn answers_before_the_answer_are_passed_over() {
        let processing = "HTTP/1.1 102 Processing\r\n\r\n".repeat(MAX_PRELIMINARY);
        let reply = format!("{processing}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{{}}");
        let server = ScriptedServer::in_turn(vec![Reply::raw(reply)]).await;
        let request = get(&server.origin, HeaderMap::new());
        assert_eq!(body(&client(), &request).await.unwrap(), "{}");
    }

    #[tokio::test]
    async fn endless_informational_responses_are_abandoned() {
        let mut flooding = ScriptedServer::start(|_| Reply::flood()).await;
        let other = ScriptedServer::start(|_| Reply::new(200, &[], "{}")).await;
        let client = client();
        let (flooded, fine) =
            (get(&flooding.origin, HeaderMap::new()), get(&other.origin, HeaderMap::new()));
        let answers = async {
            for _ in 0..50 {
                body(&client, &fine).await.unwrap();
            }
        };
        let floods = join_all((0..4).map(|_| body(&client, &flooded)));
        let (floods, ()) = tokio::join!(floods, answers);
        for error in floods.into_iter().map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::ProtocolViolation);
            assert!(error.to_string().ends_with("informational answers (1xx) and no answer"));
        }
        for _ in 0..4 {
            flooding.client_left().await;
        }
    }

    #[tokio::test]
    async fn shared_and_own_headers_are_joined() {
        let server = ScriptedServer::start(|_| Reply::new(200, &[], "")).await;
        let target: HttpEndpoint = server.target();
        let mut request =
            HttpRequest::without_body(Method::GET, target.address.clone(), target.headers());
        request.about = Some(MessageKind::Notification { method: "ping".into() });
        body(&client(), &request).await.unwrap();
        let seen = server.seen().remove(0);
        assert_eq!(seen.header("mcp-method"), Some("ping"));
        assert_eq!(seen.header("authorization"), Some("Bearer hunter2"));
        assert_eq!(seen.header("host"), server.origin.strip_prefix("http://"));
        assert_eq!(seen.header("content-length"), None);
    }
}
