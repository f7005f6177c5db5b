//! The two generations of the protocol: what opens a conversation, and what every request carries.

use serde_json::json;

use crate::message::Raw;

/// The revision of the modern generation.
pub(super) const MODERN: &str = "2026-07-28";

/// The latest revision that opens with `initialize`, and those before it that are spoken.
pub(super) const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// It was opened with `initialize`, and this revision was agreed on.
    Legacy(Box<str>),
    /// Every request says for itself what it speaks.
    Modern,
}

impl Generation {
    /// The revision spoken.
    pub(super) fn revision(&self) -> &str {
        match self {
            Self::Legacy(revision) => revision,
            Self::Modern => MODERN,
        }
    }

    /// The parameters of a request as this generation sends them. Capabilities that the request
    /// declares for itself stay.
    pub(super) fn params(&self, params: Option<Raw>, declared: &Declared) -> Option<Raw> {
        match self {
            Self::Legacy(_) => params,
            Self::Modern => Some(with_meta(params, declared)),
        }
    }
}

/// What every modern request declares: written once, for it goes with every call.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    meta: Raw,
}

impl Declared {
    pub(super) fn new(capabilities: &Raw) -> Self {
        let meta = json!({ VERSION: MODERN, CLIENT_INFO: client_info() });
        Self { meta: Raw::from_value(&meta).with(CAPABILITIES, capabilities) }
    }
}

/// Whether a list of revisions, as servers send it, holds the modern one.
pub(super) fn names_modern(revisions: Option<&Raw>) -> bool {
    let revisions = revisions.map(Raw::items).unwrap_or_default();
    revisions.iter().any(|revision| revision.as_str().as_deref() == Some(MODERN))
}

/// Who we are.
fn client_info() -> serde_json::Value {
    json!({ "name": "trunkline", "version": env!("CARGO_PKG_VERSION") })
}

/// The parameters of `initialize`.
pub(super) fn initialize_params(capabilities: &Raw) -> Raw {
    let params = json!({ "protocolVersion": LEGACY[0], "clientInfo": client_info() });
    Raw::from_value(&params).with("capabilities", capabilities)
}

/// Parameters with what every modern request declares, beside what the caller put there.
fn with_meta(params: Option<Raw>, declared: &Declared) -> Raw {
    let params = params.unwrap_or_else(empty);
    let Some(mut meta) = params.get("_meta").filter(Raw::is_object) else {
        return params.with("_meta", &declared.meta);
    };
    for (key, value) in declared.meta.members() {
        // Whoever passes a request on may speak for another client, but not in another revision.
        if key == VERSION || meta.get(&key).is_none() {
            meta = meta.with(&key, &value);
        }
    }
    params.with("_meta", &meta)
}

/// Parameters with this token for their progress, and the one the caller gave it, if any.
pub(super) fn with_progress_token(params: Option<Raw>, token: u64) -> (Raw, Option<Raw>) {
    let params = params.unwrap_or_else(empty);
    let meta = params.get("_meta").filter(Raw::is_object).unwrap_or_else(empty);
    let own = meta.get("progressToken").map(|own| own.detached());
    let meta = meta.with("progressToken", &Raw::from_value(&token.into()));
    (params.with("_meta", &meta), own)
}

pub(super) fn empty() -> Raw {
    Raw::from_value(&json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_requests_declare_themselves_and_keep_what_the_caller_sent() {
        let params = Raw::from_text(r#"{"name":"x","_meta":{"progressToken":7}}"#).unwrap();
        let offered = Raw::from_text(r#"{"roots":{}}"#).unwrap();
        let declared = Declared::new(&offered);
        let sent = Generation::Modern.params(Some(params), &declared).unwrap();
        let meta = sent.get("_meta").unwrap();
        assert_eq!(meta.get("progressToken").unwrap().text(), "7");
        assert_eq!(meta.get(CAPABILITIES).unwrap(), offered);
        let version = meta.get(VERSION).unwrap();
        assert_eq!(version.as_str().unwrap(), MODERN);
        assert_eq!(Generation::Legacy("2025-11-25".into()).params(None, &declared), None);
        let again = Generation::Modern.params(Some(sent), &Declared::new(&empty())).unwrap();
        assert_eq!(again.get("_meta").unwrap().get(CAPABILITIES).unwrap(), offered);
    }

    #[test]
    fn a_progress_token_is_ours_and_the_callers_comes_back() {
        let params = Raw::from_text(r#"{"_meta":{"progressToken":"mine","x":1}}"#).unwrap();
        let (sent, own) = with_progress_token(Some(params), 9);
        assert_eq!(sent.text(), r#"{"_meta":{"progressToken":9,"x":1}}"#);
        assert_eq!(own.unwrap().text(), "\"mine\"");
        assert!(with_progress_token(None, 9).1.is_none());
    }
}
