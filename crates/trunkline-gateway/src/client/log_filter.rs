//! How serious a line of a log is.

use trunkline::connection::LogLevel;
use trunkline::message::{Notification, Raw};

/// Whether a line of a log is serious enough for somebody who wants to hear from this level on.
pub(crate) fn is_wanted(notification: &Notification, from: Option<LogLevel>) -> bool {
    let Some(from) = from else { return false };
    let level = notification.params.as_ref().and_then(|params| params.get("level"));
    let level = level.as_ref().and_then(Raw::as_str).and_then(|level| LogLevel::parse(&level));
    // One that does not say how serious it is may be.
    level.is_none_or(|level| level >= from)
}
