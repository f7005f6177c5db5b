//! `trunkline status`: the status of every server, once or with `--watch` on every change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::ItemKind;
use trunkline::config::{Server, escape_control};
use trunkline::connection::{State, Status};
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::policy::CallerSpec;
use trunkline::registry::StatusChange;
use trunkline::view::{DescriptionStyle, View};
use unicode_width::UnicodeWidthStr as _;

use crate::arguments::{Format, StatusArguments};
use crate::environment::ProcessEnv;
use crate::gateway::health::restarts;
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::host::listing::{ListCommand, hidden_json};
use crate::host::unmatched::UnmatchedNames;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

/// The error of a server whose entry is invalid.
const BROKEN: &str = "its entry has errors";

/// The state of a server whose file is not trusted, and the reason why it is not started.
const NOT_TRUSTED: &str = "not-trusted";
const HELD: &str = "its configuration file is not trusted yet";

/// The state of a server that is disabled in the configuration, and the reason why it is not
/// started.
const DISABLED: &str = "disabled";
const SWITCHED_OFF: &str = "switched off in the configuration";

pub(crate) fn run(
    arguments: &StatusArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_host(ProblemDetail::Shown, settings, environment, terminal, async |hosted, terminal| {
        if arguments.watch {
            return watch(hosted, settings.format, terminal).await;
        }
        let failures = hosted.start_all(terminal).await;
        hosted.refresh_ready().await;
        match settings.format {
            Format::Json | Format::Raw => {
                terminal.print(&report::document(&as_json(hosted), settings.format))?;
            }
            Format::Text => {
                terminal.print(&as_text(hosted))?;
                say_hidden(hosted, settings, terminal)?;
            }
        }
        if settings.verbosity > Verbosity::Quiet {
            UnmatchedNames::default().report(&hosted.host, terminal).await;
        }
        let is_good =
            failures.is_empty() && hosted.all_held().is_empty() && !hosted.loaded.has_errors(false);
        Ok(if is_good { Outcome::Good } else { Outcome::Bad })
    })
}

/// Reports how many tools are hidden from every caller (TOOL-5).
fn say_hidden(hosted: &CommandHost, settings: &Settings, terminal: &Terminal) -> Result<()> {
    if settings.verbosity > Verbosity::Quiet {
        let view = hosted.host.view(CallerSpec::default())?;
        let kinds = &[ItemKind::Tool];
        let describe = DescriptionStyle::AsWritten;
        let listing =
            ListCommand { view: &view, kinds, servers: None, describe, shows_hidden: false };
        terminal.say(&listing.hint(&settings.written_config()));
    }
    Ok(())
}

/// Starts every server and shows every change, until the user interrupts it.
async fn watch(hosted: &CommandHost, format: Format, terminal: &mut Terminal) -> Result<Outcome> {
    let connections = hosted.host.servers().connections();
    let unstarted = unstarted(hosted);
    if connections.is_empty() && unstarted.is_empty() {
        terminal.print(report::no_servers(&hosted.loaded))?;
        return Ok(Outcome::Good);
    }
    // On a terminal they are rows of the table.
    if format != Format::Text || terminal.size().is_none() || connections.is_empty() {
        for server in &unstarted {
            let text = match format {
                Format::Text => server.line(),
                Format::Json | Format::Raw => format!("{}\n", server.as_json(hosted)),
            };
            if !terminal.print_on(&text)? {
                return Ok(Outcome::Good);
            }
        }
    }
    if connections.is_empty() {
        let is_held = hosted.loaded.consent_holds().is_some();
        return Ok(if is_held { Outcome::Bad } else { Outcome::Good });
    }
    connections.iter().for_each(|connection| connection.start());
    let mut changes = hosted.host.servers().watch();
    let (mut screen, mut lines) = (Screen::default(), Lines::default());
    hosted.keep_running();
    while let Some(change) = changes.next().await {
        let text = match format {
            Format::Text => match terminal.size() {
                Some(size) => Some(screen.redrawn(&as_text(hosted), size)),
                None => lines.changed(&change),
            },
            Format::Json | Format::Raw => {
                change_json(hosted, &change).map(|json| format!("{json}\n"))
            }
        };
        let Some(text) = text else { continue };
        if !terminal.print_on(&text)? {
            break;
        }
    }
    Ok(Outcome::Good)
}

/// The lines on the terminal, to redraw them.
#[derive(Default)]
struct Screen {
    lines: usize,
}

impl Screen {
    /// The output that replaces the previous text, truncated to the width and height of the
    /// terminal.
    fn redrawn(&mut self, text: &str, (width, height): (usize, usize)) -> String {
        let up = if self.lines > 0 { format!("\u{1b}[{}A", self.lines) } else { String::new() };
        self.lines = 0;
        let mut shown = format!("{up}\r\u{1b}[J");
        for line in text.lines() {
            let lines = line.width().div_ceil(width).max(1);
            if self.lines + lines >= height {
                break;
            }
            self.lines += lines;
            shown.push_str(line);
            shown.push('\n');
        }
        shown
    }
}

/// The last line printed for each server.
#[derive(Default)]
struct Lines(BTreeMap<ServerName, String>);

impl Lines {
    /// The line for a change, unless it equals the previous one of the server.
    fn changed(&mut self, change: &StatusChange) -> Option<String> {
        let line = line(change);
        let before = self.0.insert(change.server.clone(), line.clone());
        (before.as_ref() != Some(&line)).then_some(line)
    }
}

/// A change on one line, for a file or a pipe.
fn line(change: &StatusChange) -> String {
    let server = escape_control(change.server.as_str());
    let Some(status) = &change.status else { return format!("{server}  removed\n") };
    let mut text = format!("{server}  {}", status.name());
    if status.state == State::Ready {
        let _ = write!(text, "  {}", report::plural(status.tools, "tool"));
    }
    if let Some(error) = status.last_error.as_ref().filter(|_| status.state == State::Failed) {
        let _ = write!(text, "  {}", escape_control(error.message()));
    }
    if let Some(restarts) = restarts(status) {
        let _ = write!(text, "  {restarts}");
    }
    text + "\n"
}

pub(super) fn as_text(hosted: &CommandHost) -> String {
    let connections = hosted.host.servers().connections();
    let unstarted = unstarted(hosted);
    if connections.is_empty() && unstarted.is_empty() {
        return report::no_servers(&hosted.loaded).to_owned();
    }
    let header = ["server", "state", "transport", "protocol", "tools", "pid", "is"];
    let statuses: Vec<_> =
        connections.iter().map(|connection| (connection.server(), connection.status())).collect();
    let rows = statuses.iter().map(|(server, status)| row(server, status));
    let rows = rows.chain(unstarted.iter().map(UnstartedServer::row));
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let mut text = report::table(&rows);
    for (server, status) in &statuses {
        troubles(&mut text, server, status);
    }
    text
}

/// Appends the errors of a server, shown below the table.
fn troubles(text: &mut String, server: &Server, status: &Status) {
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
        let _ = writeln!(text, "\nserver `{name}`: its tools cannot be remembered: {reason}");
        let _ = writeln!(text, "  TRUNKLINE_CACHE names the folder, or is `off`");
    }
}

fn row(server: &Server, status: &Status) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let is_ready = status.state == State::Ready;
    [
        escape_control(server.name.as_str()),
        status.name().to_owned(),
        transport(server, status).to_owned(),
        or_dash(status.protocol.as_deref().filter(|_| is_ready).map(str::to_owned)),
        or_dash(is_ready.then(|| status.tools.to_string())),
        or_dash(status.process_id.map(|id| id.to_string())),
        or_dash(status.server_info.as_ref().filter(|_| is_ready).map(described)),
    ]
}

/// A server that is never started, with the reason (CON-11).
struct UnstartedServer<'h> {
    name: &'h ServerName,
    state: &'static str,
    reason: &'static str,
    /// The transport; unknown if the entry has errors.
    transport: Option<&'static str>,
}

/// The servers with invalid entries, then those of untrusted files, then the disabled ones.
fn unstarted(hosted: &CommandHost) -> Vec<UnstartedServer<'_>> {
    let config = &hosted.loaded.config;
    let broken = config.broken().iter().map(|name| UnstartedServer {
        name,
        state: State::Failed.as_str(),
        reason: BROKEN,
        transport: None,
    });
    let held = config.servers().filter(|server| server.hold.is_some());
    let disabled = config.servers().filter(|server| !server.enabled && server.hold.is_none());
    broken
        .chain(held.map(|server| UnstartedServer::of(server, NOT_TRUSTED, HELD)))
        .chain(disabled.map(|server| UnstartedServer::of(server, DISABLED, SWITCHED_OFF)))
        .collect()
}

impl<'h> UnstartedServer<'h> {
    fn of(server: &'h Server, state: &'static str, reason: &'static str) -> Self {
        Self { name: &server.name, state, reason, transport: Some(server.transport_word()) }
    }

    fn row(&self) -> [String; 7] {
        let mut row = std::array::from_fn(|_| "-".to_owned());
        row[0] = escape_control(self.name.as_str());
        row[1] = self.state.to_owned();
        row[2] = self.transport.unwrap_or("-").to_owned();
        row[6] = self.reason.to_owned();
        row
    }

    /// On one line, for a file or a pipe.
    fn line(&self) -> String {
        format!("{}  {}  {}\n", escape_control(self.name.as_str()), self.state, self.reason)
    }

    fn as_json(&self, hosted: &CommandHost) -> Value {
        let (error, hint) = match self.state {
            DISABLED => (Value::Null, Value::Null),
            NOT_TRUSTED => {
                let failure = hosted.held(self.name.as_str()).map(|failure| failure.as_json());
                let failure = failure.unwrap_or_default();
                (failure["message"].clone(), failure["hint"].clone())
            }
            _ => (self.reason.into(), Value::Null),
        };
        json!({
            "name": self.name.as_str(), "state": self.state, "transport": self.transport,
            "error": error, "hint": hint,
        })
    }
}

/// The transport in use, or else the configured one.
fn transport(server: &Server, status: &Status) -> &'static str {
    status.transport.unwrap_or_else(|| server.transport_word())
}

/// Name and version from `serverInfo`.
fn described(info: &Raw) -> String {
    let [name, version] = info.get_all(["name", "version"]);
    let text =
        |raw: Option<Raw>| raw.as_ref().and_then(Raw::as_str).map(|text| escape_control(&text));
    [text(name), text(version)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

pub(super) fn as_json(hosted: &CommandHost) -> Value {
    let connections = hosted.host.servers().connections();
    let view = hosted.host.view(CallerSpec::default()).ok();
    let server = connections.iter().map(|it| {
        let mut json = status_json(it.server(), &it.status());
        json["hidden"] = hidden_of(&it.server().name, view.as_ref());
        json
    });
    let unstarted = unstarted(hosted);
    let unstarted = unstarted.iter().map(|server| server.as_json(hosted));
    json!({ "servers": server.chain(unstarted).collect::<Vec<_>>() })
}

/// The tools of a server that are hidden from every caller, with their reasons (TOOL-5).
fn hidden_of(server: &ServerName, view: Option<&View>) -> Value {
    let hidden = view.into_iter().flat_map(|view| view.hidden(ItemKind::Tool));
    let of_server = hidden.filter(|(entry, _)| entry.server().name == *server);
    of_server.map(|(entry, reason)| hidden_json(entry, &reason)).collect()
}

/// A change as one line of JSON: the status of the server, or its removal.
fn change_json(hosted: &CommandHost, change: &StatusChange) -> Option<Value> {
    let name = change.server.as_str();
    match &change.status {
        Some(status) => Some(status_json(hosted.loaded.config.server(name)?, status)),
        None => Some(json!({ "name": name, "state": "removed" })),
    }
}

fn status_json(server: &Server, status: &Status) -> Value {
    let error = status.last_error.as_ref();
    let next_attempt =
        status.next_attempt.map(|at| at.saturating_duration_since(std::time::Instant::now()));
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
