//! Translates results and errors between the eras. Content that both eras share is kept byte for
//! byte.

use std::sync::LazyLock;

use serde_json::json;
use trunkline::call::{CallError, CallErrorKind, Outcome};
use trunkline::host::RelayMethod;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::{Era, code, meta};

use super::errors::missing_capability;
use super::incoming::ClientProfile;
use super::response::ResultBody;

/// The legacy error code for an unknown resource.
const NO_SUCH_RESOURCE: i64 = -32002;

/// `serverInfo` of the gateway, serialized once: every modern result carries it.
static SERVER_INFO: LazyLock<Raw> = LazyLock::new(|| Raw::from_value(&server_info()));
static SAID: LazyLock<Raw> =
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
    said: Option<Raw>,
    structured: Option<Raw>,
}

impl<'r> ParsedResult<'r> {
    pub(crate) fn parse(result: &'r Raw, answered_in: Era) -> Self {
        let keys = ["resultType", "ttlMs", "cacheScope", "_meta", "structuredContent"];
        let [kind, ttl, scope, said, structured] = result.get_all(keys);
        Self { result, answered_in, kind, ttl, scope, said, structured }
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
            Era::Legacy => self.for_legacy(relay_method).into(),
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
            self.said.is_none().then_some(("_meta", &*SAID)),
        ];
        let result = match &self.said {
            Some(said) if said.get(meta::SERVER_INFO).is_none() => {
                let signed = said.append_members(&[(meta::SERVER_INFO, &SERVER_INFO)]);
                self.result.replace_slice(said, &signed)
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

    fn for_legacy(&self, relay_method: RelayMethod) -> Raw {
        let mut result = self.result.clone();
        let is_cacheable = relay_method == RelayMethod::Read;
        for (key, value, is_of_era) in [
            ("resultType", &self.kind, true),
            ("ttlMs", &self.ttl, is_cacheable),
            ("cacheScope", &self.scope, is_cacheable),
        ] {
            if value.is_some() && is_of_era && self.answered_in == Era::Modern {
                result = result.without(key);
            }
        }
        // Legacy structured content must be an object; the text content has the same data.
        match &self.structured {
            Some(other) if relay_method == RelayMethod::Call && !other.is_object() => {
                result.without("structuredContent")
            }
            _ => result,
        }
    }
}

/// Translates an error for a client. Returns a result where the client's era has one in its place.
pub(crate) fn error(
    client: &ClientProfile,
    relay_method: RelayMethod,
    params: &Raw,
    error: &RpcError,
) -> Result<Raw, RpcError> {
    match (client.era, error.code()) {
        (Era::Modern, code::URL_ELICITATION_REQUIRED)
            if !client.declares(&["elicitation", "url"]) =>
        {
            let needed = json!({ "elicitation": { "url": {} } });
            Err(missing_capability(&needed, "the server wants an address visited first"))
        }
        (Era::Modern, code::URL_ELICITATION_REQUIRED) => Ok(elicitations_required_result(error)),
        (Era::Modern, NO_SUCH_RESOURCE) if relay_method == RelayMethod::Read => {
            let data =
                error.raw().get("data").filter(Raw::is_object).unwrap_or_else(Raw::empty_object);
            let uri = params.get("uri").unwrap_or_else(|| Raw::from_string(""));
            Err(error.with_code(code::INVALID_PARAMS).with_data(&data.with("uri", &uri)))
        }
        (Era::Legacy, code::INVALID_PARAMS) if relay_method == RelayMethod::Read => {
            Err(error.with_code(NO_SUCH_RESOURCE))
        }
        // Codes of the modern era mean nothing to a legacy client.
        (
            Era::Legacy,
            code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION,
        ) => Err(error.with_code(code::INTERNAL_ERROR)),
        _ => Err(error.clone()),
    }
}

/// The URL elicitations that a server requires first, as it describes them.
pub(crate) fn required_elicitations(error: &RpcError) -> Vec<Raw> {
    let data = error.raw().get("data").filter(|_| error.code() == code::URL_ELICITATION_REQUIRED);
    let wanted = data.and_then(|data| data.get("elicitations"));
    wanted.map(|it| it.items()).unwrap_or_default()
}

/// An `InputRequiredResult` with the URL elicitations that a legacy server requires.
fn elicitations_required_result(error: &RpcError) -> Raw {
    let wanted = required_elicitations(error);
    let method = Raw::from_string("elicitation/create");
    let requests = wanted.iter().map(|elicitation| {
        let params = elicitation.without("elicitationId");
        Raw::empty_object().append_members(&[("method", &method), ("params", &params)])
    });
    let requests: Vec<_> =
        (1..).zip(requests).map(|(number, it)| (format!("visit-{number}"), it)).collect();
    let requests: Vec<_> = requests.iter().map(|(key, request)| (&**key, request)).collect();
    Raw::from_value(&json!({ "resultType": "input_required" }))
        .append_members(&[("inputRequests", &Raw::empty_object().append_members(&requests))])
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

/// The error for a call that got no response from its server.
pub(crate) fn call_error(error: &CallError) -> RpcError {
    let code = match error.kind() {
        CallErrorKind::Unknown | CallErrorKind::BadArguments => code::INVALID_PARAMS,
        _ => code::INTERNAL_ERROR,
    };
    let data = json!({ "retry": error.is_retryable() });
    RpcError::new(code, &error.to_string()).with_data(&Raw::from_value(&data))
}

#[cfg(test)]
mod tests {
    use trunkline::message::{Message, Response};

    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    fn client(era: Era, capabilities: &str) -> ClientProfile {
        ClientProfile { era, version: "".into(), capabilities: raw(capabilities), info: None }
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
    fn errors_have_the_codes_of_the_generation() {
        let params = raw(r#"{"uri":"x://y"}"#);
        let (modern, legacy) = (&client(Era::Modern, "{}"), &client(Era::Legacy, "{}"));
        let missing = RpcError::new(-32002, "no such resource");
        let more =
            raw(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"x","more":1}}"#);
        let Ok(Message::Response(Response { outcome: Err(more), .. })) =
            Message::read(more.bytes())
        else {
            panic!("it is an error")
        };
        let seen = error(legacy, RelayMethod::Read, &params, &more).unwrap_err();
        assert_eq!(seen.raw().text(), r#"{"code":-32002,"message":"x","more":1}"#);
        let seen = error(modern, RelayMethod::Read, &params, &missing).unwrap_err();
        assert_eq!(seen.code(), code::INVALID_PARAMS);
        assert_eq!(seen.raw().get("data").unwrap().text(), r#"{"uri":"x://y"}"#);
        let back = error(legacy, RelayMethod::Read, &params, &seen).unwrap_err();
        assert_eq!(back.code(), -32002);
        let lacking = RpcError::new(code::MISSING_CLIENT_CAPABILITY, "x");
        let seen = error(legacy, RelayMethod::Call, &params, &lacking).unwrap_err();
        assert_eq!(seen.code(), code::INTERNAL_ERROR);
        for client in [legacy, modern] {
            // For other methods the code has a meaning of the server's own.
            let seen = error(client, RelayMethod::Call, &params, &missing);
            assert_eq!(seen, Err(missing.clone()));
        }
    }

    #[test]
    fn url_elicitation_error_becomes_an_input_request() {
        let data = r#"{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://a.b"}]}"#;
        let needed = RpcError::new(code::URL_ELICITATION_REQUIRED, "visit").with_data(&raw(data));
        let refused =
            error(&client(Era::Modern, "{}"), RelayMethod::Call, &Raw::empty_object(), &needed);
        assert_eq!(refused.unwrap_err().code(), code::MISSING_CLIENT_CAPABILITY);
        let able = client(Era::Modern, r#"{"elicitation":{"url":{}}}"#);
        let incoming = error(&able, RelayMethod::Call, &Raw::empty_object(), &needed).unwrap();
        let request = incoming.get("inputRequests").unwrap().get("visit-1").unwrap();
        assert_eq!(request.get("params").unwrap().text(), r#"{"mode":"url","url":"https://a.b"}"#);
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
