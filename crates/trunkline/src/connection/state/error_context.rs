//! What to say of a server beside what went wrong: its last words, and what of them was no message.

use std::time::Duration;

use super::stderr_reason::reason_lines;
use crate::error::{Error, ErrorKind};

/// An error with what the server said as its hint, if it has no other: the lines of its standard error
/// that say why, and how many lines of its output were no messages (CON-4).
pub(in crate::connection) fn with_stderr(error: Error, lines: &[String], noise: u64) -> Error {
    let is_strange = matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::ProtocolViolation);
    hinted(error, lines, noise, is_strange)
}

/// The same of a server that is known to speak MCP: it has been initialised.
pub(in crate::connection) fn with_server_stderr(
    error: Error,
    lines: &[String],
    noise: u64,
) -> Error {
    hinted(error, lines, noise, false)
}

fn hinted(error: Error, lines: &[String], noise: u64, is_strange: bool) -> Error {
    if error.hint().is_some() {
        return error;
    }
    let noise = match noise {
        0 => None,
        1 => Some("a line of its output is not MCP".to_owned()),
        count => Some(format!("{count} lines of its output are not MCP")),
    };
    let lines = reason_lines(lines);
    let said = (!lines.is_empty()).then(|| format!("it said: {}", lines.join(" | ")));
    let asks = is_strange && (noise.is_some() || said.is_none());
    let question = asks.then(|| "is this an MCP server?".to_owned());
    let parts: Vec<_> = [noise, question, said].into_iter().flatten().collect();
    match parts.is_empty() {
        true => error,
        false => error.with_hint(parts.join("; ")),
    }
}

/// That a server did not open the conversation within its bound.
pub(in crate::connection) fn start_timeout(bound: Duration) -> Error {
    let message = format!("it did not answer in time: `timeouts.handshake` is {bound:?}");
    Error::new(ErrorKind::TimedOut, message)
}

/// That a server did not list what it has within its bound.
pub(in crate::connection) fn list_timeout(bound: Duration) -> Error {
    let message = format!("it did not list what it has in time: `timeouts.list` is {bound:?}");
    Error::new(ErrorKind::TimedOut, message)
}

/// An error with the lines of a server's standard error that say why as its hint.
pub(in crate::connection) fn with_stderr_lines(error: Error, lines: &[String]) -> Error {
    let lines = reason_lines(lines);
    match lines.is_empty() {
        true => error,
        false => error.with_hint(format!("it said: {}", lines.join(" | "))),
    }
}

/// An error of a server that did not start, with what to do about it if nothing else says so: who ends
/// without a word may have one for a person.
pub(in crate::connection) fn with_next_step(error: Error) -> Error {
    match (error.kind(), error.hint()) {
        (ErrorKind::Exited, None) => error.with_hint(
            "it said nothing on standard error: run its command in a terminal, which may show more",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(kind: ErrorKind, lines: &[&str], noise: u64) -> Option<String> {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        with_stderr(Error::new(kind, "x"), &lines, noise).hint().map(str::to_owned)
    }

    #[test]
    fn what_a_server_said_is_its_hint() {
        assert_eq!(hint(ErrorKind::Exited, &[], 0), None);
        let lines = ["a", "b", "c", "d"];
        assert_eq!(hint(ErrorKind::Exited, &lines, 0).unwrap(), "it said: b | c | d");
        assert_eq!(hint(ErrorKind::TimedOut, &lines[..1], 0).unwrap(), "it said: a");
        assert_eq!(hint(ErrorKind::ProtocolViolation, &[], 0).unwrap(), "is this an MCP server?");
    }

    #[test]
    fn who_ends_without_a_word_leaves_something_to_do() {
        let silent = with_next_step(Error::new(ErrorKind::Exited, "x"));
        assert!(silent.hint().unwrap().contains("run its command"), "{silent:?}");
        let said = Error::new(ErrorKind::Exited, "x").with_hint("it said: a");
        assert_eq!(with_next_step(said.clone()), said);
    }

    #[test]
    fn output_that_is_no_message_is_said() {
        let said = hint(ErrorKind::TimedOut, &["a"], 2).unwrap();
        let expected = "2 lines of its output are not MCP; is this an MCP server?; it said: a";
        assert_eq!(said, expected);
        assert_eq!(hint(ErrorKind::Exited, &[], 1).unwrap(), "a line of its output is not MCP");
        let error = Error::new(ErrorKind::TimedOut, "x").with_hint("do this");
        assert_eq!(with_stderr(error.clone(), &[], 7), error);
    }
}
