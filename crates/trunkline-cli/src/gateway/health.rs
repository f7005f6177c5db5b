//! Reports failures and recoveries of servers while a gateway runs, once each (CON-4, CON-5).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::iter;
use std::time::Duration;

use tokio::time::sleep;
use trunkline::config::{Server, Transport, escape_control};
use trunkline::connection::{State, Status};
use trunkline::host::{DedicatedServerFailure, Host};
use trunkline::name::ServerName;
use trunkline::registry::StatusChange;

use crate::host::command_host;
use crate::host::server_status::restarts;
use crate::host::unmatched::UnmatchedNames;
use crate::output::terminal::Terminal;

/// Lines of a server's stderr that are shown; `trunkline status --format json` has more.
const MAX_LINES: usize = 3;

/// Messages per failure, however many attempts fail with different errors.
const MAX_SAID: usize = 3;

/// Changes in this time are reported together. While many servers start, each change of one would wake the task that
/// reports them.
const BETWEEN_REPORTS: Duration = Duration::from_millis(10);

/// Reports the health of servers, forever.
pub(crate) async fn report_on(host: &Host, terminal: &Terminal) -> Infallible {
    let mut changes = host.servers().watch();
    let mut own = host.dedicated_failures();
    let (mut failures, mut names) = (Failures::default(), UnmatchedNames::default());
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            end = own.recv() => {
                // A missed event is one line of many.
                if let Ok(end) = end {
                    terminal.warn(&dedicated_failure(&end));
                }
                continue;
            }
        };
        let Some(change) = change else { break };
        command_host::report_orphans(&host.take_orphans(), terminal);
        let mut ready = Vec::new();
        // Those that became ready meanwhile are one step: each looks at the names of all servers.
        let changes = iter::once(change).chain(iter::from_fn(|| changes.try_next()));
        for change in changes {
            if change.status.as_ref().is_some_and(|status| status.state == State::Ready) {
                ready.push(change.server.clone());
            }
            match failures.on_change(change, host) {
                Some(HealthEvent::Failed(text)) => terminal.warn(&text),
                Some(HealthEvent::Back(text)) => terminal.tell(&format!("{text}\n")),
                None => {}
            }
        }
        if !ready.is_empty() {
            names.report_of(&ready, host, terminal).await;
        }
        sleep(BETWEEN_REPORTS).await;
    }
    // The channel is closed: there will be no servers any more.
    std::future::pending().await
}

/// A change that is reported.
#[derive(Debug, PartialEq, Eq)]
enum HealthEvent {
    Failed(String),
    Back(String),
}

/// The failed servers, with the messages reported since each was ready.
#[derive(Default)]
struct Failures(BTreeMap<ServerName, Vec<(String, bool)>>);

impl Failures {
    /// The event to report for a change, if any.
    fn on_change(&mut self, change: StatusChange, host: &Host) -> Option<HealthEvent> {
        let connection = host.servers().get(change.server.as_str());
        let (Some(mut status), Some(connection)) = (change.status, connection) else {
            self.0.remove(&change.server);
            return None;
        };
        if status.state == State::Failed {
            status.stderr = connection.status().stderr;
        }
        self.news(connection.server(), &status)
    }

    /// The event to report for a server, if any. Another failure with the same error is not one.
    fn news(&mut self, server: &Server, status: &Status) -> Option<HealthEvent> {
        match status.state {
            State::Ready => {
                self.0.remove(&server.name)?;
                let name = escape_control(server.name.as_str());
                Some(HealthEvent::Back(format!("server `{name}` is ready again")))
            }
            State::Failed => {
                let error = status.last_error.as_ref()?;
                let finding = (error.message().to_owned(), status.next_attempt.is_some());
                let said = self.0.entry(server.name.clone()).or_default();
                if said.len() >= MAX_SAID || said.contains(&finding) {
                    return None;
                }
                said.push(finding);
                Some(HealthEvent::Failed(described(server, status)))
            }
            State::Idle | State::Starting | State::Stopped => None,
        }
    }
}

/// Describes a failure in a few lines: error, hint, last stderr lines, and next attempt.
fn described(server: &Server, status: &Status) -> String {
    let error = status.last_error.as_ref();
    let mut lines: Vec<_> =
        error.map(|error| escape_control(&error.to_string())).into_iter().collect();
    let hint = error.and_then(|error| error.hint());
    lines.extend(hint.map(escape_control));
    let last = &status.stderr[status.stderr.len().saturating_sub(MAX_LINES)..];
    // The hint may contain these lines already.
    let is_unsaid = |line: &&String| !hint.is_some_and(|hint| hint.contains(line.as_str()));
    lines.extend(
        last.iter().filter(is_unsaid).map(|line| format!("it said: {}", escape_control(line))),
    );
    lines.push(restarts(status).unwrap_or_else(|| fate(server).to_owned()));
    lines.join("\n  ")
}

/// Describes the failure of a dedicated server in one line, because there may be many of them.
fn dedicated_failure(end: &DedicatedServerFailure) -> String {
    let name = escape_control(end.server.as_str());
    let fate = match end.is_replaced {
        true => "another one takes its place when that client calls again",
        false => "it is tried again by itself",
    };
    format!("server `{name}` of one client: {}; {fate}", escape_control(end.error.message()))
}

/// The outlook of a server that is not restarted automatically.
fn fate(server: &Server) -> &'static str {
    match server.transport {
        Transport::Stdio(_) => "it stays down until its entry is changed, or all is started again",
        Transport::Remote(_) => "it is tried again when it is needed",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use trunkline::config;
    use trunkline::error::{Error, ErrorKind};

    use super::*;

    fn server(entry: &str) -> Server {
        let text = format!(r#"{{ "mcpServers": {{ "s": {entry} }} }}"#);
        config::parse("test", text).config.server("s").unwrap().clone()
    }

    fn failed(server: &Server, message: &str) -> Status {
        let error = Error::new(ErrorKind::Exited, message).of(&server.name);
        Status { state: State::Failed, last_error: Some(error), ..Status::default() }
    }

    fn ready() -> Status {
        Status { state: State::Ready, ..Status::default() }
    }

    #[test]
    fn failure_and_recovery_are_reported_once() {
        let server = server(r#"{ "command": "x" }"#);
        let mut failures = Failures::default();
        assert_eq!(failures.news(&server, &ready()), None, "no failure was reported before");
        let starting = Status { state: State::Starting, ..failed(&server, "it ended") };
        for round in 0..2 {
            let news = failures.news(&server, &failed(&server, "it ended"));
            assert!(matches!(&news, Some(HealthEvent::Failed(text)) if text.contains("it ended")));
            assert_eq!(failures.news(&server, &starting), None);
            assert_eq!(failures.news(&server, &failed(&server, "it ended")), None, "{round}");
            let back = HealthEvent::Back("server `s` is ready again".to_owned());
            assert_eq!(failures.news(&server, &ready()), Some(back));
        }
    }

    #[test]
    fn last_attempt_is_reported_and_reports_are_bounded() {
        let server = server(r#"{ "command": "x", "restart": "on-failure" }"#);
        let mut failures = Failures::default();
        let next_attempt = Some(Instant::now());
        let again = Status { next_attempt, restarts: 1, ..failed(&server, "it ended") };
        assert!(failures.news(&server, &again).is_some());
        assert_eq!(failures.news(&server, &Status { restarts: 2, ..again.clone() }), None);
        let over = Status { restarts: 5, ..failed(&server, "it ended") };
        let Some(HealthEvent::Failed(text)) = failures.news(&server, &over) else { panic!() };
        assert!(text.ends_with("\n  it was started again 5 times, and is not any more"), "{text}");
        let said =
            (0..100).filter_map(|it| failures.news(&server, &failed(&server, &it.to_string())));
        assert_eq!(said.count(), 1);
    }

    #[test]
    fn last_words_are_shown_where_the_hint_does_not_repeat_them() {
        let server = server(r#"{ "url": "http://127.0.0.1:1/mcp" }"#);
        let error = Error::new(ErrorKind::ProtocolViolation, "no")
            .of(&server.name)
            .with_hint("it said: three");
        let stderr = ["one", "two", "three", "\u{1b}four"].map(str::to_owned).into();
        let status = Status { last_error: Some(error), stderr, ..failed(&server, "") };
        assert_eq!(
            described(&server, &status),
            "server `s`: no\n  it said: three\n  it said: two\n  it said: \u{fffd}four\n  \
             it is tried again when it is needed"
        );
    }
}
