//! Sends `logging/setLevel` to legacy servers. Modern requests carry the log level themselves.

use serde_json::json;

use super::list_refresh::InternalRequests;
use crate::connection::session::Session;
use crate::connection::state::log_level::{LogLevel, RequestedLogLevel};
use crate::connection::state::status::ServerDescription;
use crate::message::Raw;
use crate::protocol::Era;

/// The log level that was requested in this session.
pub(super) struct LogLevelSync {
    is_offered: bool,
    asked: Option<LogLevel>,
}

impl LogLevelSync {
    pub(super) fn of(session: &Session, described: &ServerDescription) -> Self {
        let capabilities = described.capabilities.as_ref();
        let declared = capabilities.and_then(|capabilities| capabilities.get("logging"));
        let is_legacy = session.version.era() == Era::Legacy;
        Self { is_offered: is_legacy && declared.is_some(), asked: None }
    }

    /// Requests a lower level than before, without waiting for the response.
    pub(super) fn request_level(
        &mut self,
        session: &mut Session,
        asking: InternalRequests<'_>,
        (level, requester): RequestedLogLevel,
    ) {
        let is_more = self.asked.is_none_or(|asked| level < asked);
        if !is_more || !self.is_offered {
            return;
        }
        self.asked = Some(level);
        let params = Raw::from_value(&json!({ "level": level.as_str() }));
        drop(asking.request_for(requester, session, "logging/setLevel", Some(params)));
    }
}
