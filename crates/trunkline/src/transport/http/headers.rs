//! MCP headers of HTTP requests: protocol version, session, and the method, name and parameters of
//! the message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::transport::MessageKind;

pub(in crate::transport) const PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static("mcp-protocol-version");
pub(in crate::transport) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(in crate::transport) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER_PREFIX: &str = "mcp-param-";

/// Prefix and suffix of a base64-encoded header value.
const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// Sets the content type of a POST, and accepts both a JSON response and an event stream.
pub(in crate::transport) fn add_post_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
}

/// Accepts only an event stream.
pub(in crate::transport) fn add_stream_headers(headers: &mut HeaderMap) {
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
}

/// Repeats the method, name and parameters of the message in headers, as 2026-07-28 requires.
pub(in crate::transport) fn add_message_headers(headers: &mut HeaderMap, purpose: &MessageKind) {
    match purpose {
        MessageKind::Request { method, name, parameters, .. } => {
            headers.insert(METHOD, encoded(method));
            if let Some(name) = name {
                headers.insert(NAME, encoded(name));
            }
            for (name, value) in parameters {
                add_parameter(headers, name, value);
            }
        }
        MessageKind::Notification { method } => {
            headers.insert(METHOD, encoded(method));
        }
        MessageKind::Response => {}
    }
}

/// Omits a parameter whose name is not a valid header name: the server that requires it reports
/// that it is missing.
fn add_parameter(headers: &mut HeaderMap, name: &str, value: &str) {
    let name = format!("{PARAMETER_PREFIX}{name}");
    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
        headers.insert(name, encoded(value));
    }
}

/// A header value, encoded in base64 where the plain text would not survive.
fn encoded(text: &str) -> HeaderValue {
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(SENTINEL.0);
    let plain = HeaderValue::from_str(text).ok();
    plain.filter(|_| is_visible && !is_padded && !looks_encoded).unwrap_or_else(|| {
        let (before, after) = SENTINEL;
        let value = format!("{before}{}{after}", STANDARD.encode(text));
        HeaderValue::from_str(&value).expect("invariant: base64 can stand in a header")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_can_stand_in_a_header_does() {
        for text in ["", "a", "get weather", "file:///a%20b", "=?utf-8?x?=", "~!\"#"] {
            assert_eq!(encoded(text).as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn a_value_that_would_not_come_back_the_same_is_encoded() {
        let cases = [
            ("Wörter", "V8O2cnRlcg=="),
            (" a", "IGE="),
            ("a ", "YSA="),
            ("a\tb", "YQli"),
            ("a\nb", "YQpi"),
            ("\u{7f}", "fw=="),
            ("=?base64?YQ==?=", "PT9iYXNlNjQ/WVE9PT89"),
            ("=?base64?", "PT9iYXNlNjQ/"),
        ];
        for (text, base64) in cases {
            assert_eq!(encoded(text).to_str().unwrap(), format!("=?base64?{base64}?="), "{text}");
        }
    }

    #[test]
    fn request_headers_carry_method_name_and_parameters() {
        let mut headers = HeaderMap::new();
        add_message_headers(
            &mut headers,
            &MessageKind::Request {
                id: 1,
                method: "tools/call".into(),
                name: Some("grüße".into()),
                parameters: vec![("Region".into(), "eu".into()), ("not a name".into(), "x".into())],
            },
        );
        let texts: Vec<_> =
            headers.iter().map(|(k, v)| (k.as_str(), v.to_str().unwrap())).collect();
        let expected = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDvMOfZQ==?="),
            ("mcp-param-region", "eu"),
        ];
        assert_eq!(texts, expected);
    }
}
