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
const TASKS: &str = "io.modelcontextprotocol/tasks";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What those keys have in common and nearly no other text has.
const MARK: &[u8] = b"modelcontextprotocol";

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// It was opened with `initialize`, and this revision was agreed on.
    Legacy(Box<str>),
    /// Every request says for itself what it speaks.
    Modern,
}

/// The members of `_meta` that a connection reads, or writes itself.
pub(crate) const META_KEYS: [&str; 5] =
    [VERSION, CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken"];

impl Generation {
    /// The revision spoken.
    pub(super) fn revision(&self) -> &str {
        match self {
            Self::Legacy(revision) => revision,
            Self::Modern => MODERN,
        }
    }

    /// The parameters of a request as this generation sends them. Capabilities that the request
    /// declares for itself stay where requests declare any, and go where a handshake did.
    pub(super) fn params(&self, params: Option<Raw>, declared: &Declared) -> Option<Raw> {
        match self {
            Self::Legacy(_) => params.map(undeclared),
            Self::Modern => Some(with_meta(params, declared)),
        }
    }
}

/// What every modern request declares: written once, for it goes with every call.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    meta: Raw,
    version: Raw,
    info: Raw,
    capabilities: Raw,
}

impl Declared {
    pub(super) fn new(capabilities: &Raw) -> Self {
        let version = Raw::from_string(MODERN);
        let info = Raw::from_value(&client_info());
        let meta = Raw::empty_object().with_new(&[
            (VERSION, &version),
            (CLIENT_INFO, &info),
            (CAPABILITIES, capabilities),
        ]);
        Self { meta, version, info, capabilities: capabilities.clone() }
    }

    /// The `_meta` of a request that is about tasks, whoever they were made for.
    pub(super) fn with_tasks(&self) -> Raw {
        let capabilities = self.meta.get(CAPABILITIES).unwrap_or_else(empty);
        let extensions = capabilities.get("extensions").unwrap_or_else(empty);
        let extensions = extensions.with(TASKS, &empty());
        empty().with(CAPABILITIES, &capabilities.with("extensions", &extensions))
    }
}

/// Whether a list of revisions, as servers send it, holds the modern one.
pub(super) fn names_modern(revisions: Option<&Raw>) -> bool {
    let revisions = revisions.map(Raw::items).unwrap_or_default();
    revisions.iter().any(|revision| revision.as_str().as_deref() == Some(MODERN))
}

/// Whether a list of revisions, as servers send it, holds one of the older era.
pub(super) fn names_older(revisions: Option<&Raw>) -> bool {
    let revisions = revisions.map(Raw::items).unwrap_or_default();
    let is_older = |revision: &Raw| revision.as_str().is_some_and(|it| LEGACY.contains(&&*it));
    revisions.iter().any(is_older)
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
    let Some(said) = params.get("_meta").filter(Raw::is_object) else {
        return params.with("_meta", &declared.meta);
    };
    let [version, info, capabilities] = said.get_all([VERSION, CLIENT_INFO, CAPABILITIES]);
    let mut missing = Vec::new();
    for (key, own, value) in [
        (VERSION, &version, &declared.version),
        (CLIENT_INFO, &info, &declared.info),
        (CAPABILITIES, &capabilities, &declared.capabilities),
    ] {
        if own.is_none() {
            missing.push((key, value));
        }
    }
    // Whoever passes a request on may speak for another client, but not in another revision.
    let meta = match version {
        Some(other) if other != declared.version => {
            said.with_part(&other, &declared.version).with_new(&missing)
        }
        _ if missing.is_empty() => return params,
        _ => said.with_new(&missing),
    };
    params.with_part(&said, &meta)
}

/// Parameters without what only modern requests declare. Every other byte stays.
fn undeclared(params: Raw) -> Raw {
    // Nearly no request has any; a key that is escaped may be one.
    let bytes = params.bytes();
    if memchr::memmem::find(bytes, MARK).is_none() && !bytes.contains(&b'\\') {
        return params;
    }
    let Some(meta) = params.get("_meta").filter(Raw::is_object) else { return params };
    let keys = [VERSION, CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
    let rest = keys.iter().fold(meta.clone(), |meta, key| meta.without(key));
    if rest == meta {
        params
    } else if rest.members().is_empty() {
        params.without("_meta")
    } else {
        params.with("_meta", &rest)
    }
}

/// Parameters with this token for their progress, and the one the caller gave it, if any.
pub(super) fn with_progress_token(params: Option<Raw>, token: u64) -> (Option<Raw>, Option<Raw>) {
    let params = params.unwrap_or_else(empty);
    let meta = params.get("_meta").filter(Raw::is_object).unwrap_or_else(empty);
    let own = meta.get("progressToken").map(|own| own.detached());
    let meta = meta.with("progressToken", &Raw::from_value(&token.into()));
    (Some(params.with("_meta", &meta)), own)
}

pub(super) fn empty() -> Raw {
    Raw::empty_object()
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
        let other = sent.text().replace(MODERN, "2025-11-25");
        let other = Raw::from_text(&other).ok();
        assert_eq!(Generation::Modern.params(other, &declared).as_ref(), Some(&sent));
        let again = Generation::Modern.params(Some(sent), &Declared::new(&empty())).unwrap();
        assert_eq!(again.get("_meta").unwrap().get(CAPABILITIES).unwrap(), offered);
    }

    #[test]
    fn legacy_requests_lose_what_only_modern_ones_declare() {
        let declared = Declared::new(&empty());
        let sent = |text: &str| {
            let legacy = Generation::Legacy("2025-11-25".into());
            legacy.params(Raw::from_text(text).ok(), &declared).unwrap().text().to_owned()
        };
        let of_modern = format!(
            r#""{VERSION}":"2026-07-28", "{CAPABILITIES}":{{"roots":{{}}}},"{CLIENT_INFO}":{{}}"#
        );
        let with_others = format!(
            r#"{{ "name":"x","_meta":{{"a":1, {of_modern},"progressToken" : 7,"{LOG_LEVEL}":"info"}},
                "requestState":"s","inputResponses":{{}} }}"#
        );
        assert_eq!(
            sent(&with_others),
            r#"{ "name":"x","_meta":{"a":1,"progressToken" : 7},
                "requestState":"s","inputResponses":{} }"#
        );
        let alone = format!(r#"{{"name":"x","_meta":{{{of_modern}}}}}"#);
        assert_eq!(sent(&alone), r#"{"name":"x"}"#);
        assert_eq!(sent(&alone.replace("io.model", "i\\u006f.m\\u006fdel")), r#"{"name":"x"}"#);
        for untouched in [
            r#"{"name":"x" ,"_meta":{}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}"#,
            r#"{"arguments":{"io.modelcontextprotocol/logLevel":"info"}}"#,
            r#"{"_meta":"io.modelcontextprotocol/logLevel"}"#,
        ] {
            assert_eq!(sent(untouched), untouched);
        }
    }

    #[test]
    fn a_progress_token_is_ours_and_the_callers_comes_back() {
        let params = Raw::from_text(r#"{"_meta":{"progressToken":"mine","x":1}}"#).unwrap();
        let (sent, own) = with_progress_token(Some(params), 9);
        let sent = sent.unwrap();
        assert_eq!(sent.text(), r#"{"_meta":{"progressToken":9,"x":1}}"#);
        assert_eq!(own.unwrap().text(), "\"mine\"");
        assert!(with_progress_token(None, 9).1.is_none());
    }
}
