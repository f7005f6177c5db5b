//! The record of a request that has ended, for observers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use trunkline::call::{CallError, CallErrorKind};
use trunkline::error::ErrorKind;
use trunkline::message::Raw;
use trunkline::name::{ConversationName, ServerName};

use super::trace_context::TraceContext;

/// Characters of a name that are logged.
const MAX_NAME_CHARS: usize = 128;

/// Receives a record of every request that has ended. Called on the task of the request, so it must not block.
pub trait RequestObserver: Send + Sync {
    /// A request was received; [`on_request`](Self::on_request) follows when it has ended.
    fn on_start(&self) {}

    /// A request has ended.
    fn on_request(&self, record: RequestRecord);

    /// Whether requests get a trace context of their own, which is passed on to servers in `_meta`. Otherwise that of
    /// the client is passed on as it is.
    fn is_tracing(&self) -> bool {
        false
    }
}

/// A request of a client that has ended.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// When it was received.
    pub started: SystemTime,
    /// From then until the response was ready.
    pub duration: Duration,
    /// The part of it in which the gateway waited for the server, including the server's own time.
    pub upstream: Duration,
    /// The MCP method.
    pub method: Box<str>,
    /// The exposed name of the tool or prompt, or the URI of the resource without credentials. For a tool of the
    /// gateway itself, such as `trunkline_call`, the item behind it.
    pub subject: Option<Box<str>>,
    /// The server that it was relayed to.
    pub server: Option<ServerName>,
    /// Name and version of the client, as it describes itself.
    pub client: Option<Arc<str>>,
    /// The name of its token.
    pub token: Option<Box<str>>,
    /// The conversation that it belongs to.
    pub conversation: Option<ConversationName>,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// The code of the error response.
    pub code: Option<i64>,
    /// Its parameters as received. They may contain secrets.
    pub params: Raw,
    /// Its result. It may contain secrets.
    pub result: Option<Raw>,
    /// Its spans, if the observer traces.
    pub trace: Option<RequestTrace>,
}

/// The spans of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTrace {
    /// The span of the request itself.
    pub server: TraceContext,
    /// The span that it is part of: that in `_meta`, or else that of the HTTP request.
    pub parent: Option<TraceContext>,
    /// The span of the HTTP request, if `_meta` names another.
    pub link: Option<TraceContext>,
    /// The span of the request to the server, and when it began.
    pub client: Option<(TraceContext, SystemTime)>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestOutcome {
    /// With a result.
    Ok,
    /// With a result that declares `isError`: the tool ran and failed.
    ToolError,
    /// With an error response of the server, or for a request that is invalid.
    RpcError,
    /// The server did not respond in time.
    Timeout,
    /// The client cancelled it, or is gone.
    Cancelled,
    /// The server is down, or ended before it responded.
    Unavailable,
    /// The caller does not see such an item.
    Denied,
}

impl RequestOutcome {
    /// All outcomes.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::ToolError,
        Self::RpcError,
        Self::Timeout,
        Self::Cancelled,
        Self::Unavailable,
        Self::Denied,
    ];

    /// The outcome of a request that ended with this error.
    pub fn of_error(error: &CallError) -> Self {
        match error.kind() {
            CallErrorKind::Unknown => Self::Denied,
            CallErrorKind::Unavailable => Self::Unavailable,
            CallErrorKind::BadArguments | CallErrorKind::Refused(_) => Self::RpcError,
            CallErrorKind::Failed(ErrorKind::TimedOut) => Self::Timeout,
            CallErrorKind::Failed(_) => Self::Unavailable,
        }
    }

    /// The name of the outcome, for labels and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::RpcError => "rpc_error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
        }
    }
}

/// The name and version of a client, as it describes itself.
pub(super) fn client_name(info: &Raw) -> Option<Arc<str>> {
    let text = |key| info.get(key).as_ref().and_then(Raw::as_str).map(Cow::into_owned);
    let name = text("name")?;
    let name = match text("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    };
    Some(cut(&name).into())
}

/// The first characters of a name.
pub(crate) fn cut(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()).into(),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(cut(&"é".repeat(500)).chars().count(), MAX_NAME_CHARS + 1);
        assert_eq!(cut("short"), "short");
    }
}
