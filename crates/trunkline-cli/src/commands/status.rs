//! `trunkline status`: the status of every server, once or with `--watch` on every change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::timeout;
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
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::host::listing::{ListCommand, hidden_json};
use crate::host::server_status::{
    UnstartedServer, restarts, status_json, transport, troubles, unstarted,
};
use crate::host::unmatched::UnmatchedNames;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::output::text_layout::{TextLayout, without_colors};
use crate::settings::{Settings, Verbosity};

/// How long the command waits for files of the cache.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(2);

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
        // Until it is known whether the lists can be remembered. A disk that hangs is not waited for.
        let _ = timeout(PATIENCE_WITH_DISK, hosted.host.servers().cache_written()).await;
        match settings.format {
            Format::Json | Format::Raw => {
                terminal.print(&report::document(&as_json(hosted), settings.format))?;
            }
            Format::Text => {
                let text = as_text(hosted, terminal.layout());
                terminal.print(&text)?;
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
    let unstarted = unstarted(&hosted.loaded.config);
    if connections.is_empty() && unstarted.is_empty() {
        match format {
            Format::Text => terminal.print(report::no_servers(&hosted.loaded))?,
            Format::Json | Format::Raw => terminal.tell(report::no_servers(&hosted.loaded)),
        }
        return Ok(Outcome::Good);
    }
    // On a terminal they are rows of the table.
    if format != Format::Text || terminal.size().is_none() || connections.is_empty() {
        for server in &unstarted {
            let text = match format {
                Format::Text => unstarted_line(server),
                Format::Json | Format::Raw => report::line(&server.as_json()),
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
                Some(size) => Some(screen.redrawn(&as_text(hosted, terminal.layout()), size)),
                None => lines.changed(&change),
            },
            Format::Json | Format::Raw => {
                change_json(hosted, &change).map(|json| report::line(&json))
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
            let lines = without_colors(line).width().div_ceil(width).max(1);
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

pub(super) fn as_text(hosted: &CommandHost, layout: TextLayout) -> String {
    let connections = hosted.host.servers().connections();
    let unstarted = unstarted(&hosted.loaded.config);
    if connections.is_empty() && unstarted.is_empty() {
        return report::no_servers(&hosted.loaded).to_owned();
    }
    let header = ["server", "state", "transport", "protocol", "tools", "pid", "is"];
    let statuses: Vec<_> =
        connections.iter().map(|connection| (connection.server(), connection.status())).collect();
    let rows = statuses.iter().map(|(server, status)| row(server, status));
    let rows = rows.chain(unstarted.iter().map(unstarted_row));
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let mut text = report::table_with_head(&rows, layout);
    for (server, status) in &statuses {
        troubles(&mut text, server, status);
    }
    text
}

fn unstarted_row(server: &UnstartedServer<'_>) -> [String; 7] {
    let mut row = std::array::from_fn(|_| "-".to_owned());
    row[0] = escape_control(server.name.as_str());
    row[1] = server.state.to_owned();
    row[2] = server.transport.unwrap_or("-").to_owned();
    row[6] = server.reason.to_owned();
    row
}

/// On one line, for a file or a pipe.
fn unstarted_line(server: &UnstartedServer<'_>) -> String {
    format!("{}  {}  {}\n", escape_control(server.name.as_str()), server.state, server.reason)
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
    let unstarted = unstarted(&hosted.loaded.config);
    let unstarted = unstarted.iter().map(UnstartedServer::as_json);
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
