//! Adds context to errors: the reason on standard error, and output that is not MCP.

use std::time::Duration;

use super::stderr_reason::reason_lines;
use crate::error::{Error, ErrorKind};

/// Adds a hint to an error that has none: the lines of standard error that contain the reason, and
/// the number of lines of output that were no messages (CON-4).
pub(in crate::connection) fn with_stderr(error: Error, lines: &[String], noise: u64) -> Error {
    let is_strange = matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::ProtocolViolation);
    hinted(error, lines, noise, is_strange)
}

/// The same for a server that is known to speak MCP: it has been initialized.
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

/// The error of a handshake that timed out.
pub(in crate::connection) fn start_timeout(bound: Duration) -> Error {
    let message = format!("it did not answer in time: `timeouts.handshake` is {bound:?}");
    Error::new(ErrorKind::TimedOut, message)
}

/// The error of a list request that timed out.
pub(in crate::connection) fn list_timeout(bound: Duration) -> Error {
    let message = format!("it did not list what it has in time: `timeouts.list` is {bound:?}");
    Error::new(ErrorKind::TimedOut, message)
}

/// Adds the lines of standard error that contain the reason as a hint.
pub(in crate::connection) fn with_stderr_lines(error: Error, lines: &[String]) -> Error {
    let lines = reason_lines(lines);
    match lines.is_empty() {
        true => error,
        false => error.with_hint(format!("it said: {}", lines.join(" | "))),
    }
}

/// Adds a hint to the error of a server that exited without output: its command may print more in a
/// terminal.
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
    fn stderr_becomes_the_hint() {
        assert_eq!(hint(ErrorKind::Exited, &[], 0), None);
        let lines = ["a", "b", "c", "d"];
        assert_eq!(hint(ErrorKind::Exited, &lines, 0).unwrap(), "it said: b | c | d");
        assert_eq!(hint(ErrorKind::TimedOut, &lines[..1], 0).unwrap(), "it said: a");
        assert_eq!(hint(ErrorKind::ProtocolViolation, &[], 0).unwrap(), "is this an MCP server?");
    }

    #[test]
    fn exit_without_stderr_has_a_hint() {
        let silent = with_next_step(Error::new(ErrorKind::Exited, "x"));
        assert!(silent.hint().unwrap().contains("run its command"), "{silent:?}");
        let said = Error::new(ErrorKind::Exited, "x").with_hint("it said: a");
        assert_eq!(with_next_step(said.clone()), said);
    }

    #[test]
    fn invalid_output_is_reported() {
        let said = hint(ErrorKind::TimedOut, &["a"], 2).unwrap();
        let expected = "2 lines of its output are not MCP; is this an MCP server?; it said: a";
        assert_eq!(said, expected);
        assert_eq!(hint(ErrorKind::Exited, &[], 1).unwrap(), "a line of its output is not MCP");
        let error = Error::new(ErrorKind::TimedOut, "x").with_hint("do this");
        assert_eq!(with_stderr(error.clone(), &[], 7), error);
    }
}
