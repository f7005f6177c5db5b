//! The two generations of the protocol, and which of them a request speaks.

use serde_json::{Value, json};

use super::message::{Code, Failure, Request};

/// The version in which every request says for itself what it speaks.
const MODERN: &str = "2026-07-28";

/// The versions that open with `initialize`, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A generation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// Every version we speak, newest first.
pub(super) fn supported() -> Vec<&'static str> {
    [&[MODERN], LEGACY.as_slice()].concat()
}

pub(super) fn is_legacy(version: &str) -> bool {
    LEGACY.contains(&version)
}

pub(super) fn is_modern(version: &str) -> bool {
    version == MODERN
}

/// The version that answers an `initialize`: the one asked for, or our newest.
pub(super) fn negotiate(requested: Option<&str>) -> &'static str {
    let is_requested = |version: &&str| requested == Some(*version);
    LEGACY.into_iter().find(is_requested).unwrap_or(LEGACY[0])
}

/// Decides what a request speaks, from the request alone.
pub(super) fn admit(request: &Request) -> Result<Era, Failure> {
    if !claims_modern(request) {
        return Ok(Era::Legacy);
    }
    require_supported(declared_version(request)?)?;
    Ok(Era::Modern)
}

/// Whether a request has the form of the modern generation, complete or not.
pub(super) fn claims_modern(request: &Request) -> bool {
    let has = |key| meta(request, key).is_some();
    &*request.method == "server/discover" || has(PROTOCOL_VERSION) || has(CLIENT_CAPABILITIES)
}

/// The version a modern request declares, once all that it must declare is there.
pub(super) fn declared_version(request: &Request) -> Result<&str, Failure> {
    let missing = |key: &str, kind: &str| {
        Failure::new(Code::InvalidParams, format!("`params._meta` must hold `{key}`, {kind}"))
    };
    let version = meta(request, PROTOCOL_VERSION)
        .and_then(Value::as_str)
        .ok_or_else(|| missing(PROTOCOL_VERSION, "a string"))?;
    meta(request, CLIENT_CAPABILITIES)
        .and_then(Value::as_object)
        .ok_or_else(|| missing(CLIENT_CAPABILITIES, "an object"))?;
    Ok(version)
}

/// Refuses a modern request in a version that is not modern or not known.
pub(super) fn require_supported(version: &str) -> Result<(), Failure> {
    if is_modern(version) {
        return Ok(());
    }
    let advice = if is_legacy(version) { "open with `initialize` to speak it" } else { "unknown" };
    let message = format!("unsupported protocol version {version:?}: {advice}");
    let data = json!({ "supported": supported(), "requested": version });
    Err(Failure::new(Code::UnsupportedProtocolVersion, message).with_data(data))
}

fn meta<'a>(request: &'a Request, key: &str) -> Option<&'a Value> {
    request.params.get("_meta")?.get(key)
}
