//! Client metadata of requests: parameters of `initialize`, and `_meta` of modern requests.

use serde_json::json;

use super::state::log_level::LogLevel;
use crate::message::Raw;
use crate::protocol::meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION, TASKS_EXTENSION,
};
use crate::protocol::{Era, ProtocolVersion};

/// Part of every key of the protocol that hardly any other text contains.
const PROTOCOL_KEY_PART: &[u8] = b"modelcontextprotocol";

/// Members of `_meta` that a connection reads or writes itself.
pub(crate) const META_KEYS: [&str; 5] =
    [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN];

/// The `_meta` of requests to modern servers for a client with these capabilities, `clientInfo` (that of Trunkline by
/// default) and log level.
///
/// ```
/// use trunkline::connection::{LogLevel, client_meta};
/// use trunkline::message::Raw;
///
/// let meta = client_meta(&Raw::empty_object(), None, Some(LogLevel::Info));
/// assert!(meta.text().contains(r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#));
/// ```
pub fn client_meta(capabilities: &Raw, info: Option<&Raw>, level: Option<LogLevel>) -> Raw {
    let ClientMeta { meta, .. } = ClientMeta::with_info(info, capabilities);
    match level {
        Some(level) => meta.append_members(&[(LOG_LEVEL, &Raw::from_string(level.as_str()))]),
        None => meta,
    }
}

/// Client metadata that every modern request declares, serialized once because every call carries
/// it.
#[derive(Clone, Debug)]
pub(super) struct ClientMeta {
    meta: Raw,
    version: Raw,
    info: Raw,
    capabilities: Raw,
}

impl ClientMeta {
    pub(super) fn new(capabilities: &Raw) -> Self {
        Self::with_info(None, capabilities)
    }

    fn with_info(info: Option<&Raw>, capabilities: &Raw) -> Self {
        let version = Raw::from_string(ProtocolVersion::MODERN.as_str());
        let info = info.cloned().unwrap_or_else(|| Raw::from_value(&client_info()));
        let meta = Raw::empty_object().append_members(&[
            (PROTOCOL_VERSION, &version),
            (CLIENT_INFO, &info),
            (CLIENT_CAPABILITIES, capabilities),
        ]);
        Self { meta, version, info, capabilities: capabilities.clone() }
    }

    /// Client metadata of a request about tasks, which declares the tasks extension.
    pub(super) fn with_tasks(&self) -> Raw {
        let capabilities = self.meta.get(CLIENT_CAPABILITIES).unwrap_or_else(Raw::empty_object);
        let extensions = capabilities.get("extensions").unwrap_or_else(Raw::empty_object);
        let extensions = extensions.with(TASKS_EXTENSION, &Raw::empty_object());
        Raw::empty_object().with(CLIENT_CAPABILITIES, &capabilities.with("extensions", &extensions))
    }
}

/// Whether a server's list of protocol versions contains the modern one.
pub(super) fn lists_modern(versions: Option<&Raw>) -> bool {
    let versions = versions.map(Raw::items).unwrap_or_default();
    versions
        .iter()
        .any(|version| version.as_str().as_deref() == Some(ProtocolVersion::MODERN.as_str()))
}

/// Whether a server's list of protocol versions contains one of the legacy era.
pub(super) fn lists_legacy(versions: Option<&Raw>) -> bool {
    let versions = versions.map(Raw::items).unwrap_or_default();
    let known = versions.iter().filter_map(|version| ProtocolVersion::parse(&version.as_str()?));
    known.into_iter().any(|version| version.era() == Era::Legacy)
}

fn client_info() -> serde_json::Value {
    json!({ "name": "trunkline", "version": env!("CARGO_PKG_VERSION") })
}

/// The parameters of `initialize`.
pub(super) fn initialize_params(capabilities: &Raw) -> Raw {
    let params = json!({ "protocolVersion": ProtocolVersion::LATEST_LEGACY.as_str(), "clientInfo": client_info() });
    Raw::from_value(&params).with("capabilities", capabilities)
}

/// Parameters as servers of this era expect them. Client metadata of the request itself stays in
/// modern requests, and is removed from legacy ones, where the handshake declared it. Modern requests
/// get the metadata of their client, if it is given, or that of the connection.
pub(super) fn request_params(
    era: Era,
    params: Option<Raw>,
    client: (Option<&Raw>, &ClientMeta),
) -> Option<Raw> {
    match era {
        Era::Legacy => params.map(without_client_meta),
        Era::Modern => Some(with_client_meta(params, client)),
    }
}

/// Adds client metadata to parameters, next to the caller's own members.
fn with_client_meta(params: Option<Raw>, (given, client): (Option<&Raw>, &ClientMeta)) -> Raw {
    let params = params.unwrap_or_else(Raw::empty_object);
    let complete = given.unwrap_or(&client.meta);
    let said = match params.get("_meta") {
        Some(said) if said.is_object() => said,
        Some(_) => return params.with("_meta", complete),
        None => return params.append_members(&[("_meta", complete)]),
    };
    if let Some(given) = given {
        // The name of Trunkline, which a client without one gets, does not replace that in the request.
        let is_named_already = |key: &str, value: &Raw| {
            key == CLIENT_INFO && *value == client.info && said.get(key).is_some()
        };
        let mut members = given.members();
        members.retain(|(key, value)| !is_named_already(key, value));
        let meta = members.iter().fold(said.clone(), |meta, (key, value)| meta.with(key, value));
        return params.replace_slice(&said, &meta);
    }
    let [version, info, capabilities] =
        said.get_all([PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES]);
    let mut missing = Vec::new();
    for (key, own, value) in [
        (PROTOCOL_VERSION, &version, &client.version),
        (CLIENT_INFO, &info, &client.info),
        (CLIENT_CAPABILITIES, &capabilities, &client.capabilities),
    ] {
        if own.is_none() {
            missing.push((key, value));
        }
    }
    // A relayed request keeps the metadata of its own client, but not its protocol version.
    let meta = match version {
        Some(other) if other != client.version => {
            said.replace_slice(&other, &client.version).append_members(&missing)
        }
        _ if missing.is_empty() => return params,
        _ => said.append_members(&missing),
    };
    params.replace_slice(&said, &meta)
}

/// Parameters without client metadata, every other byte unchanged.
fn without_client_meta(params: Raw) -> Raw {
    // Some clients write `null` where there is none.
    if params.get("_meta").is_some_and(|meta| !meta.is_object()) {
        return params.without("_meta");
    }
    // It is rarely present; an escaped key may be part of it.
    let bytes = params.bytes();
    if memchr::memmem::find(bytes, PROTOCOL_KEY_PART).is_none() && !bytes.contains(&b'\\') {
        return params;
    }
    let Some(meta) = params.get("_meta").filter(Raw::is_object) else { return params };
    let keys = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
    let rest = keys.iter().fold(meta.clone(), |meta, key| meta.without(key));
    if rest == meta {
        params
    } else if rest.members().is_empty() {
        params.without("_meta")
    } else {
        params.with("_meta", &rest)
    }
}

/// Parameters with this progress token, and the caller's own token, if there is one.
pub(super) fn with_progress_token(params: Option<Raw>, token: u64) -> (Option<Raw>, Option<Raw>) {
    let params = params.unwrap_or_else(Raw::empty_object);
    let meta = params.get("_meta").filter(Raw::is_object).unwrap_or_else(Raw::empty_object);
    let own = meta.get(PROGRESS_TOKEN).map(|own| own.detached());
    let meta = meta.with(PROGRESS_TOKEN, &Raw::from_value(&token.into()));
    (Some(params.with("_meta", &meta)), own)
}

/// Parameters without the caller's own progress token. A connection uses the ids of its requests as
/// tokens, so that any other token can be that of another client's request.
pub(super) fn without_progress_token(params: Raw) -> Raw {
    match params.get("_meta").filter(|meta| meta.get(PROGRESS_TOKEN).is_some()) {
        Some(meta) => params.replace_slice(&meta, &meta.without(PROGRESS_TOKEN)),
        None => params,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_requests_carry_client_meta_and_keep_members_of_the_caller() {
        let params = Raw::from_text(r#"{"name":"x","_meta":{"progressToken":7}}"#).unwrap();
        let offered = Raw::from_text(r#"{"roots":{}}"#).unwrap();
        let client = ClientMeta::new(&offered);
        let sent = request_params(Era::Modern, Some(params), (None, &client)).unwrap();
        let meta = sent.get("_meta").unwrap();
        assert_eq!(meta.get(PROGRESS_TOKEN).unwrap().text(), "7");
        assert_eq!(meta.get(CLIENT_CAPABILITIES).unwrap(), offered);
        let version = meta.get(PROTOCOL_VERSION).unwrap();
        assert_eq!(version.as_str().unwrap(), "2026-07-28");
        assert_eq!(request_params(Era::Legacy, None, (None, &client)), None);
        let other = sent.text().replace("2026-07-28", "2025-11-25");
        let other = Raw::from_text(&other).ok();
        assert_eq!(request_params(Era::Modern, other, (None, &client)).as_ref(), Some(&sent));
        let without = ClientMeta::new(&Raw::empty_object());
        let again = request_params(Era::Modern, Some(sent), (None, &without)).unwrap();
        assert_eq!(again.get("_meta").unwrap().get(CLIENT_CAPABILITIES).unwrap(), offered);
    }

    #[test]
    fn metadata_of_a_client_replaces_what_its_request_says() {
        let own = ClientMeta::new(&Raw::empty_object());
        let (offered, info) = (r#"{"roots":{}}"#, r#"{"name":"x"}"#);
        let [offered, info] = [offered, info].map(|it| Raw::from_text(it).unwrap());
        let given = client_meta(&offered, Some(&info), Some(LogLevel::Debug));
        let sent = |text: &str| {
            let params = Raw::from_text(text).ok();
            request_params(Era::Modern, params, (Some(&given), &own)).unwrap().text().to_owned()
        };
        assert_eq!(sent(r#"{"a":1}"#), format!(r#"{{"a":1,"_meta":{given}}}"#));
        assert_eq!(sent(r#"{"_meta":7}"#), format!(r#"{{"_meta":{given}}}"#));
        let members = given.text().trim_matches(['{', '}']);
        assert_eq!(sent(r#"{"_meta":{"x":1}}"#), format!(r#"{{"_meta":{{"x":1,{members}}}}}"#));
        let other = format!(r#"{{"_meta":{{"{LOG_LEVEL}":"info","x":1,"{CLIENT_INFO}":{{}}}}}}"#);
        let sent = Raw::from_text(&sent(&other)).unwrap().get("_meta").unwrap();
        let texts =
            sent.get_all([LOG_LEVEL, "x", CLIENT_INFO, CLIENT_CAPABILITIES]).map(Option::unwrap);
        assert_eq!(
            texts.map(|it| it.text().to_owned()),
            [r#""debug""#, "1", info.text(), offered.text()]
        );
    }

    #[test]
    fn a_request_that_names_its_client_keeps_the_name_if_no_other_is_known() {
        let own = ClientMeta::new(&Raw::empty_object());
        let given = client_meta(&Raw::empty_object(), None, None);
        let params = Raw::from_text(&format!(r#"{{"_meta":{{"{CLIENT_INFO}":{{"name":"x"}}}}}}"#));
        let sent = request_params(Era::Modern, params.ok(), (Some(&given), &own)).unwrap();
        let [info, version] = sent.get("_meta").unwrap().get_all([CLIENT_INFO, PROTOCOL_VERSION]);
        assert_eq!((info.unwrap().text(), version.is_some()), (r#"{"name":"x"}"#, true));
    }

    #[test]
    fn legacy_requests_carry_no_client_meta() {
        let client = ClientMeta::new(&Raw::empty_object());
        let sent = |text: &str| {
            let params = Raw::from_text(text).ok();
            request_params(Era::Legacy, params, (Some(&client.meta), &client))
                .unwrap()
                .text()
                .to_owned()
        };
        let of_modern = format!(
            r#""{PROTOCOL_VERSION}":"2026-07-28", "{CLIENT_CAPABILITIES}":{{"roots":{{}}}},"{CLIENT_INFO}":{{}}"#
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
        ] {
            assert_eq!(sent(untouched), untouched);
        }
        for no_object in ["null", "7", r#""io.modelcontextprotocol/logLevel""#] {
            assert_eq!(sent(&format!(r#"{{"a":1,"_meta":{no_object}}}"#)), r#"{"a":1}"#);
        }
    }

    #[test]
    fn progress_token_is_replaced_and_returned() {
        let params = Raw::from_text(r#"{"_meta":{"progressToken":"mine","x":1}}"#).unwrap();
        let (sent, own) = with_progress_token(Some(params), 9);
        let sent = sent.unwrap();
        assert_eq!(sent.text(), r#"{"_meta":{"progressToken":9,"x":1}}"#);
        assert_eq!(own.unwrap().text(), "\"mine\"");
        assert!(with_progress_token(None, 9).1.is_none());
    }

    #[test]
    fn progress_token_is_removed_and_all_else_stays() {
        let sent = |text: &str| without_progress_token(Raw::from_text(text).unwrap());
        let params = r#"{ "a":1,"_meta":{"progress\u0054oken":7, "x":1} }"#;
        assert_eq!(sent(params).to_value(), json!({ "a": 1, "_meta": { "x": 1 } }));
        for untouched in [r#"{"progressToken":7}"#, r#"{"_meta":{"x" : 1}}"#, r#"{"_meta":7}"#] {
            assert_eq!(sent(untouched).text(), untouched);
        }
    }
}
