//! Shows a long result in the pager of the user.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Shows a text in a pager until the user ends it. Returns `false` if there is no such program.
pub(super) fn show(command: &str, text: &str) -> bool {
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return false };
    let started = Command::new(program).args(words).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = started else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // The user may end it before all of the text is read.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().is_ok()
}
