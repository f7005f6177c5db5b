//! Decides whether a retry can succeed after an error of a server.

use super::status::{State, Status};
use crate::config::{Restart, Transport};
use crate::error::ErrorKind;

/// Whether a request that failed with this kind of error may succeed later without intervention.
///
/// A remote server is retried whenever it is needed. A process that has exited is restarted only
/// where the configuration permits it (CON-5).
pub(in crate::connection) fn is_retryable(
    (transport, restart): (&Transport, Restart),
    status: &Status,
    kind: ErrorKind,
) -> bool {
    match transport {
        // The host may have started it again by then.
        _ if kind == ErrorKind::ShuttingDown => true,
        Transport::Stdio(_) if status.state == State::Failed => status.next_attempt.is_some(),
        // Its exit may not have been published yet.
        Transport::Stdio(_) if kind == ErrorKind::Exited => restart != Restart::Never,
        _ => kind.is_retryable(),
    }
}

/// Whether a server that is unavailable may recover without intervention.
pub(in crate::connection) fn will_recover(server: (&Transport, Restart), status: &Status) -> bool {
    match (status.state, &status.last_error) {
        (State::Failed, Some(error)) => is_retryable(server, status, error.kind()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::config::{self, Server};
    use crate::error::Error;

    fn server(entry: &str) -> Server {
        let text = format!(r#"{{ "mcpServers": {{ "s": {entry} }} }}"#);
        config::parse("test", text).config.server("s").unwrap().clone()
    }

    fn of(server: &Server) -> (&Transport, Restart) {
        (&server.transport, server.behaviour.restart)
    }

    fn failed(kind: ErrorKind) -> Status {
        let last_error = Some(Error::new(kind, "it failed"));
        Status { state: State::Failed, last_error, ..Status::default() }
    }

    fn ready() -> Status {
        Status { state: State::Ready, ..Status::default() }
    }

    #[test]
    fn a_process_comes_back_only_where_that_is_configured() {
        let never = server(r#"{ "command": "x", "restart": "never" }"#);
        let again = server(r#"{ "command": "x", "restart": "on-failure" }"#);
        let exited = ErrorKind::Exited;
        for status in [failed(exited), ready()] {
            assert!(!is_retryable(of(&never), &status, exited), "{status:?}");
        }
        assert!(
            !will_recover(of(&never), &failed(ErrorKind::TimedOut)),
            "it did not start in time"
        );
        assert!(is_retryable(of(&again), &ready(), exited));
        assert!(!will_recover(of(&again), &failed(exited)), "it was tried often enough");
        let next_attempt = Some(Instant::now());
        assert!(will_recover(of(&again), &Status { next_attempt, ..failed(exited) }));
    }

    #[test]
    fn url_failures_are_retryable() {
        let remote = server(r#"{ "url": "http://127.0.0.1:1/mcp" }"#);
        for kind in [ErrorKind::Unreachable, ErrorKind::Broken, ErrorKind::HttpStatus(503)] {
            assert!(will_recover(of(&remote), &failed(kind)), "{kind:?}");
        }
        for kind in [ErrorKind::Unauthorized, ErrorKind::HttpStatus(404), ErrorKind::MissingSecret]
        {
            assert!(!will_recover(of(&remote), &failed(kind)), "{kind:?}");
        }
    }

    #[test]
    fn retryability_of_a_ready_server_follows_the_error_kind() {
        let server = server(r#"{ "command": "x" }"#);
        assert!(is_retryable(of(&server), &ready(), ErrorKind::TimedOut));
        assert!(!is_retryable(of(&server), &ready(), ErrorKind::TooLarge));
        assert!(is_retryable(of(&server), &ready(), ErrorKind::Busy));
        assert!(is_retryable(of(&server), &ready(), ErrorKind::ShuttingDown));
        let starting = Status { state: State::Starting, ..Status::default() };
        assert!(will_recover(of(&server), &starting));
    }
}
