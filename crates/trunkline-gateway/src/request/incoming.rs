//! A client request with its subject, `_meta` and era, parsed once.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::http::HeaderMap;
use trunkline::connection::{LogLevel, client_meta};
use trunkline::message::{Id, MAX_ID_BYTES, Raw, Request, RpcError};
use trunkline::principal::RequestPath;
use trunkline::protocol::{Era, ProtocolVersion, meta, subject_key};

use super::errors::invalid;
use super::record::client_name;
use super::trace_context::TraceContext;
use crate::access::budget::Reservation;

/// Limit of `clientInfo` and of `capabilities` in bytes. They are stored with the session, and sent
/// with every call to modern servers.
const MAX_IDENTITY_BYTES: usize = 64 * 1024;

/// A request of a client.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) id: Id,
    pub(crate) method: Box<str>,
    pub(crate) params: Raw,
    /// The members of `_meta`.
    pub(crate) meta: RequestMeta,
    /// The `requestState` of the earlier result that this request continues.
    pub(crate) state: Option<Raw>,
    /// The HTTP headers, in which some arguments may have to be repeated.
    pub(crate) headers: Option<HeaderMap>,
    /// The name, URI or task ID of the request.
    subject: Option<Raw>,
    /// The processes it has come through.
    pub(crate) path: RequestPath,
    /// The trace context of the HTTP request.
    pub(crate) http_trace: Option<TraceContext>,
    /// Whether a meta tool names the tool to call.
    pub(crate) is_meta: bool,
    /// Whether the result is that of a tool, although the request reads a resource or gets a prompt.
    pub(crate) is_item_tool: bool,
    /// The part of a byte budget that its body holds, for as long as the request is worked on.
    reservation: Option<Reservation>,
}

/// The members of a request's `_meta`.
#[derive(Debug)]
pub(crate) struct RequestMeta {
    pub(crate) version: Option<Raw>,
    pub(crate) capabilities: Option<Raw>,
    pub(crate) info: Option<Raw>,
    pub(crate) progress_token: Option<Raw>,
    level: Option<Raw>,
}

impl IncomingRequest {
    /// Boxed, because the futures of handlers that own a request would be larger by twice its size.
    pub(crate) fn of(request: Request) -> Box<Self> {
        let Request { id, method, params } = request;
        let params = params.unwrap_or_else(Raw::empty_object);
        let [meta, state, subject] = match subject_key(&method) {
            Some(key) => params.get_all(["_meta", "requestState", key]),
            None => {
                let [meta, state] = params.get_all(["_meta", "requestState"]);
                [meta, state, None]
            }
        };
        Box::new(Self {
            id,
            method,
            params,
            meta: RequestMeta::of(meta),
            state,
            headers: None,
            subject,
            path: RequestPath::default(),
            http_trace: None,
            is_meta: false,
            is_item_tool: false,
            reservation: None,
        })
    }

    /// The same request with another `requestState`.
    pub(crate) fn with_state(mut self: Box<Self>, state: &str) -> Box<Self> {
        let state = Raw::from_string(state);
        self.params = self.params.with("requestState", &state);
        self.state = Some(state);
        self
    }

    /// The call that a meta tool names. The client repeated no arguments in headers, because it
    /// knows only the schema of the meta tool.
    pub(crate) fn with_call(mut self: Box<Self>, name: &Raw, arguments: Option<&Raw>) -> Box<Self> {
        let params = self.params.without("arguments").with("name", name);
        self.params = arguments.map_or_else(|| params.clone(), |it| params.with("arguments", it));
        self.subject = Some(name.clone());
        self.headers = None;
        self.is_meta = true;
        self
    }

    /// The request that a tool for resources or prompts makes, with the members that name its item.
    pub(crate) fn with_item(mut self: Box<Self>, members: &[(&str, &Raw)]) -> Box<Self> {
        let own = ["name", "uri", "arguments", "task"];
        let params = own.iter().fold(self.params.clone(), |params, key| params.without(key));
        self.params = params.append_members(members);
        self.subject = members.first().map(|(_, subject)| (*subject).clone());
        self.headers = None;
        self.is_item_tool = true;
        self
    }

    /// The same request, holding a part of a byte budget.
    pub(crate) fn with_reservation(
        mut self: Box<Self>,
        reservation: Option<Reservation>,
    ) -> Box<Self> {
        self.reservation = reservation;
        self
    }

    /// The same request with the trace context of its HTTP request.
    pub(crate) fn with_http_trace(
        mut self: Box<Self>,
        http_trace: Option<TraceContext>,
    ) -> Box<Self> {
        self.http_trace = http_trace;
        self
    }

    /// The same request with the processes it came through.
    pub(crate) fn with_path(mut self: Box<Self>, path: RequestPath) -> Box<Self> {
        self.path = path;
        self
    }

    /// The same request with the headers it came with.
    pub(crate) fn with_headers(mut self: Box<Self>, headers: HeaderMap) -> Box<Self> {
        self.headers = Some(headers);
        self
    }

    /// The name, URI or task ID of the request.
    pub(crate) fn subject(&self) -> Option<Cow<'_, str>> {
        self.subject.as_ref()?.as_str()
    }

    /// Whether the client sent a progress token.
    pub(crate) fn wants_progress(&self) -> bool {
        self.meta.progress_token.is_some()
    }

    /// Refuses a progress token longer than a request ID: every progress notification repeats it.
    pub(crate) fn check_progress_token(&self) -> Result<(), RpcError> {
        let is_long = |token: &Raw| token.bytes().len() > MAX_ID_BYTES;
        match self.meta.progress_token.as_ref().is_some_and(is_long) {
            true => Err(invalid(&format!("`progressToken` may have {MAX_ID_BYTES} bytes"))),
            false => Ok(()),
        }
    }

    /// The lowest level of log messages that a modern client wants.
    pub(crate) fn level(&self) -> Result<Option<LogLevel>, RpcError> {
        let Some(level) = &self.meta.level else { return Ok(None) };
        let level = level.as_str().and_then(|level| LogLevel::parse(&level));
        level.map(Some).ok_or_else(|| invalid("the log level is not one of syslog"))
    }
}

impl RequestMeta {
    fn of(meta: Option<Raw>) -> Self {
        let [version, capabilities, info, level, progress_token] = match meta {
            Some(meta) => meta.get_all([
                meta::PROTOCOL_VERSION,
                meta::CLIENT_CAPABILITIES,
                meta::CLIENT_INFO,
                meta::LOG_LEVEL,
                meta::PROGRESS_TOKEN,
            ]),
            None => [const { None }; 5],
        };
        Self { version, capabilities, info, progress_token, level }
    }
}

/// Whether a request uses any part of the modern form, complete or not.
pub(crate) fn claims_modern(incoming: &IncomingRequest) -> bool {
    let meta = &incoming.meta;
    &*incoming.method == "server/discover" || meta.version.is_some() || meta.capabilities.is_some()
}

/// The client of a request, as it describes itself.
#[derive(Debug)]
pub(crate) struct ClientProfile {
    pub(crate) era: Era,
    pub(crate) version: Box<str>,
    /// The capabilities it declares, an object.
    pub(crate) capabilities: Raw,
    /// Its `clientInfo`.
    pub(crate) info: Option<Raw>,
    /// Its name with its version, once it was needed.
    name: OnceLock<Option<Arc<str>>>,
}

impl ClientProfile {
    pub(crate) fn new(era: Era, version: Box<str>, capabilities: Raw, info: Option<Raw>) -> Self {
        Self { era, version, capabilities, info, name: OnceLock::new() }
    }

    /// Name and version of the client, as it describes itself, for logs.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.get_or_init(|| client_name(self.info.as_ref()?)).as_ref()
    }

    /// The client of a modern request. Fails if `_meta` lacks a required member.
    pub(crate) fn of_request(meta: &RequestMeta) -> Result<Self, RpcError> {
        let version = meta.version.as_ref().and_then(Raw::as_str);
        let version = version.ok_or_else(|| missing_meta(meta::PROTOCOL_VERSION, "a text"))?.into();
        let capabilities = meta.capabilities.clone().filter(Raw::is_object);
        let capabilities =
            capabilities.ok_or_else(|| missing_meta(meta::CLIENT_CAPABILITIES, "an object"))?;
        let client = Self::new(Era::Modern, version, capabilities, meta.info.clone());
        client.within_bounds()
    }

    /// The client that opens a legacy session.
    pub(crate) fn of_initialize(params: &Raw) -> Result<Self, RpcError> {
        let [requested, capabilities, info] =
            params.get_all(["protocolVersion", "capabilities", "clientInfo"]);
        let requested = requested.as_ref().and_then(Raw::as_str);
        let version = negotiated(requested.as_deref()).as_str().into();
        let capabilities = capabilities.filter(Raw::is_object).unwrap_or_else(Raw::empty_object);
        let client = Self::new(Era::Legacy, version, capabilities, info);
        // The session outlives the bytes of this request.
        client.within_bounds().map(|client| client.detached())
    }

    fn within_bounds(self) -> Result<Self, RpcError> {
        let is_short = |raw: &Raw| raw.bytes().len() <= MAX_IDENTITY_BYTES;
        if is_short(&self.capabilities) && self.info.as_ref().is_none_or(is_short) {
            return Ok(self);
        }
        let kibibytes = MAX_IDENTITY_BYTES / 1024;
        Err(invalid(&format!(
            "`clientInfo` and `capabilities` may have {kibibytes} KiB each, not more"
        )))
    }

    /// A copy that does not keep the bytes of the request alive.
    pub(crate) fn detached(&self) -> Self {
        let (capabilities, info) = (self.capabilities.detached(), self.info.as_ref());
        Self::new(self.era, self.version.clone(), capabilities, info.map(Raw::detached))
    }

    /// Bytes that a session keeps of `capabilities` and `clientInfo`: each also as a part of [`meta`](Self::meta).
    pub(crate) fn bytes(&self) -> usize {
        let info = self.info.as_ref().map_or(0, |info| info.bytes().len());
        2 * (self.capabilities.bytes().len() + info)
    }

    /// The `_meta` of a legacy client for modern servers.
    pub(crate) fn meta(&self, level: Option<LogLevel>) -> Raw {
        client_meta(&self.capabilities, self.info.as_ref(), level)
    }

    /// Whether it declares a capability, at a path such as `["elicitation", "url"]`.
    pub(crate) fn declares(&self, path: &[&str]) -> bool {
        let first = Some(self.capabilities.clone());
        path.iter().fold(first, |value, key| value?.get(key)).is_some()
    }
}

/// The version in the `initialize` result: the requested one if it is legacy, else the newest
/// legacy.
fn negotiated(requested: Option<&str>) -> ProtocolVersion {
    let requested = requested.and_then(ProtocolVersion::parse);
    let requested = requested.filter(|version| version.era() == Era::Legacy);
    requested.unwrap_or(ProtocolVersion::LATEST_LEGACY)
}

fn missing_meta(key: &str, kind: &str) -> RpcError {
    invalid(&format!("`params._meta` must hold `{key}`, {kind}"))
}

#[cfg(test)]
mod tests {
    use trunkline::protocol::code;

    use super::*;

    fn request(method: &str, params: &str) -> Box<IncomingRequest> {
        let params = Some(Raw::from_text(params).unwrap());
        IncomingRequest::of(Request { id: Id::number(1), method: method.into(), params })
    }

    #[test]
    fn a_request_is_modern_if_it_declares_anything_of_that_generation() {
        assert!(!claims_modern(&request("tools/list", "{}")));
        assert!(claims_modern(&request("server/discover", "{}")));
        let half = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let half = request("tools/list", half);
        assert!(claims_modern(&half));
        assert_eq!(ClientProfile::of_request(&half.meta).unwrap_err().code(), code::INVALID_PARAMS);
    }

    #[test]
    fn a_legacy_client_gets_the_revision_it_asks_for_or_our_newest() {
        let client =
            |params| ClientProfile::of_initialize(&Raw::from_text(params).unwrap()).unwrap();
        assert_eq!(&*client(r#"{"protocolVersion":"2025-06-18"}"#).version, "2025-06-18");
        assert_eq!(&*client(r#"{"protocolVersion":"1999-01-01"}"#).version, "2025-11-25");
        let offers = client(r#"{"capabilities":{"elicitation":{"url":{}}}}"#);
        assert!(offers.declares(&["elicitation", "url"]) && !offers.declares(&["sampling"]));
    }

    #[test]
    fn client_info_is_bounded() {
        let long = Raw::from_string(&"x".repeat(MAX_IDENTITY_BYTES));
        for key in ["clientInfo", "capabilities"] {
            let params = Raw::empty_object().with(key, &Raw::empty_object().with("x", &long));
            let refused = ClientProfile::of_initialize(&params).unwrap_err();
            assert_eq!(refused.code(), code::INVALID_PARAMS, "{refused:?}");
        }
    }
}
