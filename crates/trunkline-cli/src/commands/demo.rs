//! `trunkline demo`: what Trunkline does, shown on servers of its own.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use trunkline::call::{CallOptions, Outcome as Called};
use trunkline::catalog::Kind;
use trunkline::config::{self, Style};
use trunkline::message::Raw;
use trunkline::policy::Who;
use trunkline::view::View;
use trunkline_gateway::demo::DemoServer;

use super::demo_server::{bind, endpoint};
use super::status;
use crate::arguments::Format;
use crate::environment::Environment;
use crate::exit::{Failure, Outcome};
use crate::listing::Listing;
use crate::loading::Agents;
use crate::report;
use crate::results::text_of;
use crate::servers::{self, Hosted, say_failures};
use crate::settings::{Settings, Verbosity};
use crate::terminal::Terminal;

/// The call that is shown.
const CALL: (&str, &str) = ("words_count_words", "one line to every MCP server");

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
    let loaded = (config::parse("demo.json", &text), Agents::new());
    servers::run(loaded, servers::options(environment), terminal, async |hosted, terminal| {
        let failures = hosted.gather(&hosted.all(), &[Kind::Tool], terminal).await;
        let view = hosted.host.view(Who::default()).map_err(Failure::from)?;
        let demo = Demo { hosted, called: call(hosted, &view).await?, view };
        let shown = match settings.format {
            Format::Json | Format::Raw => report::document(&demo.as_json(), settings.format),
            Format::Text => demo.as_text(&text, terminal.output_style()),
        };
        terminal.print(&shown)?;
        say_failures(&failures, terminal);
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

async fn call(hosted: &Hosted, view: &View) -> Result<Called> {
    let (tool, text) = CALL;
    let arguments = Raw::from_value(&json!({ "text": text }));
    let called = hosted.host.call(view, tool, arguments, CallOptions::default()).await;
    Ok(called.map_err(Failure::from)?)
}

/// What there is to show.
struct Demo<'h> {
    hosted: &'h Hosted,
    view: View,
    called: Called,
}

impl Demo<'_> {
    fn tools(&self) -> Listing<'_> {
        Listing {
            view: &self.view,
            kinds: &[Kind::Tool],
            servers: None,
            describe: self.hosted.host.describes(),
            shows_hidden: true,
        }
    }

    fn as_text(&self, text: &str, style: Style) -> String {
        let (tool, argument) = CALL;
        let mut shown = format!(
            "Two demo servers: `words` is this program over stdio, `numbers` is at an HTTP address.\n\
             Their configuration, as you would write it in trunkline.json:\n\n{text}\n"
        );
        let mut section = |title: &str, content: &str| {
            let _ = write!(shown, "\n{title}\n\n{content}");
        };
        section("Both have been started (`trunkline status`):", &status::as_text(self.hosted));
        section("Their tools (`trunkline tools --all`):", &self.tools().as_text());
        let title = format!("A call (`trunkline call {tool} --arg text=\"{argument}\"`):");
        section(&title, &text_of(&self.called));
        let slips = text.replace("\"command\"", "\"comand\"").replace("\"http\"", "\"htpp\"");
        let slips = config::parse("demo.json", slips);
        let problems = report::problems(&slips, Verbosity::Normal, style);
        section(
            "The same configuration with two slips in it (`trunkline check`):",
            problems.trim_end(),
        );
        shown + "\n\nBoth servers are being stopped. `trunkline --help` says what else there is.\n"
    }

    fn as_json(&self) -> Value {
        json!({
            "configuration": self.hosted.loaded.config.to_json(),
            "status": status::as_json(self.hosted),
            "tools": self.tools().as_json(),
            "result": self.called.result.to_value(),
        })
    }
}
