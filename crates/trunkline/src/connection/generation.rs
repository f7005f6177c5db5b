//! The two generations of the protocol: what opens a conversation, and what every request carries.

use serde_json::json;

use crate::message::Raw;

/// The revision of the modern generation.
pub(super) const MODERN: &str = "2026-07-28";

/// The latest revision that opens with `initialize`, and those before it that are spoken.
pub(super) const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

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

    /// The parameters of a request as this generation sends them.
    pub(super) fn params(&self, params: Option<Raw>) -> Option<Raw> {
        match self {
            Self::Legacy(_) => params,
            Self::Modern => Some(with_meta(params)),
        }
    }
}

/// Who we are.
fn client_info() -> serde_json::Value {
    json!({ "name": "trunkline", "version": env!("CARGO_PKG_VERSION") })
}

/// The parameters of `initialize`.
pub(super) fn initialize_params() -> Raw {
    Raw::from_value(&json!({
        "protocolVersion": LEGACY[0],
        "capabilities": {},
        "clientInfo": client_info(),
    }))
}

/// Parameters with what every modern request declares, beside what the caller put there.
pub(super) fn with_meta(params: Option<Raw>) -> Raw {
    let params = params.unwrap_or_else(empty);
    let mut meta = params.get("_meta").filter(Raw::is_object).unwrap_or_else(empty);
    for (key, value) in [
        ("io.modelcontextprotocol/protocolVersion", MODERN.into()),
        ("io.modelcontextprotocol/clientCapabilities", json!({})),
        ("io.modelcontextprotocol/clientInfo", client_info()),
    ] {
        meta = meta.with(key, &Raw::from_value(&value));
    }
    params.with("_meta", &meta)
}

fn empty() -> Raw {
    Raw::from_value(&json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_requests_declare_themselves_and_keep_what_the_caller_sent() {
        let params = Raw::from_text(r#"{"name":"x","_meta":{"progressToken":7}}"#).unwrap();
        let sent = Generation::Modern.params(Some(params)).unwrap();
        let meta = sent.get("_meta").unwrap();
        assert_eq!(meta.get("progressToken").unwrap().text(), "7");
        let version = meta.get("io.modelcontextprotocol/protocolVersion").unwrap();
        assert_eq!(version.as_str().unwrap(), MODERN);
        assert_eq!(Generation::Legacy("2025-11-25".into()).params(None), None);
    }
}
