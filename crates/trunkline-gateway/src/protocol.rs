//! The two generations of the protocol: which of them a request speaks, and who sends it.

use serde_json::json;
use trunkline::connection::LogLevel;
use trunkline::message::{Raw, Request, RpcError, code};

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

/// Who sends a request, in the words it uses itself.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) era: Era,
    pub(crate) version: Box<str>,
    /// What it offers to servers: an object.
    pub(crate) capabilities: Raw,
    /// What it says it is.
    pub(crate) info: Option<Raw>,
}

impl Client {
    /// The client of a modern request, once the request declares all that it must.
    pub(crate) fn of_request(request: &Request) -> Result<Self, RpcError> {
        let declared = declared(request);
        let [version, capabilities, info] =
            declared.get_all([meta::VERSION, meta::CAPABILITIES, meta::CLIENT_INFO]);
        let version = version.as_ref().and_then(Raw::as_str);
        let version = version.ok_or_else(|| undeclared(meta::VERSION, "a text"))?.into();
        let capabilities = capabilities.filter(Raw::is_object);
        let capabilities =
            capabilities.ok_or_else(|| undeclared(meta::CAPABILITIES, "an object"))?;
        Ok(Self { era: Era::Modern, version, capabilities, info })
    }

    /// The client that opens a legacy session.
    pub(crate) fn of_initialize(params: &Raw) -> Self {
        let [requested, capabilities, info] =
            params.get_all(["protocolVersion", "capabilities", "clientInfo"]);
        let requested = requested.as_ref().and_then(Raw::as_str);
        let version = negotiated(requested.as_deref()).into();
        let capabilities = capabilities.filter(Raw::is_object).unwrap_or_else(empty);
        // A session lives longer than the request that opens it.
        let info = info.map(|info| info.detached());
        Self { era: Era::Legacy, version, capabilities: capabilities.detached(), info }
    }

    /// Whether it declares a capability, at a path such as `["elicitation", "url"]`.
    pub(crate) fn declares(&self, path: &[&str]) -> bool {
        let first = Some(self.capabilities.clone());
        path.iter().fold(first, |value, key| value?.get(key)).is_some()
    }
}

/// Every revision we speak, newest first.
pub(crate) fn supported() -> Vec<&'static str> {
    [&[MODERN], LEGACY.as_slice()].concat()
}

/// The revision that answers an `initialize`: the one asked for, or our newest that opens so.
fn negotiated(requested: Option<&str>) -> &'static str {
    let is_requested = |version: &&str| requested == Some(*version);
    LEGACY.into_iter().find(is_requested).unwrap_or(LEGACY[0])
}

/// Whether a request has the form of the modern generation, complete or not.
pub(crate) fn claims_modern(request: &Request) -> bool {
    let declared = declared(request);
    let [version, capabilities] = declared.get_all([meta::VERSION, meta::CAPABILITIES]);
    &*request.method == "server/discover" || version.is_some() || capabilities.is_some()
}

/// Refuses a revision that is not the modern one.
pub(crate) fn require_modern(version: &str) -> Result<(), RpcError> {
    if version == MODERN {
        return Ok(());
    }
    let is_legacy = LEGACY.contains(&version);
    let advice = if is_legacy { "open with `initialize` to speak it" } else { "unknown" };
    let message = format!("unsupported protocol version {version:?}: {advice}");
    let data = json!({ "supported": supported(), "requested": version });
    Err(RpcError::new(code::UNSUPPORTED_PROTOCOL_VERSION, &message)
        .with_data(&Raw::from_value(&data)))
}

/// What a request says in `_meta`; an empty object if it says nothing.
pub(crate) fn declared(request: &Request) -> Raw {
    let declared = request.params.as_ref().and_then(|params| params.get("_meta"));
    declared.filter(Raw::is_object).unwrap_or_else(empty)
}

/// From which level on a modern request wants lines of logs.
pub(crate) fn level_of(request: &Request) -> Result<Option<LogLevel>, RpcError> {
    let Some(level) = declared(request).get(meta::LOG_LEVEL) else { return Ok(None) };
    let level = level.as_str().and_then(|level| LogLevel::parse(&level));
    level.map(Some).ok_or_else(|| invalid("the log level is not one of syslog"))
}

fn undeclared(key: &str, kind: &str) -> RpcError {
    invalid(&format!("`params._meta` must hold `{key}`, {kind}"))
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
    Raw::from_value(&json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline::message::Id;

    fn request(method: &str, params: &str) -> Request {
        let params = Some(Raw::from_text(params).unwrap());
        Request { id: Id::number(1), method: method.into(), params }
    }

    #[test]
    fn a_request_is_modern_if_it_declares_anything_of_that_generation() {
        assert!(!claims_modern(&request("tools/list", "{}")));
        assert!(claims_modern(&request("server/discover", "{}")));
        let half = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let half = request("tools/list", half);
        assert!(claims_modern(&half));
        assert_eq!(Client::of_request(&half).unwrap_err().code(), code::INVALID_PARAMS);
    }

    #[test]
    fn a_legacy_client_gets_the_revision_it_asks_for_or_our_newest() {
        let client = |params| Client::of_initialize(&Raw::from_text(params).unwrap());
        assert_eq!(&*client(r#"{"protocolVersion":"2025-06-18"}"#).version, "2025-06-18");
        assert_eq!(&*client(r#"{"protocolVersion":"1999-01-01"}"#).version, LEGACY[0]);
        let offers = client(r#"{"capabilities":{"elicitation":{"url":{}}}}"#);
        assert!(offers.declares(&["elicitation", "url"]) && !offers.declares(&["sampling"]));
    }
}
