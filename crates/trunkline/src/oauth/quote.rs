//! Text of an authorization server, for messages.

use crate::config::{Secret, escape_control};
use crate::transport::SecretMask;

/// Longest text of an authorization server in a message, in characters.
const MAX_QUOTED: usize = 200;

/// Text of an authorization server for a message, without these secrets, on one line, short.
pub(super) fn quoted(text: &str, secrets: Vec<Secret>) -> String {
    let masked = SecretMask::with_parts(secrets).masked(text);
    let line = escape_control(&masked);
    match line.char_indices().nth(MAX_QUOTED).and_then(|(end, _)| line.get(..end)) {
        Some(head) => format!("{head}…"),
        None => line,
    }
}
