//! `trunkline tools`: what the servers offer, as they say it themselves.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use trunkline::config::printable;
use trunkline::connection::Connection;
use trunkline::error::Error;

use crate::arguments::{Format, ToolsArguments};
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::servers::{Servers, failure_text, with_servers};
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &ToolsArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_servers(settings, environment, terminal, async |servers, terminal| {
        let (connections, failures) = match &arguments.server {
            Some(name) => {
                let connection = find(servers, name)?;
                let failure = connection.connect().await.err();
                (vec![connection], failure.into_iter().collect())
            }
            None => {
                let failures = servers.start_all(terminal).await;
                (servers.set.connections(), failures)
            }
        };
        match settings.format {
            Format::Json => terminal.print(&format!("{:#}\n", as_json(&connections)))?,
            Format::Text => terminal.print(&as_text(&connections))?,
        }
        Ok(said(&failures, terminal))
    })
}

/// Says why servers cannot be used.
fn said(failures: &[Error], terminal: &mut Terminal) -> Outcome {
    for error in failures {
        terminal.say(&failure_text(error));
    }
    if failures.is_empty() { Outcome::Good } else { Outcome::Bad }
}

/// The server of a name.
pub(super) fn find(servers: &Servers, name: &str) -> Result<Arc<Connection>> {
    if let Some(connection) = servers.set.get(name) {
        return Ok(connection);
    }
    let connections = servers.set.connections();
    let names: Vec<_> =
        connections.iter().map(|connection| connection.server().name.as_str()).collect();
    match servers.loaded.config.server(name) {
        Some(_) => bail!("the server `{name}` is switched off; set `enabled` to use it"),
        None if names.is_empty() => bail!("there is no server `{name}`; there are no servers"),
        None => bail!("there is no server `{name}`; there are {}", names.join(", ")),
    }
}

pub(super) fn as_text(connections: &[Arc<Connection>]) -> String {
    let mut text = String::new();
    for connection in connections {
        for tool in connection.tools().iter() {
            let description = tool.description().unwrap_or_default();
            let summary = description.lines().find(|line| !line.trim().is_empty());
            let summary = printable(summary.unwrap_or_default().trim());
            let (server, tool) = (connection.server().name.as_str(), printable(tool.name()));
            let line = format!("{} {tool}  {summary}", printable(server));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

pub(super) fn as_json(connections: &[Arc<Connection>]) -> Value {
    let server = |connection: &Arc<Connection>| {
        let tools = connection.tools();
        json!({
            "server": connection.server().name.as_str(),
            "tools": tools.iter().map(|tool| tool.definition().to_value()).collect::<Vec<_>>(),
        })
    };
    json!({ "servers": connections.iter().map(server).collect::<Vec<_>>() })
}
