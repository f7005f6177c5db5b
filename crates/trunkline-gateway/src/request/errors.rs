//! The JSON-RPC errors of the gateway itself, each with its code. `handlers/error_codes.rs` maps the
//! failures of relayed requests, which depend on method and era.

use std::fmt::Display;

use bytes::Bytes;
use serde_json::json;
use trunkline::message::{Id, MAX_DEPTH, Message, Raw, Response, RpcError};
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

/// The error for a task that the client does not have.
pub(crate) fn unknown_task() -> RpcError {
    invalid("there is no such task")
}

/// The error for text that is not JSON.
pub(crate) fn not_json(problem: &str) -> RpcError {
    RpcError::new(code::PARSE_ERROR, problem)
}

/// The error for JSON that is not a JSON-RPC message.
pub(crate) fn not_rpc(problem: &str) -> RpcError {
    invalid_request(&format!("not a JSON-RPC message: {problem}"))
}

/// The error for a message with too many levels.
pub(crate) fn too_deep() -> RpcError {
    invalid_request(&format!("a message may be nested {MAX_DEPTH} levels deep, not more"))
}

/// The error for a message longer than the limit.
pub(crate) fn too_long(limit: usize) -> RpcError {
    invalid_request(&format!("the message exceeds the limit of {limit} bytes"))
}

/// The error for headers that contradict the body.
pub(crate) fn header_mismatch(message: &str) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

/// The error for a request with the ID of one in flight.
pub(crate) fn duplicate_id() -> RpcError {
    invalid_request("a request with this ID is still in progress")
}

/// The error for a request of neither era.
pub(crate) fn no_session() -> RpcError {
    invalid_request("open with `initialize`, or say in `params._meta` which revision this is")
}

/// The error for a request whose token was revoked after it was authenticated.
pub(crate) fn unknown_token() -> RpcError {
    invalid_request("the token is not known any more")
}

/// The error for a request above the limit of requests in flight.
pub(crate) fn too_many_requests(limit: usize) -> RpcError {
    internal(&format!("{limit} requests are still in progress; try again later"))
}

/// The error for a call that needs input when too many calls are parked.
pub(crate) fn too_many_parked_calls() -> RpcError {
    let data = Raw::from_value(&json!({ "retry": true }));
    internal("too many calls wait for answers of their clients; try again later").with_data(&data)
}

/// The error for a parked call that ended without a result.
pub(crate) fn call_lost() -> RpcError {
    internal("the call was lost")
}

/// The error in place of a response that exceeds the budget of unread bytes.
pub(crate) fn too_much_unread(length: usize) -> RpcError {
    internal(&format!(
        "the request was carried out, but its answer of {length} bytes was dropped: too many bytes \
         of earlier answers have not been read yet; read them before asking for more"
    ))
}

/// The error for a server that cannot be subscribed to.
pub(crate) fn not_subscribed(problem: &impl Display) -> RpcError {
    internal(&problem.to_string())
}

/// The error for a request that waits when the gateway shuts down.
pub(crate) fn shutting_down() -> RpcError {
    internal("the gateway is ending; connect to it again later")
}

/// The error for a request whose handler panicked. It reveals nothing of the request.
pub(crate) fn handler_panicked() -> RpcError {
    internal("the gateway failed on this request because of a defect in it; its log says where")
}

/// The error for a server request that the client of the call does not support.
pub(crate) fn unsupported_server_request(method: &str) -> RpcError {
    let message = format!("the client of this call does not offer `{method}`");
    RpcError::new(code::METHOD_NOT_FOUND, &message)
}

/// The error for a server request that may belong to several calls.
pub(crate) fn ambiguous_server_request(method: &str) -> RpcError {
    invalid_request(&format!(
        "`{method}` is refused: several calls are being made, and it does not say which of them it \
         belongs to; clients with the same token, name and capabilities share this process"
    ))
}

/// The error for a server request that has no response of the client.
pub(crate) fn no_client_response(reason: &str) -> RpcError {
    internal(reason)
}

fn invalid_request(message: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message)
}

fn internal(message: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, message)
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
