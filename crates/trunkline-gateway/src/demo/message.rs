//! JSON-RPC envelopes: a text becomes a request, and an outcome becomes a text.

use axum::body::Bytes;
use serde_json::{Map, Value, json};
use trunkline::message::{self, Id, Malformed, Raw};

/// What a client may send.
pub(super) enum Message {
    Request(Request),
    /// A notification, or a response to a request we never sent: nothing to answer.
    Silent,
}

pub(super) struct Request {
    /// As it was written, so that the answer carries it to the letter.
    pub(super) id: Id,
    pub(super) method: Box<str>,
    pub(super) params: Map<String, Value>,
}

/// Why a request, or something that is none, is not answered with a result.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    message: String,
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

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    fn to_value(&self) -> Value {
        let mut error = json!({ "code": self.code as i32, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }

    pub(super) fn too_long() -> Self {
        let limit = super::LONGEST_MESSAGE;
        Self::new(Code::InvalidRequest, format!("a message may be {limit} bytes long, not more"))
    }
}

/// A message that was refused, with its id if that much could be read.
pub(super) struct Refusal {
    pub(super) id: Option<Id>,
    pub(super) failure: Failure,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { id: None, failure }
    }
}

/// Reads one message from the bytes of a line or of a body.
pub(super) fn parse(bytes: &[u8]) -> Result<Message, Refusal> {
    let raw = Raw::read(&Bytes::copy_from_slice(bytes))
        .map_err(|error| Failure::new(Code::ParseError, error.to_string()))?;
    if raw.text().starts_with('[') {
        return Err(invalid("batches are not supported: send one message at a time").into());
    }
    if !raw.is_object() {
        return Err(invalid("a message is a JSON object").into());
    }
    match message::Message::read(raw.bytes()) {
        Ok(read) => understood(&raw, read),
        Err(Malformed::NotJson) => Err(Failure::new(Code::ParseError, "not JSON").into()),
        Err(Malformed::NotRpc(id)) => Err(Refusal { id, failure: invalid(problem(&raw)) }),
    }
}

fn understood(raw: &Raw, read: message::Message) -> Result<Message, Refusal> {
    let request = match read {
        message::Message::Request(request) => Some(request),
        message::Message::Notification(_) | message::Message::Response(_) => None,
    };
    let id = || request.as_ref().map(|request| request.id.clone());
    if raw.get("jsonrpc").as_ref().and_then(Raw::as_str).as_deref() != Some("2.0") {
        return Err(Refusal { id: id(), failure: invalid("`jsonrpc` must be \"2.0\"") });
    }
    let Some(request) = request else { return Ok(Message::Silent) };
    match object(request.params.as_ref()) {
        Ok(params) => {
            Ok(Message::Request(Request { id: request.id, method: request.method, params }))
        }
        Err(failure) => Err(Refusal { id: Some(request.id), failure }),
    }
}

/// What keeps an object from being a message.
fn problem(raw: &Raw) -> &'static str {
    let [id, method] = raw.get_all(["id", "method"]);
    let members = raw.members();
    let is_double = |key: &str| members.iter().filter(|(name, _)| name == key).count() > 1;
    if ["id", "method", "params", "result", "error"].into_iter().any(is_double) {
        return "a duplicate member";
    }
    let is_string = |raw: &Raw| raw.as_str().is_some();
    match (method, id) {
        (None, _) => "`method` is missing",
        (Some(method), _) if !is_string(&method) => "`method` must be a string",
        (Some(_), Some(_)) => "`id` must be a string or an integer",
        (Some(_), None) => "it is neither a request nor a response",
    }
}

fn invalid(problem: &str) -> Failure {
    Failure::new(Code::InvalidRequest, format!("not a JSON-RPC message: {problem}"))
}

fn object(params: Option<&Raw>) -> Result<Map<String, Value>, Failure> {
    match params.map(Raw::to_value) {
        None => Ok(Map::new()),
        Some(Value::Object(params)) => Ok(params),
        Some(_) => Err(Failure::new(Code::InvalidParams, "`params` must be an object")),
    }
}

/// The text that answers the request with this id; without one, the id is `null`.
pub(super) fn reply(id: Option<&Id>, outcome: Result<Value, Failure>) -> String {
    let id = id.map_or("null", |id| id.raw().text());
    let (key, value) = match outcome {
        Ok(result) => ("result", result),
        Err(failure) => ("error", failure.to_value()),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{value}}}"#)
}
