//! `trunkline demo`: what Trunkline does, shown on servers of its own.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use trunkline::config::{self, Style};
use trunkline::message::Raw;
use trunkline_gateway::demo::DemoServer;

use super::call::text_of;
use super::demo_server::{bind, endpoint};
use super::{status, tools};
use crate::arguments::Format;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::report;
use crate::servers::{self, Servers};
use crate::settings::{Settings, Verbosity};
use crate::terminal::Terminal;

/// The call that is shown.
const CALL: (&str, &str, &str) = ("words", "count_words", "one line to every MCP server");

pub(crate) fn run(
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let runtime = servers::runtime()?;
    let listener = runtime.block_on(bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    let text = configuration(environment, &listener)?;
    // It serves for as long as the demonstration runs, and ends with the runtime.
    runtime.spawn(DemoServer::Numbers.listen(listener));
    let loaded = config::parse("demo.json", &text);
    servers::run(loaded, servers::options(environment), terminal, async |servers, terminal| {
        let failures = servers.start_all(terminal).await;
        let result = call(servers).await?;
        let shown = match settings.format {
            Format::Json => format!("{:#}\n", as_json(servers, &result)),
            Format::Text => as_text(&text, servers, &result, terminal.output_style()),
        };
        terminal.print(&shown)?;
        for error in &failures {
            terminal.say(&servers::failure_text(error));
        }
        Ok(if failures.is_empty() { Outcome::Good } else { Outcome::Bad })
    })
}

/// A configuration with both demo servers, as a user would write it.
fn configuration(environment: &Environment, listener: &TcpListener) -> Result<String> {
    let program = Value::from(environment.program()?.to_string_lossy());
    let url = Value::from(endpoint(listener)?);
    Ok(format!(
        r#"{{
  "mcpServers": {{
    "words": {{ "command": {program}, "args": ["demo-server", "words"] }},
    "numbers": {{ "type": "http", "url": {url} }}
  }}
}}"#
    ))
}

async fn call(servers: &Servers) -> Result<Raw> {
    let (server, tool, text) = CALL;
    let connection = servers.set.get(server).context("the demo has this server")?;
    let params = json!({ "name": tool, "arguments": { "text": text } });
    let answer = connection.request("tools/call", Some(Raw::from_value(&params))).await?;
    answer.map_err(|error| anyhow::anyhow!("the demo server refused the call: {}", error.message()))
}

fn as_text(text: &str, servers: &Servers, result: &Raw, style: Style) -> String {
    let (server, tool, argument) = CALL;
    let connections = servers.set.connections();
    let mut shown = format!(
        "Two demo servers: `words` is this program over stdio, `numbers` is at an HTTP address.\n\
         Their configuration, as you would write it in trunkline.json:\n\n{text}\n"
    );
    let mut section = |title: &str, content: &str| {
        let _ = write!(shown, "\n{title}\n\n{content}");
    };
    section("Both have been started (`trunkline status`):", &status::as_text(servers));
    section("Their tools (`trunkline tools`):", &tools::as_text(&connections));
    let title = format!("A call (`trunkline call {server} {tool} --arg text=\"{argument}\"`):");
    section(&title, &text_of(result));
    let slips = text.replace("\"command\"", "\"comand\"").replace("\"http\"", "\"htpp\"");
    let problems = report::problems(&config::parse("demo.json", slips), Verbosity::Normal, style);
    section(
        "The same configuration with two slips in it (`trunkline check`):",
        problems.trim_end(),
    );
    shown + "\n\nBoth servers are being stopped. `trunkline --help` says what else there is.\n"
}

fn as_json(servers: &Servers, result: &Raw) -> Value {
    let connections = servers.set.connections();
    json!({
        "configuration": servers.loaded.config.to_json(),
        "status": status::as_json(servers),
        "tools": tools::as_json(&connections),
        "result": result.to_value(),
    })
}
