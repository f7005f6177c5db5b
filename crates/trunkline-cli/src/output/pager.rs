//! Shows a long result in the pager of the user.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Shows a text in a pager until the user ends it. Returns `false` if it fails, so that the text is printed instead.
pub(super) fn show(command: &str, text: &str) -> bool {
    let started = pager(command).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = started else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // The user may end it before all of the text is read.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().is_ok_and(|status| status.success())
}

/// The command as a shell reads it, since it may have quotes.
#[cfg(unix)]
fn pager(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]);
    shell
}

#[cfg(not(unix))]
fn pager(command: &str) -> Command {
    let mut words = command.split_whitespace();
    let mut pager = Command::new(words.next().unwrap_or_default());
    pager.args(words);
    pager
}
