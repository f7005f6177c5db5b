//! JSON-RPC envelopes: a text becomes a request, and an outcome becomes a text.

use std::str;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a client may send.
pub(super) enum Message<'a> {
    Request(Request<'a>),
    /// A notification, or a response to a request we never sent: nothing to answer.
    Silent,
}

pub(super) struct Request<'a> {
    /// As it was written, so that the answer carries it to the letter.
    pub(super) id: &'a RawValue,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// Why a request, or something that is none, is not answered with a result.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    pub(super) code: Code,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    ParseError = -32_700,
    InvalidRequest = -32_600,
    MethodNotFound = -32_601,
    InvalidParams = -32_602,
    HeaderMismatch = -32_020,
    UnsupportedProtocolVersion = -32_022,
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(*self as i32)
    }
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(super) fn too_long() -> Self {
        let limit = super::LONGEST_MESSAGE;
        Self::new(Code::InvalidRequest, format!("a message may be {limit} bytes long, not more"))
    }
}

/// A message that was refused, with its id if that much could be read.
pub(super) struct Refusal<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) failure: Failure,
}

impl From<Failure> for Refusal<'_> {
    fn from(failure: Failure) -> Self {
        Self { id: None, failure }
    }
}

/// The fields as they are written; what they must be is decided one by one, to name the wrong one.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from absence: a request with the id `null` is not a notification.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message from the bytes of a line or of a body.
pub(super) fn parse(bytes: &[u8]) -> Result<Message<'_>, Refusal<'_>> {
    let parse_error = |problem: String| Failure::new(Code::ParseError, problem);
    let text = str::from_utf8(bytes).map_err(|_| parse_error("not UTF-8".to_owned()))?;
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| parse_error(format!("not JSON: {error}")))?;
    if raw.get().starts_with('[') {
        return Err(invalid("batches are not supported: send one message at a time").into());
    }
    if !raw.get().starts_with('{') {
        return Err(invalid("a message is a JSON object").into());
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(raw.get()).map_err(|error| invalid(&error.to_string()))?;
    let id = envelope.id.filter(|id| is_id(id));
    read(&envelope, id).map_err(|failure| Refusal { id, failure })
}

fn read<'a>(envelope: &Envelope<'a>, id: Option<&'a RawValue>) -> Result<Message<'a>, Failure> {
    if envelope.jsonrpc.and_then(string).as_deref() != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = envelope.method else {
        let is_response = envelope.result.is_some() || envelope.error.is_some();
        return if is_response { Ok(Message::Silent) } else { Err(invalid("`method` is missing")) };
    };
    let method = string(method).ok_or_else(|| invalid("`method` must be a string"))?;
    match (envelope.id, id) {
        (None, _) => Ok(Message::Silent),
        (Some(_), None) => Err(invalid("`id` must be a string or an integer")),
        (Some(_), Some(id)) => {
            Ok(Message::Request(Request { id, method, params: object(envelope.params)? }))
        }
    }
}

fn invalid(problem: &str) -> Failure {
    Failure::new(Code::InvalidRequest, format!("not a JSON-RPC message: {problem}"))
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn object(raw: Option<&RawValue>) -> Result<Map<String, Value>, Failure> {
    let Some(raw) = raw else { return Ok(Map::new()) };
    serde_json::from_str(raw.get()).map_err(|error| {
        Failure::new(Code::InvalidParams, format!("`params` must be an object: {error}"))
    })
}

fn is_id(raw: &RawValue) -> bool {
    let text = raw.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    text.starts_with('"') || digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

/// The text that answers the request with this id; without one, the id is `null`.
pub(super) fn reply(id: Option<&RawValue>, outcome: Result<Value, Failure>) -> String {
    let (result, error) = match outcome {
        Ok(result) => (Some(result), None),
        Err(failure) => (None, Some(failure)),
    };
    serde_json::to_string(&Reply { jsonrpc: "2.0", id, result, error })
        .expect("invariant: what was JSON before is JSON again")
}
