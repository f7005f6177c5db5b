//! JSON-RPC errors and responses that several handlers use.

use bytes::Bytes;
use serde_json::json;
use trunkline::message::{Id, Message, Raw, Response, RpcError};
use trunkline::protocol::{Era, ProtocolVersion, code};

/// Characters of an unknown protocol version that an error quotes; known versions have ten.
const MAX_QUOTED_VERSION_CHARS: usize = 80;

/// Refuses a protocol version other than the modern one.
pub(crate) fn require_modern(version: &str) -> Result<(), RpcError> {
    let advice = match Era::of_version(version) {
        Some(Era::Modern) => return Ok(()),
        Some(Era::Legacy) => "open with `initialize` to speak it",
        None => "unknown",
    };
    let version: String = version.chars().take(MAX_QUOTED_VERSION_CHARS).collect();
    let message = format!("unsupported protocol version {version:?}: {advice}");
    let data = json!({ "supported": supported_versions(), "requested": version });
    Err(RpcError::new(code::UNSUPPORTED_PROTOCOL_VERSION, &message)
        .with_data(&Raw::from_value(&data)))
}

/// Every protocol version that the gateway supports, newest first.
pub(crate) fn supported_versions() -> Vec<&'static str> {
    ProtocolVersion::all().map(ProtocolVersion::as_str).collect()
}

/// The error for invalid parameters.
pub(crate) fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// The error for an unknown method.
pub(crate) fn unknown_method(method: &str) -> RpcError {
    let method: String = method.chars().filter(|it| !it.is_control()).take(80).collect();
    RpcError::new(code::METHOD_NOT_FOUND, &format!("there is no method `{method}` here"))
}

/// The error for a request that needs a capability the client did not declare.
pub(crate) fn missing_capability(capabilities: &serde_json::Value, what: &str) -> RpcError {
    let message = format!("{what}, and the client does not declare that it can");
    let data = json!({ "requiredCapabilities": capabilities });
    RpcError::new(code::MISSING_CLIENT_CAPABILITY, &message).with_data(&Raw::from_value(&data))
}

/// Serializes the response to a request.
pub(crate) fn response(id: &Id, outcome: Result<Raw, RpcError>) -> Bytes {
    Message::Response(Response { id: id.clone(), outcome }).write()
}

/// Serializes an error response, with the request ID if it is known.
pub(crate) fn error_message(id: Option<&Id>, error: &RpcError) -> Bytes {
    let id = id.map_or("null", |id| id.raw().text());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.raw()).into()
}
