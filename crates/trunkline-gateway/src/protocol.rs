//! The two generations of the protocol: their revisions, their words and their errors.

use bytes::Bytes;
use serde_json::json;
use trunkline::message::{Id, Message, Raw, Response, RpcError, code};

/// The revision in which every request says for itself what it speaks.
pub(crate) const MODERN: &str = "2026-07-28";

/// The revisions that open with `initialize`, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The extension under which calls may become tasks.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Keys of `_meta` that the protocol defines.
pub(crate) mod meta {
    pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
}

/// A generation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// Every revision we speak, newest first.
pub(crate) fn supported() -> Vec<&'static str> {
    [&[MODERN], LEGACY.as_slice()].concat()
}

/// Characters of an unknown revision that an error repeats: those there are have ten.
const SHOWN_VERSION: usize = 80;

/// Refuses a revision that is not the modern one.
pub(crate) fn require_modern(version: &str) -> Result<(), RpcError> {
    if version == MODERN {
        return Ok(());
    }
    let is_legacy = LEGACY.contains(&version);
    let advice = if is_legacy { "open with `initialize` to speak it" } else { "unknown" };
    let version: String = version.chars().take(SHOWN_VERSION).collect();
    let message = format!("unsupported protocol version {version:?}: {advice}");
    let data = json!({ "supported": supported(), "requested": version });
    Err(RpcError::new(code::UNSUPPORTED_PROTOCOL_VERSION, &message)
        .with_data(&Raw::from_value(&data)))
}

/// The error for parameters that are wrong.
pub(crate) fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// The error for a method that is not there.
pub(crate) fn unknown_method(method: &str) -> RpcError {
    let method: String = method.chars().filter(|it| !it.is_control()).take(80).collect();
    RpcError::new(code::METHOD_NOT_FOUND, &format!("there is no method `{method}` here"))
}

/// The error for something that needs a capability the client did not declare.
pub(crate) fn lacks(capabilities: &serde_json::Value, what: &str) -> RpcError {
    let message = format!("{what}, and the client does not declare that it can");
    let data = json!({ "requiredCapabilities": capabilities });
    RpcError::new(code::MISSING_CLIENT_CAPABILITY, &message).with_data(&Raw::from_value(&data))
}

pub(crate) fn empty() -> Raw {
    Raw::empty_object()
}

/// The answer to a request, as a message.
pub(crate) fn response(id: &Id, outcome: Result<Raw, RpcError>) -> Bytes {
    Message::Response(Response { id: id.clone(), outcome }).write()
}

/// An error about a message, with its id if that much is known.
pub(crate) fn refusal(id: Option<&Id>, error: &RpcError) -> Bytes {
    let id = id.map_or("null", |id| id.raw().text());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.raw()).into()
}
