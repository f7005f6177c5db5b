//! The status of a server, as text and as JSON: of one that runs or failed, and of one that is never started.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use trunkline::config::{Config, Server, escape_control};
use trunkline::connection::{State, Status};
#[cfg(unix)]
use trunkline::host::Host;
use trunkline::message::Raw;
use trunkline::name::ServerName;

use crate::config::consent;
use crate::output::report;

/// The error of a server whose entry is invalid.
const BROKEN: &str = "its entry has errors";

/// The state of a server whose file is not trusted, and the reason why it is not started.
const NOT_TRUSTED: &str = "not-trusted";
const HELD: &str = "its configuration file is not trusted yet";

/// The state of a server that is disabled in the configuration, and the reason why it is not
/// started.
const DISABLED: &str = "disabled";
const SWITCHED_OFF: &str = "switched off in the configuration";

/// A server that is never started, with the reason (CON-11).
pub(crate) struct UnstartedServer<'c> {
    pub(crate) name: &'c ServerName,
    pub(crate) state: &'static str,
    pub(crate) reason: &'static str,
    /// The transport; unknown if the entry has errors.
    pub(crate) transport: Option<&'static str>,
    /// Its entry, unless that has errors.
    server: Option<&'c Server>,
}

/// The servers with invalid entries, then those of untrusted files, then the disabled ones.
pub(crate) fn unstarted(config: &Config) -> Vec<UnstartedServer<'_>> {
    let broken = config.broken().iter().map(|name| UnstartedServer {
        name,
        state: State::Failed.as_str(),
        reason: BROKEN,
        transport: None,
        server: None,
    });
    let held = config.servers().filter(|server| server.hold.is_some());
    let disabled = config.servers().filter(|server| !server.enabled && server.hold.is_none());
    broken
        .chain(held.map(|server| UnstartedServer::of(server, NOT_TRUSTED, HELD)))
        .chain(disabled.map(|server| UnstartedServer::of(server, DISABLED, SWITCHED_OFF)))
        .collect()
}

impl<'c> UnstartedServer<'c> {
    fn of(server: &'c Server, state: &'static str, reason: &'static str) -> Self {
        let transport = Some(server.transport_word());
        Self { name: &server.name, state, reason, transport, server: Some(server) }
    }

    /// The same object as for a server that is started.
    pub(crate) fn as_json(&self) -> Value {
        let hold = self.server.and_then(|server| server.hold.as_ref());
        let (error, hint) = match (hold, self.state) {
            (Some(hold), _) => {
                let name = escape_control(self.name.as_str());
                let message = format!("server `{name}` is not started: {hold}");
                (Some(message), Some(consent::remedy(hold)))
            }
            (None, DISABLED) => (None, None),
            (None, _) => (Some(self.reason.to_owned()), None),
        };
        json!({
            "name": self.name.as_str(), "state": self.state, "transport": self.transport,
            "error": error, "hint": hint,
        })
    }
}

/// Appends the errors of a server, shown below the table.
pub(crate) fn troubles(text: &mut String, server: &Server, status: &Status) {
    if let Some(error) = &status.last_error {
        let _ = writeln!(text, "\n{}", escape_control(&error.to_string()));
        if let Some(hint) = error.hint() {
            let _ = writeln!(text, "  {}", escape_control(hint));
        }
        if let Some(restarts) = restarts(status) {
            let _ = writeln!(text, "  {restarts}");
        }
    }
    let name = escape_control(server.name.as_str());
    for tool in &status.set_aside {
        let tool_name = tool.name.as_deref().unwrap_or("without a name");
        let (kind, reason) = (tool.kind.as_str(), &tool.reason);
        let tool_name = escape_control(tool_name);
        let _ = writeln!(text, "\nserver `{name}`: the {kind} {tool_name} is not used: {reason}");
    }
    if let Some(reason) = &status.not_remembered {
        let _ = writeln!(text, "\nserver `{name}`: its lists cannot be remembered: {reason}");
        let _ = writeln!(text, "  TRUNKLINE_CACHE names the folder, or is `off`");
    }
}

/// The transport in use, or else the configured one.
pub(crate) fn transport(server: &Server, status: &Status) -> &'static str {
    status.transport.unwrap_or_else(|| server.transport_word())
}

/// The status of a server as JSON.
pub(crate) fn status_json(server: &Server, status: &Status) -> Value {
    let error = status.last_error.as_ref();
    let next_attempt = status.next_attempt.map(|at| at.saturating_duration_since(Instant::now()));
    json!({
        "name": server.name.as_str(),
        "state": status.name(),
        "transport": transport(server, status),
        "protocol": status.protocol,
        "serverInfo": status.server_info.as_ref().map(Raw::to_value),
        "capabilities": status.capabilities.as_ref().map(Raw::to_value),
        "tools": status.tools,
        "setAside": status.set_aside.iter().map(|tool| json!({
            "kind": tool.kind.as_str(), "name": tool.name, "reason": tool.reason,
        })).collect::<Vec<_>>(),
        "error": error.map(ToString::to_string),
        "hint": error.and_then(|error| error.hint()),
        "nextAttemptMs": next_attempt.map(|wait| wait.as_millis()),
        "restarts": status.restarts,
        "notRemembered": status.not_remembered,
        "stderr": status.stderr,
        "pid": status.process_id,
        "uptimeMs": status.uptime().map(|uptime| uptime.as_millis()),
        "calls": status.calls,
        "failures": status.failures,
        "noise": status.noise,
    })
}

/// Describes the next restart of a server, or that there is none any more.
pub(crate) fn restarts(status: &Status) -> Option<String> {
    let Some(next_attempt) = status.next_attempt else {
        let count = report::plural(status.restarts as usize, "time");
        let is_over = status.state == State::Failed && status.restarts > 0;
        return is_over.then(|| format!("it was started again {count}, and is not any more"));
    };
    let wait = next_attempt.saturating_duration_since(Instant::now());
    let is_process = matches!(status.transport, None | Some("stdio"));
    let what = if is_process { "started" } else { "tried" };
    Some(format!("it is {what} again in {:.1} s (attempt {})", wait.as_secs_f32(), status.restarts))
}

/// The status of all servers of a host, with the way each is shared.
#[cfg(unix)]
pub(crate) fn server_statuses(host: &Host) -> Vec<Value> {
    let config = host.config();
    let connections = host.servers().connections();
    let started = connections.iter().map(|it| status_json(it.server(), &it.status()));
    let others = unstarted(&config);
    let others = others.iter().map(UnstartedServer::as_json);
    let with_share = |mut status: Value| {
        let server = status["name"].as_str().and_then(|name| config.server(name));
        status["share"] = json!(server.map(|server| server.behaviour.share.as_str()));
        status
    };
    started.chain(others).map(with_share).collect()
}
