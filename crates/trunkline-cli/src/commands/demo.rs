//! `trunkline demo`: what Trunkline does, shown on servers of its own.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime;
use trunkline::config::{self, Loaded};
use trunkline_gateway::demo::DemoServer;

use super::demo_server::{bind, endpoint};
use crate::arguments::Format;
use crate::effective;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::report;
use crate::settings::{Settings, Verbosity};
use crate::terminal::Terminal;

pub(crate) fn run(
    settings: &Settings,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_io().build()?;
    let listener = runtime.block_on(bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    let text = configuration(environment, &listener)?;
    // It serves for as long as the demonstration runs, and ends with the runtime.
    runtime.spawn(DemoServer::Numbers.listen(listener));
    show(&text, settings, terminal)
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

fn show(text: &str, settings: &Settings, terminal: &mut Terminal) -> Result<Outcome> {
    let loaded = config::parse("demo.json", text);
    let outcome = if loaded.fails(false) { Outcome::Bad } else { Outcome::Good };
    if settings.format == Format::Json {
        terminal.print(&format!("{:#}\n", loaded.config.to_json()))?;
        return Ok(outcome);
    }
    let style = terminal.output_style();
    let slips = with_slips(text);
    terminal.print(&format!(
        "Two demo servers: `words` is this program over stdio, `numbers` listens on HTTP now.\n\
         Their configuration, as you would write it in trunkline.json:\n\n{text}\n\n\
         What Trunkline makes of it (`trunkline config`):\n\n{effective}\n\
         The same with two slips in it (`trunkline check`):\n\n{problems}\
         Nothing has been started from this configuration: this version reads and checks it.\n\
         Connecting to servers and calling their tools are not there yet.\n",
        effective = effective::text(&loaded, settings.verbosity, style),
        problems = report::problems(&slips, Verbosity::Normal, style),
    ))?;
    Ok(outcome)
}

/// The same configuration with mistakes of the kind everybody makes.
fn with_slips(text: &str) -> Loaded {
    let slips = text.replace("\"command\"", "\"comand\"").replace("\"http\"", "\"htpp\"");
    config::parse("demo.json", slips)
}
