//! `trunkline status`: how every server is doing.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::printable;
use trunkline::connection::{Connection, State, Status};
use trunkline::message::Raw;
use unicode_width::UnicodeWidthStr as _;

use crate::arguments::Format;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::report;
use crate::servers::{Servers, with_servers};
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_servers(settings, environment, terminal, async |servers, terminal| {
        let failures = servers.start_all(terminal).await;
        match settings.format {
            Format::Json => terminal.print(&format!("{:#}\n", as_json(servers)))?,
            Format::Text => terminal.print(&as_text(servers))?,
        }
        let is_good = failures.is_empty() && !servers.loaded.fails(false);
        Ok(if is_good { Outcome::Good } else { Outcome::Bad })
    })
}

pub(super) fn as_text(servers: &Servers) -> String {
    let connections = servers.registry.connections();
    if connections.len() == 0 {
        return report::NOTHING_FOUND.to_owned();
    }
    let header = ["server", "state", "transport", "protocol", "tools", "pid", "is"];
    let rows = connections.map(|connection| row(connection, &connection.status()));
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let mut text = table(&rows);
    for connection in servers.registry.connections() {
        let status = connection.status();
        if let Some(error) = &status.last_error {
            let _ = writeln!(text, "\n{}", printable(&error.to_string()));
            if let Some(hint) = error.hint() {
                let _ = writeln!(text, "  {}", printable(hint));
            }
        }
        for tool in &status.set_aside {
            let name = tool.name.as_deref().unwrap_or("without a name");
            let server = connection.server().name.as_str();
            let _ = writeln!(
                text,
                "\nserver `{server}`: the tool {} is not used: {}",
                printable(name),
                tool.reason
            );
        }
    }
    text
}

fn row(connection: &Connection, status: &Status) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let is_ready = status.state == State::Ready;
    [
        printable(connection.server().name.as_str()),
        status.state.as_str().to_owned(),
        connection.server().transport_word().to_owned(),
        or_dash(status.protocol.as_deref().filter(|_| is_ready).map(str::to_owned)),
        or_dash(is_ready.then(|| status.tools.to_string())),
        or_dash(status.process_id.map(|id| id.to_string())),
        or_dash(status.server_info.as_ref().filter(|_| is_ready).map(described)),
    ]
}

/// Name and version of a server, as it says itself.
fn described(info: &Raw) -> String {
    let [name, version] = info.get_all(["name", "version"]);
    let text = |raw: Option<Raw>| raw.as_ref().and_then(Raw::as_str).map(|text| printable(&text));
    [text(name), text(version)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Rows in columns that are as wide as they have to be.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

pub(super) fn as_json(servers: &Servers) -> Value {
    let server = |connection: &Arc<Connection>| {
        let status = connection.status();
        let error = status.last_error.as_ref();
        json!({
            "name": connection.server().name.as_str(),
            "state": status.state.as_str(),
            "transport": connection.server().transport_word(),
            "protocol": status.protocol,
            "serverInfo": status.server_info.as_ref().map(Raw::to_value),
            "tools": status.tools,
            "setAside": status.set_aside.iter().map(|tool| json!({
                "name": tool.name, "reason": tool.reason,
            })).collect::<Vec<_>>(),
            "error": error.map(ToString::to_string),
            "hint": error.and_then(|error| error.hint()),
            "stderr": status.stderr,
            "pid": status.process_id,
            "uptimeMs": status.uptime().map(|uptime| uptime.as_millis()),
            "calls": status.calls,
            "failures": status.failures,
            "noise": status.noise,
        })
    };
    json!({ "servers": servers.registry.connections().map(server).collect::<Vec<_>>() })
}
