//! The response to a relayed request that failed: one table by failure, method and era.

use std::time::Duration;

use serde_json::json;
use trunkline::call::{CallError, CallErrorKind, NoResult};
use trunkline::config::escape_control;
use trunkline::error::Error;
use trunkline::host::{LoginLink, RelayMethod};
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::{Era, code};

use crate::client::parked::ResumeError;
use crate::client::state_codec::OpenError;
use crate::request::errors::{invalid, missing_capability, unknown_task};
use crate::request::incoming::ClientProfile;
use crate::request::response::{ResultBody, RpcResult};
use crate::request::translate;

/// The legacy error code for an unknown resource.
const NO_SUCH_RESOURCE: i64 = -32002;

/// Why a relayed request has no result of its server.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    message: String,
    is_retryable: bool,
}

#[derive(Debug)]
enum FailureKind {
    /// The server responded with an error.
    Refused(RpcError),
    /// The caller sees no such item. The hint says how to change that.
    Unknown { hint: Option<String> },
    /// The parameters are invalid.
    BadArguments,
    /// The server did not respond, or could not be called.
    NoResult(NoResult),
    /// The server failed before it listed the item.
    Unlisted,
}

impl Failure {
    /// A server that failed before it listed its items.
    pub(crate) fn unlisted(error: &Error, may_return: bool) -> Self {
        let kind = FailureKind::Unlisted;
        let message = match error.server() {
            Some(server) => format!("server `{server}`: {}", error.message_with_login()),
            None => error.message_with_login().into_owned(),
        };
        Self { kind, message, is_retryable: may_return }
    }

    /// A server that needs a login, with the link for a client that opens URLs.
    pub(crate) fn login_required(server: &ServerName, link: &LoginLink) -> Self {
        let message = format!("server `{server}` needs a login");
        let elicitation = json!({
            "mode": "url",
            "elicitationId": link.id,
            "url": link.url,
            "message": format!("Log in to the MCP server `{server}`, then try again."),
        });
        let data = Raw::from_value(&json!({ "elicitations": [elicitation] }));
        let error = RpcError::new(code::URL_ELICITATION_REQUIRED, &message).with_data(&data);
        Self { kind: FailureKind::Refused(error), message, is_retryable: false }
    }

    /// A legacy client that does not support the server request of its call.
    pub(crate) fn declined(server: Option<&ServerName>, refusal: &RpcError) -> Self {
        let server = server.map(ServerName::as_str).unwrap_or_default();
        let message = format!("server `{server}` has a question, and {}", refusal.message());
        Self { kind: FailureKind::NoResult(NoResult::Failed), message, is_retryable: false }
    }

    /// The error for a client, with the advice whether to retry.
    fn to_error(&self, code: i64, message: &str) -> RpcError {
        let data = Raw::from_value(&json!({ "retry": self.is_retryable }));
        RpcError::new(code, message).with_data(&data)
    }

    /// The error for an item that does not exist for the caller.
    fn to_unknown_item(&self, hint: Option<&str>, params: &Raw) -> RpcError {
        let error = match hint {
            Some(hint) => invalid(&format!("{}; to change that: {hint}", self.message)),
            None => invalid(&self.message),
        };
        match params.get("uri") {
            Some(uri) => error.with_data(&Raw::empty_object().with("uri", &uri)),
            None => error,
        }
    }
}

impl From<&CallError> for Failure {
    fn from(error: &CallError) -> Self {
        let kind = match (error.refusal(), error.kind()) {
            (Some(refusal), _) => FailureKind::Refused(refusal.clone()),
            (None, CallErrorKind::Unknown) => {
                FailureKind::Unknown { hint: error.hint().map(str::to_owned) }
            }
            (None, CallErrorKind::BadArguments) => FailureKind::BadArguments,
            (None, _) => FailureKind::NoResult(error.no_result()),
        };
        let message = error.message_with_login().into_owned();
        Self { kind, message, is_retryable: error.is_retryable() }
    }
}

/// The subject of a relayed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// An item of a server.
    Item(RelayMethod),
    /// An item of a server, for a tool that reads resources or gets prompts.
    ItemTool(RelayMethod),
    /// A task of a server.
    Task,
    /// Unknown: the method is not part of MCP.
    Custom,
}

/// A request that failed.
pub(crate) struct FailedRequest<'r> {
    client: &'r ClientProfile,
    subject: Subject,
    params: &'r Raw,
}

impl<'r> FailedRequest<'r> {
    /// A request for an item.
    pub(crate) fn item(
        client: &'r ClientProfile,
        (relay_method, params): (RelayMethod, &'r Raw),
    ) -> Self {
        Self { client, subject: Subject::Item(relay_method), params }
    }

    /// The same request, made by a tool, if it is.
    pub(crate) fn by_item_tool(self, is_item_tool: bool) -> Self {
        match self.subject {
            Subject::Item(relay_method) if is_item_tool => {
                Self { subject: Subject::ItemTool(relay_method), ..self }
            }
            _ => self,
        }
    }

    /// A request about a task.
    pub(crate) fn task(client: &'r ClientProfile, params: &'r Raw) -> Self {
        Self { client, subject: Subject::Task, params }
    }

    /// A request with a method that is not part of MCP.
    pub(crate) fn custom(client: &'r ClientProfile, params: &'r Raw) -> Self {
        Self { client, subject: Subject::Custom, params }
    }

    /// The response: a failed tool call has a result that a model can read, other requests have an
    /// error.
    pub(crate) fn response(&self, failure: &Failure) -> RpcResult {
        let (era, message) = (self.client.era, &*failure.message);
        match (&failure.kind, self.subject) {
            (_, Subject::ItemTool(relay_method)) => self.tool_response(relay_method, failure),
            (FailureKind::Refused(error), Subject::Item(relay_method)) => {
                let translated = self.translated(relay_method, error);
                translated.map(|result| translate::result(era, relay_method, &result))
            }
            (FailureKind::Refused(error), Subject::Custom) => {
                self.translated(RelayMethod::Call, error).map(ResultBody::from)
            }
            (FailureKind::Refused(error), Subject::Task) => Err(error.clone()),
            (FailureKind::Unknown { hint }, Subject::Item(relay_method)) => {
                let error = failure.to_unknown_item(hint.as_deref(), self.params);
                self.translated(relay_method, &error).map(ResultBody::from)
            }
            (FailureKind::Unknown { .. }, Subject::Task) => Err(unknown_task()),
            (FailureKind::BadArguments, Subject::Item(_)) => Err(invalid(message)),
            (FailureKind::Unknown { .. } | FailureKind::BadArguments, _) => {
                Err(failure.to_error(code::INVALID_PARAMS, message))
            }
            (FailureKind::NoResult(cause), Subject::Item(RelayMethod::Call)) => {
                let result = cause.result(message, failure.is_retryable);
                Ok(translate::result(era, RelayMethod::Call, &result))
            }
            (FailureKind::Unlisted, Subject::Item(RelayMethod::Call)) => {
                let result = NoResult::Unreachable.result(message, failure.is_retryable);
                Ok(translate::result(era, RelayMethod::Call, &result))
            }
            (FailureKind::NoResult(_), _) => Err(failure.to_error(code::INTERNAL_ERROR, message)),
            (FailureKind::Unlisted, _) => {
                let message = format!("MCP server unreachable: {message}");
                Err(failure.to_error(code::INTERNAL_ERROR, &message))
            }
        }
    }

    /// The result of a tool for resources or prompts: a model can read every failure, except those
    /// that its client has to handle.
    fn tool_response(&self, relay_method: RelayMethod, failure: &Failure) -> RpcResult {
        let (message, is_retryable) = (&*failure.message, failure.is_retryable);
        let result = match &failure.kind {
            FailureKind::Refused(error) => match self.translated(relay_method, error) {
                Ok(input_required) => input_required,
                Err(error) if is_for_client(&error) => return Err(error),
                Err(_) => NoResult::Failed.result(message, is_retryable),
            },
            FailureKind::Unknown { hint: Some(hint) } => {
                tool_error(&format!("{message}; to change that: {hint}"))
            }
            FailureKind::Unknown { hint: None } | FailureKind::BadArguments => tool_error(message),
            FailureKind::NoResult(cause) => cause.result(message, is_retryable),
            FailureKind::Unlisted => NoResult::Unreachable.result(message, is_retryable),
        };
        Ok(translate::result(self.client.era, RelayMethod::Call, &result))
    }

    /// An error in the era of the client. A result where that era has one in its place.
    fn translated(&self, relay_method: RelayMethod, error: &RpcError) -> Result<Raw, RpcError> {
        let Self { client, params, .. } = self;
        match (client.era, error.code()) {
            (Era::Modern, code::URL_ELICITATION_REQUIRED)
                if !client.declares(&["elicitation", "url"]) =>
            {
                let needed = json!({ "elicitation": { "url": {} } });
                Err(missing_capability(&needed, "the server wants an address visited first"))
            }
            (Era::Modern, code::URL_ELICITATION_REQUIRED) => {
                Ok(elicitations_required_result(error))
            }
            (Era::Modern, NO_SUCH_RESOURCE) if relay_method == RelayMethod::Read => {
                let data = error.raw().get("data").filter(Raw::is_object);
                let uri = params.get("uri").unwrap_or_else(|| Raw::from_string(""));
                let data = data.unwrap_or_else(Raw::empty_object).with("uri", &uri);
                Err(error.with_code(code::INVALID_PARAMS).with_data(&data))
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
}

/// Whether a client has to act on an error before the request can succeed.
fn is_for_client(error: &RpcError) -> bool {
    matches!(error.code(), code::URL_ELICITATION_REQUIRED | code::MISSING_CLIENT_CAPABILITY)
}

/// The result of a tool that cannot be used as it was called.
fn tool_error(message: &str) -> Raw {
    let content = json!([{ "type": "text", "text": escape_control(message) }]);
    Raw::from_value(&json!({ "content": content, "isError": true }))
}

/// An `InputRequiredResult` with the URL elicitations that a legacy server requires.
fn elicitations_required_result(error: &RpcError) -> Raw {
    let required = translate::required_elicitations(error);
    let method = Raw::from_string("elicitation/create");
    let requests = required.iter().map(|elicitation| {
        let params = elicitation.without("elicitationId");
        Raw::empty_object().append_members(&[("method", &method), ("params", &params)])
    });
    let requests: Vec<_> =
        (1..).zip(requests).map(|(number, it)| (format!("visit-{number}"), it)).collect();
    let requests: Vec<_> = requests.iter().map(|(key, request)| (&**key, request)).collect();
    Raw::from_value(&json!({ "resultType": "input_required" }))
        .append_members(&[("inputRequests", &Raw::empty_object().append_members(&requests))])
}

/// Why a request state resumes no parked call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateError {
    /// It belongs to another call, or is forged.
    Foreign,
    /// Its call was resumed already, or evicted.
    Gone,
    /// Its call exceeded this wait limit.
    Late(Duration),
}

impl StateError {
    /// The reason of the codec, with the wait limit of parked calls.
    pub(crate) fn opening(error: OpenError, longest: Duration) -> Self {
        match error {
            OpenError::Foreign => Self::Foreign,
            OpenError::Late => Self::Late(longest),
        }
    }
}

impl From<ResumeError> for StateError {
    fn from(error: ResumeError) -> Self {
        match error {
            ResumeError::Gone => Self::Gone,
            ResumeError::Late(longest) => Self::Late(longest),
        }
    }
}

impl From<StateError> for RpcError {
    fn from(error: StateError) -> Self {
        let reason = match error {
            StateError::Foreign => "the request state is not one of this call".to_owned(),
            StateError::Gone => {
                "the request state was used before, or its call was given up".to_owned()
            }
            StateError::Late(longest) => format!(
                "the request state is too old: no answer came within {longest:?}, and its call was \
                 given up"
            ),
        };
        invalid(&format!("{reason}; make the call again without it"))
    }
}

#[cfg(test)]
mod tests;
