//! Translates results and definitions between the eras. Content that both eras share is kept byte
//! for byte.

use std::sync::LazyLock;

use serde_json::json;
use trunkline::call::Outcome;
use trunkline::host::RelayMethod;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::{Era, code, meta};

use super::response::ResultBody;

/// `serverInfo` of the gateway, serialized once: every modern result carries it.
static SERVER_INFO: LazyLock<Raw> = LazyLock::new(|| Raw::from_value(&server_info()));
static META: LazyLock<Raw> =
    LazyLock::new(|| Raw::empty_object().with(meta::SERVER_INFO, &SERVER_INFO));
static COMPLETE: LazyLock<Raw> = LazyLock::new(|| Raw::from_string("complete"));
static PRIVATE: LazyLock<Raw> = LazyLock::new(|| Raw::from_string("private"));
static ZERO: LazyLock<Raw> = LazyLock::new(|| Raw::from_number(0));

/// Name and version of the gateway.
pub(crate) fn server_info() -> serde_json::Value {
    json!({ "name": "trunkline", "title": "Trunkline", "version": env!("CARGO_PKG_VERSION") })
}

/// Translates a modern result for a client of the given era.
pub(crate) fn result(era: Era, relay_method: RelayMethod, result: &Raw) -> ResultBody {
    ParsedResult::parse(result, Era::Modern).for_client(era, relay_method)
}

/// A result with the members that differ between the eras, looked up once because it may be large.
pub(crate) struct ParsedResult<'r> {
    result: &'r Raw,
    /// The era of the response. In a legacy result, keys of the modern era have no meaning.
    answered_in: Era,
    kind: Option<Raw>,
    ttl: Option<Raw>,
    scope: Option<Raw>,
    meta: Option<Raw>,
    structured: Option<Raw>,
}

impl<'r> ParsedResult<'r> {
    pub(crate) fn parse(result: &'r Raw, answered_in: Era) -> Self {
        let keys = ["resultType", "ttlMs", "cacheScope", "_meta", "structuredContent"];
        let [kind, ttl, scope, meta, structured] = result.get_all(keys);
        Self { result, answered_in, kind, ttl, scope, meta, structured }
    }

    /// Parses the result of a call, in the era in which the server was called.
    pub(crate) fn from_outcome(outcome: &'r Outcome) -> Self {
        let answered_in = if outcome.is_modern() { Era::Modern } else { Era::Legacy };
        let mut looked = Self::parse(&outcome.result, answered_in);
        if looked.is_task_of_extension() {
            looked.answered_in = Era::Modern;
        }
        looked
    }

    /// Whether a result is a task of the tasks extension, which has the same form in both eras. A
    /// result with `content` is not a task, whatever other keys it has.
    fn is_task_of_extension(&self) -> bool {
        self.kind.as_ref().and_then(Raw::as_str).is_some_and(|kind| kind == "task")
            && self.result.get("taskId").is_some()
            && self.result.get("content").is_none()
    }

    /// Whether the server created a task for the request.
    pub(crate) fn is_task(&self) -> bool {
        self.is_of_kind("task")
    }

    /// Whether it is an `InputRequiredResult`.
    pub(crate) fn is_input_required(&self) -> bool {
        self.is_of_kind("input_required")
    }

    fn is_of_kind(&self, name: &str) -> bool {
        self.answered_in == Era::Modern
            && self.kind.as_ref().and_then(Raw::as_str).is_some_and(|kind| kind == name)
    }

    /// Translates the result for a client of the given era.
    pub(crate) fn for_client(&self, era: Era, relay_method: RelayMethod) -> ResultBody {
        match era {
            Era::Modern => self.for_modern(relay_method),
            Era::Legacy => self.for_legacy(relay_method),
        }
    }

    fn for_modern(&self, relay_method: RelayMethod) -> ResultBody {
        let (complete, zero, private) = (&*COMPLETE, &*ZERO, &*PRIVATE);
        let is_older = self.answered_in == Era::Legacy;
        let is_complete = is_older || self.kind.is_none() || self.is_of_kind("complete");
        let is_cached = relay_method == RelayMethod::Read && is_complete;
        let new = [
            self.kind.is_none().then_some(("resultType", complete)),
            (is_cached && self.ttl.is_none()).then_some(("ttlMs", zero)),
            (is_cached && self.scope.is_none()).then_some(("cacheScope", private)),
            self.meta.is_none().then_some(("_meta", &*META)),
        ];
        let result = match &self.meta {
            Some(meta) if meta.get(meta::SERVER_INFO).is_none() => {
                let signed = meta.append_members(&[(meta::SERVER_INFO, &SERVER_INFO)]);
                self.result.replace_slice(meta, &signed)
            }
            _ => self.result.clone(),
        };
        let result = match &self.kind {
            // A modern client would misread a legacy server's own `resultType`.
            Some(kind) if self.answered_in == Era::Legacy && kind != complete => {
                result.with("resultType", complete)
            }
            _ => result,
        };
        ResultBody::new(result, new)
    }

    fn for_legacy(&self, relay_method: RelayMethod) -> ResultBody {
        let is_modern = self.answered_in == Era::Modern;
        let is_cacheable = is_modern && relay_method == RelayMethod::Read;
        // Legacy structured content must be an object; the text content has the same data.
        let is_other = self.structured.as_ref().is_some_and(|it| !it.is_object());
        let removed = [
            ("resultType", self.kind.is_some() && is_modern),
            ("ttlMs", self.ttl.is_some() && is_cacheable),
            ("cacheScope", self.scope.is_some() && is_cacheable),
            ("structuredContent", is_other && relay_method == RelayMethod::Call),
        ];
        let removed: Vec<_> =
            removed.into_iter().filter_map(|(key, is)| is.then_some(key)).collect();
        match removed.is_empty() {
            true => self.result.clone().into(),
            false => ResultBody::without(self.result.clone(), removed),
        }
    }
}

/// The URL elicitations that a server requires first, as it describes them.
pub(crate) fn required_elicitations(error: &RpcError) -> Vec<Raw> {
    let data = error.raw().get("data").filter(|_| error.code() == code::URL_ELICITATION_REQUIRED);
    let wanted = data.and_then(|data| data.get("elicitations"));
    wanted.map(|it| it.items()).unwrap_or_default()
}

/// Translates the definition of an item for a client of the given era.
pub(crate) fn definition(era: Era, definition: Raw) -> Raw {
    match era {
        // `execution` describes tasks as they were before they became an extension.
        Era::Modern if definition.get("execution").is_some() => definition.without("execution"),
        Era::Legacy if has_other_output(&definition) => definition.without("outputSchema"),
        _ => definition,
    }
}

/// Whether a tool's output schema is not an object, which legacy revisions require.
fn has_other_output(definition: &Raw) -> bool {
    let Some(schema) = definition.get("outputSchema") else { return false };
    schema.get("type").as_ref().and_then(Raw::as_str).as_deref() != Some("object")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn modern_result_gets_a_result_type_and_no_other_change() {
        let sent = raw(r#"{ "content" : [] ,"x":12345678901234567890}"#);
        let seen = result(Era::Modern, RelayMethod::Call, &sent).into_raw();
        assert!(seen.text().starts_with(
            r#"{ "content" : [] ,"x":12345678901234567890,"resultType":"complete","_meta":{"#
        ));
        let read = result(Era::Modern, RelayMethod::Read, &raw(r#"{"contents":[],"ttlMs":5}"#));
        let read = read.into_raw();
        assert_eq!(read.get("ttlMs").unwrap().text(), "5");
        assert_eq!(read.get("cacheScope").unwrap().text(), "\"private\"");
        let asks = raw(r#"{"resultType":"input_required","requestState":"s"}"#);
        let asks = result(Era::Modern, RelayMethod::Read, &asks).into_raw();
        assert!(asks.get("ttlMs").is_none());
    }

    #[test]
    fn legacy_result_keeps_only_known_members() {
        let sent = raw(r#"{"resultType":"complete","content":[],"structuredContent":[1]}"#);
        let legacy = |sent| result(Era::Legacy, RelayMethod::Call, sent).into_raw();
        assert_eq!(legacy(&sent).text(), r#"{"content":[]}"#);
        let same = raw(r#"{"content":[],"structuredContent":{"a":1}}"#);
        assert_eq!(legacy(&same), same);
    }

    /// A legacy server may use any key for its own purpose.
    #[test]
    fn keys_of_the_modern_generation_mean_nothing_in_an_older_result() {
        let own = raw(r#"{"content":[],"resultType":"task","ttlMs":5,"cacheScope":"x"}"#);
        let looked = ParsedResult::parse(&own, Era::Legacy);
        assert!(!looked.is_task() && !looked.is_input_required());
        assert_eq!(looked.for_client(Era::Legacy, RelayMethod::Call).into_raw(), own);
        let modern = looked.for_client(Era::Modern, RelayMethod::Call).into_raw();
        assert_eq!(modern.get("resultType").unwrap().text(), "\"complete\"");
        assert_eq!(modern.get("ttlMs").unwrap().text(), "5");
        // Only the keys that the method defines are removed from a modern result.
        let called =
            result(Era::Legacy, RelayMethod::Call, &raw(r#"{"resultType":"complete","ttlMs":5}"#));
        assert_eq!(called.into_raw().text(), r#"{"ttlMs":5}"#);
        let read = result(Era::Legacy, RelayMethod::Read, &raw(r#"{"contents":[],"ttlMs":5}"#));
        assert_eq!(read.into_raw().text(), r#"{"contents":[]}"#);
    }

    #[test]
    fn definitions_lose_only_members_unknown_to_the_era() {
        let tool = raw(r#"{"name":"a","execution":{"taskSupport":"optional"},"x":1}"#);
        assert_eq!(definition(Era::Modern, tool.clone()).text(), r#"{"name":"a","x":1}"#);
        assert_eq!(definition(Era::Legacy, tool.clone()), tool);
        let array = raw(r#"{"name":"a","outputSchema":{"type":"array"}}"#);
        assert_eq!(definition(Era::Legacy, array).text(), r#"{"name":"a"}"#);
    }
}
