//! Filters log messages by level.

use trunkline::connection::LogLevel;
use trunkline::message::{Notification, Raw};

/// Whether a log message has at least this level.
pub(crate) fn is_wanted(notification: &Notification, from: Option<LogLevel>) -> bool {
    let Some(from) = from else { return false };
    let level = notification.params.as_ref().and_then(|params| params.get("level"));
    let level = level.as_ref().and_then(Raw::as_str).and_then(|level| LogLevel::parse(&level));
    // A message without a level may be severe.
    level.is_none_or(|level| level >= from)
}
