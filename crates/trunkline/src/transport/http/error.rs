//! Maps errors of hyper, TLS and I/O, and unexpected HTTP responses, to messages with a hint.

use std::error::Error as StdError;
use std::io;
use std::iter::successors;

use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use rustls::{CertificateError, InvalidMessage};
use url::Url;

use super::address_guard::private_address;
use super::client::MAX_HEADERS;
use super::connector::{ConnectTimeout, PrivateAddress, UnknownHost};
use super::endpoint::HttpEndpoint;
use super::informational::MAX_PRELIMINARY;
use super::pool::{MAX_HEAD_BYTES, SendError};
use super::url::origin;
use crate::config::{is_hidden, is_like_credential};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;

/// Limit on quoted text of a server, in characters: enough for a sentence.
const EXCERPT_CHARACTERS: usize = 200;

/// The error for a request that could not be sent, or whose response could not be read.
pub(in crate::transport) fn unreachable(url: &Url, error: &(dyn StdError + 'static)) -> Error {
    let origin = origin(url);
    let is_connect = is_connect(error);
    if let Some(tls) = cause::<rustls::Error>(error).filter(|_| is_connect) {
        return untrusted(&origin, tls);
    }
    if cause::<UnknownHost>(error).is_some() {
        return no_such_host(url);
    }
    if cause::<PrivateAddress>(error).is_some() {
        return private_address(url);
    }
    if let Some(error) = cause::<hyper::Error>(error).filter(|error| error.is_parse()) {
        return unreadable(&origin, error);
    }
    if is_timeout(error) {
        // Without a connection, every other request fails as well.
        let (kind, what) = match is_connect {
            true => (ErrorKind::Unreachable, "takes no connection"),
            false => (ErrorKind::TimedOut, "did not answer"),
        };
        return Error::new(kind, format!("{origin} {what} in time")).with_hint(
            "check that the host can be reached from here, and whether it needs a proxy",
        );
    }
    if has_kind(error, io::ErrorKind::ConnectionRefused) {
        return Error::new(ErrorKind::Unreachable, format!("{origin} refuses connections"))
            .with_hint(format!("is the server running at {}?", host_and_port(url)));
    }
    if is_connect {
        return Error::new(ErrorKind::Unreachable, format!("{origin} cannot be reached"))
            .with_hint("check that the host can be reached from here");
    }
    Error::new(ErrorKind::Broken, format!("{origin} broke the connection"))
        .with_hint(MAY_HAVE_ENDED)
}

fn unreadable(origin: &str, error: &hyper::Error) -> Error {
    if !error.is_parse_too_large() {
        return Error::new(ErrorKind::ProtocolViolation, format!("{origin} does not speak HTTP"))
            .with_hint("check the port");
    }
    head_too_large(origin)
}

/// The response headers exceed their limit.
pub(in crate::transport) fn head_too_large(origin: &str) -> Error {
    let kibibytes = MAX_HEAD_BYTES / 1024;
    let message = format!(
        "{origin} answered with more than {MAX_HEADERS} headers or {kibibytes} KiB of them"
    );
    Error::new(ErrorKind::TooLarge, message)
        .with_hint("look for what adds them: the server, or a proxy on the way")
}

/// Hint for a connection that was established before.
const MAY_HAVE_ENDED: &str = "the server may have ended: its own log says more";

/// The response ended before it was complete.
pub(in crate::transport) fn broken_off(url: &Url) -> Error {
    let message = format!("{} ended the connection before it answered", origin(url));
    Error::new(ErrorKind::Broken, message).with_hint(MAY_HAVE_ENDED)
}

/// The limit on informational responses was reached without a final one.
pub(in crate::transport) fn too_many_informational(url: &Url) -> Error {
    let message = format!(
        "{} sent more than {MAX_PRELIMINARY} informational answers (1xx) and no answer",
        origin(url)
    );
    Error::new(ErrorKind::ProtocolViolation, message)
        .with_hint("its own log may say what it is waiting for")
}

/// A message exceeds its size limit.
pub(in crate::transport) fn too_large(url: &Url) -> Error {
    let limit = crate::transport::MAX_MESSAGE_BYTES / (1024 * 1024);
    let message = format!("{} sent a message of more than {limit} MiB", origin(url));
    Error::new(ErrorKind::TooLarge, message).with_hint("ask for less at once")
}

/// A redirect that is not followed.
pub(in crate::transport) fn redirected_away(from: &Url, to: &Url) -> Error {
    let target = origin(to);
    let message = format!("{} redirects to another server, {target}", origin(from));
    Error::new(ErrorKind::ProtocolViolation, message)
        .with_hint(format!("if {target} is meant, configure it as the address"))
}

/// A redirect of a request with a token, which is for one URL only.
pub(in crate::transport) fn redirects_credentials(from: &Url, to: &Url) -> Error {
    let message = format!("{} redirects requests, and a token goes to one address", origin(from));
    let path = to.path();
    let hint = match is_like_credential(path) {
        true => "configure the address that it redirects to".to_owned(),
        false => format!("configure the address that it redirects to, with the path `{path}`"),
    };
    Error::new(ErrorKind::ProtocolViolation, message).with_hint(hint)
}

/// A gateway that has this process among its servers, perhaps by way of others.
pub(in crate::transport) fn leads_back(url: &Url) -> Error {
    let message = format!(
        "the gateway at {} leads back to this process: each would list the other without end",
        origin(url)
    );
    Error::new(ErrorKind::HttpStatus(StatusCode::LOOP_DETECTED.as_u16()), message)
        .with_hint("remove one of the servers that make the ring, here or in that gateway")
}

/// Redirects without an end.
pub(in crate::transport) fn redirected_too_often(url: &Url) -> Error {
    let message = format!("{} redirects again and again", origin(url));
    Error::new(ErrorKind::ProtocolViolation, message).with_hint("check the path of the address")
}

/// An HTTP response that is not the response to a JSON-RPC request.
pub(in crate::transport) struct UnexpectedResponse<'a> {
    pub(in crate::transport) target: &'a HttpEndpoint,
    pub(in crate::transport) status: StatusCode,
    pub(in crate::transport) headers: &'a HeaderMap,
    pub(in crate::transport) body: &'a [u8],
    /// Whether the request carried a session ID.
    pub(in crate::transport) has_session: bool,
}

impl UnexpectedResponse<'_> {
    /// Whether the status takes precedence over a JSON-RPC error in the body. `names_request` is
    /// whether that error carries the ID of the request.
    pub(in crate::transport) fn is_decided_by_status(&self, names_request: bool) -> bool {
        match self.status.as_u16() {
            401 | 403 | 405 | 429 => true,
            404 => self.has_session,
            400 => self.is_session_unknown() && !names_request,
            _ => false,
        }
    }

    /// Whether the server does not know the session. The specification requires 404. Servers
    /// modelled on the examples of the SDKs respond 400 before they parse the message; after a
    /// restart, nothing else indicates that the session has ended.
    fn is_session_unknown(&self) -> bool {
        self.has_session
            && match self.status.as_u16() {
                404 => true,
                // Proxies respond 400 as well, and know nothing about sessions.
                400 if self.body.is_empty() => true,
                400 => Raw::from_text(&String::from_utf8_lossy(self.body))
                    .is_ok_and(|body| body.get("error").is_some_and(|error| error.is_object())),
                _ => false,
            }
    }

    /// The error for a refusal.
    pub(in crate::transport) fn refusal(&self) -> Error {
        let status = self.status.as_u16();
        let kind = match status {
            401 | 403 => ErrorKind::Unauthorized,
            _ if self.is_session_unknown() => ErrorKind::SessionExpired,
            _ => ErrorKind::HttpStatus(status),
        };
        let origin = origin(self.target.address.url());
        let mut message = match kind {
            ErrorKind::SessionExpired => format!("{origin} does not know the session any more"),
            _ => format!("{origin} answered {}", self.status),
        };
        for detail in [self.wait(), self.excerpt()].into_iter().flatten() {
            message = format!("{message}: {detail}");
        }
        let error = Error::new(kind, message);
        match self.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// The error for a success that is not an MCP response.
    pub(in crate::transport) fn not_mcp(&self) -> Error {
        let origin = origin(self.target.address.url());
        if self.body.is_empty() {
            return self.no_reply(&origin);
        }
        let mut message = format!("{origin} answered with something that is not MCP");
        if let Some(excerpt) = self.excerpt() {
            message = format!("{message}: {excerpt}");
        }
        let hint = match self.encoding() {
            Some(_) => "have the server, or the proxy on the way, send it as it is",
            None => "is the path of the address right?",
        };
        Error::new(ErrorKind::ProtocolViolation, message).with_hint(hint)
    }

    /// The error for a success without a body. In a session it may mean that the session has ended,
    /// behind a proxy that hides it.
    fn no_reply(&self, origin: &str) -> Error {
        let message = format!("{origin} answered {} with nothing in it", self.status);
        match self.has_session {
            true => Error::new(ErrorKind::Broken, message)
                .with_hint("its session may have ended; a new one is begun if that happens again"),
            false => Error::new(ErrorKind::ProtocolViolation, message)
                .with_hint("is the path of the address right?"),
        }
    }

    /// The content encoding of the body. None was requested, and none is supported.
    fn encoding(&self) -> Option<&str> {
        let encoding = self.text(&CONTENT_ENCODING).and_then(first_token)?;
        (!self.body.is_empty() && !encoding.eq_ignore_ascii_case("identity")).then_some(encoding)
    }

    fn hint(&self) -> Option<String> {
        let hint = match self.status.as_u16() {
            401 => return Some(self.credentials_hint()),
            403 => "check that the credentials in `headers` allow this",
            404 if !self.has_session => "is the path of the address right?",
            508 => "remove the server from the configuration of the gateway at this address",
            500..=599 => "the server is in trouble: its own log says more",
            405 => "this may be a server of the older SSE transport: try `\"type\": \"sse\"`",
            _ => return None,
        };
        Some(hint.to_owned())
    }

    fn credentials_hint(&self) -> String {
        let scheme = match self.text(&WWW_AUTHENTICATE).and_then(first_token) {
            Some(scheme) => format!(" (it asks for `{scheme}`)"),
            None => String::new(),
        };
        format!("the server wants credentials{scheme}: set them in `headers`, or check those there")
    }

    fn wait(&self) -> Option<String> {
        let limited = matches!(self.status.as_u16(), 429 | 503);
        let delay = self.text(&RETRY_AFTER).filter(|_| limited)?;
        let is_duration = delay.bytes().all(|byte| byte.is_ascii_digit());
        let when = printable(delay, 40);
        Some(if is_duration {
            format!("try again in {when} s")
        } else {
            format!("try again at {when}")
        })
    }

    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
    }

    /// Text of the body for the user. HTML is skipped.
    fn excerpt(&self) -> Option<String> {
        if let Some(encoding) = self.encoding() {
            return Some(format!("it is encoded as `{encoding}`, which was not asked for"));
        }
        let text = String::from_utf8_lossy(self.body);
        let said = error_message(self.body).unwrap_or_else(|| text.trim().to_owned());
        if said.is_empty() || said.starts_with('<') {
            return None;
        }
        Some(quoted(self.target, &said))
    }
}

/// Text from a server, safe to display: short, on one line, with the secrets that the server
/// received redacted.
pub(in crate::transport) fn quoted(target: &HttpEndpoint, text: &str) -> String {
    printable(&target.redacted(text), EXCERPT_CHARACTERS)
}

/// The message of a JSON-RPC error.
fn error_message(body: &[u8]) -> Option<String> {
    let body = Raw::from_text(str::from_utf8(body).ok()?).ok()?;
    let message = body.get("error")?.get("message")?;
    Some(message.as_str()?.into_owned())
}

/// Text on one line, without characters that a terminal interprets, cut at `longest` characters.
fn printable(text: &str, longest: usize) -> String {
    let visible = text.chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter });
    let visible: String = visible.filter(|letter| !is_hidden(*letter)).collect();
    let words: Vec<&str> = visible.split(' ').filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(longest).and_then(|(end, _)| line.get(..end)) {
        Some(head) => format!("{head}…"),
        None => line,
    }
}

/// The scheme of a challenge. The rest may contain anything, so it is not shown.
fn first_token(challenge: &str) -> Option<&str> {
    let token = challenge.split([' ', ',']).next()?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!token.is_empty() && token.len() <= 20 && token.bytes().all(is_scheme)).then_some(token)
}

/// Hint for an unknown certificate authority, unless the host supplies a better one.
pub(in crate::transport) const UNKNOWN_AUTHORITY: &str = "if its certificate comes from an authority of your own, \
                                            trust that one too, as an extra root certificate";

fn untrusted(origin: &str, error: &rustls::Error) -> Error {
    let unknown = UNKNOWN_AUTHORITY;
    let (what, hint) = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => {
                ("shows a certificate of an unknown authority", unknown)
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                ("shows a certificate that has expired", "check the clock, or tell its operator")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                ("shows a certificate that is not valid yet", "check the clock")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                ("shows the certificate of another host", "check the host of the address")
            }
            _ => ("shows a certificate that cannot be trusted", unknown),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            ("does not speak TLS", "is it an `http` address?")
        }
        _ => {
            ("could not agree on TLS", "check the port, and that the server speaks TLS 1.2 or 1.3")
        }
    };
    Error::new(ErrorKind::Tls, format!("{origin} {what}")).with_hint(hint)
}

fn no_such_host(url: &Url) -> Error {
    let host = url.host_str().unwrap_or_default();
    Error::new(ErrorKind::Unreachable, format!("the host `{host}` is not known"))
        .with_hint("check its spelling and the network")
}

fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Whether no connection could be established.
fn is_connect(error: &(dyn StdError + 'static)) -> bool {
    cause::<SendError>(error).is_some_and(SendError::is_connect)
}

fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    cause::<ConnectTimeout>(error).is_some()
        || cause::<hyper::Error>(error).is_some_and(hyper::Error::is_timeout)
        || has_kind(error, io::ErrorKind::TimedOut)
}

fn has_kind(error: &(dyn StdError + 'static), kind: io::ErrorKind) -> bool {
    let errors = causes(error).filter_map(|error| error.downcast_ref());
    errors.map(io::Error::kind).any(|it| it == kind)
}

fn cause<'e, T: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e T> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// An error and its sources. The error inside an [`io::Error`] is not its source, so it is visited
/// explicitly.
fn causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    successors(Some(error), |error| {
        let error: &'e (dyn StdError + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}
