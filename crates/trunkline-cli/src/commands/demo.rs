//! `trunkline demo`: shows the features of Trunkline with built-in servers.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use trunkline::call::Outcome as Called;
use trunkline::catalog::ItemKind;
use trunkline::config;
use trunkline::host::{Host, WaitFor};
use trunkline::view::View;
use trunkline_control::Activity;
use trunkline_gateway::demo::DemoServer;
use trunkline_gateway::{GatewayOptions, HttpService, client_capabilities, serve};

use super::demo_server::{bind, endpoint};
use super::status;
use crate::arguments::{DemoArguments, Format};
use crate::config::load::Agents;
use crate::control::control_of;
use crate::control::served_host::{PROJECT, ServedHost};
use crate::environment::ProcessEnv;
use crate::gateway::client_config::client_entry;
use crate::gateway::reload::ReloadStatus;
use crate::host::command_host::{self, CommandHost, report_failures};
use crate::host::host_builder;
use crate::host::listing::ListCommand;
use crate::host::listing_text;
use crate::host::run_call::text_of;
use crate::output::exit::{Failure, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::output::text_layout::TextLayout;
use crate::settings::{Settings, Verbosity};

/// The call that is shown.
const CALL: (&str, &str) = ("words_count_words", "one line to every MCP server");

/// The exposed name of the same tool for a client of the gateway, which adds its own prefix.
const CALL_THROUGH: &str = "trunkline_words_count_words";

const STAYS: &str =
    "The gateway goes on serving until Ctrl-C, so that you can try a client on it.\n";

const ENDS: &str = "The gateway and both servers are being stopped; with `--stay` they go on until \
                    Ctrl-C, with a page to see and steer them.\n`trunkline --help` says what else there is.\n";

pub(crate) fn run(
    arguments: &DemoArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let runtime = command_host::runtime()?;
    let listener = runtime.block_on(bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    let text = configuration(environment, &listener)?;
    // It serves until the demo ends, with the runtime.
    runtime.spawn(DemoServer::Numbers.listen(listener));
    let loaded = (config::parse("demo.json", &text), Agents::new());
    let builder = host_builder::builder(environment).capabilities(client_capabilities());
    let is_to_stay = arguments.stay || terminal.has_keyboard();
    command_host::run(loaded, builder, terminal, async |hosted, terminal| {
        let gateway = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = endpoint(&gateway)?;
        let (service, page) = service(hosted, &url, environment, terminal);
        let mut serving = tokio::spawn(serve(gateway, service).into_future());
        if is_to_stay && settings.format == Format::Text {
            terminal.print(&format!("Open this page to see all of it, live:\n\n  {page}\n\n"))?;
        }
        let failures = hosted.refresh(&hosted.all(), &[ItemKind::Tool], terminal).await;
        let view = hosted.host.owner().view().map_err(Failure::from)?;
        let called = call(&hosted.host, CALL.0).await;
        // If the tool is missing, only the failure of its server is reported.
        let called = called.inspect_err(|_| report_failures(&failures, terminal))?;
        let entry = client_entry(&url, false);
        let called_through = call_through(&entry, environment, terminal).await?;
        let demo =
            Demo { hosted, called, view, text: &text, entry, url, called_through, is_to_stay };
        let shown = match settings.format {
            Format::Json | Format::Raw => report::document(&demo.as_json(), settings.format),
            Format::Text => demo.as_text(terminal.layout()),
        };
        terminal.print(&shown)?;
        report_failures(&failures, terminal);
        if is_to_stay {
            hosted.keep_running();
            (&mut serving).await??;
        }
        serving.abort();
        Ok(if failures.is_empty() { Outcome::Good } else { Outcome::Bad })
    })
}

/// The gateway and the page, and a link that opens it.
fn service(
    hosted: &CommandHost,
    url: &str,
    environment: &ProcessEnv,
    terminal: &Terminal,
) -> (HttpService, String) {
    let activity = Activity::default();
    let observer = Some(activity.observer(PROJECT));
    let source = ServedHost {
        host: hosted.host.clone(),
        directory: "demo".into(),
        status: ReloadStatus::default(),
        files: None,
    };
    let control = control_of(Arc::new(source), activity, Vec::new(), environment, terminal);
    let options = GatewayOptions { observer, ..GatewayOptions::default() };
    let service = HttpService::new(hosted.host.clone(), options);
    let page = control.login_link(url.trim_end_matches("/mcp")).url;
    (service.merge(move || trunkline_control::router(&control)), page)
}

/// A configuration with both demo servers, as a user would write it.
fn configuration(environment: &ProcessEnv, listener: &TcpListener) -> Result<String> {
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

async fn call(host: &Host, tool: &str) -> Result<Called> {
    let called = host.call_tool(tool, json!({ "text": CALL.1 })).await;
    Ok(called.map_err(Failure::from)?)
}

/// Makes the same call as a client of the gateway: another host, with the entry of any client.
async fn call_through(
    entry: &str,
    environment: &Arc<ProcessEnv>,
    terminal: &Terminal,
) -> Result<Called> {
    let host = host_builder::builder(environment).config_text("client.json", entry).start().await?;
    let failures = host.refresh(&[ItemKind::Tool], WaitFor::AllReady).await;
    let called = call(&host, CALL_THROUGH).await;
    host.shutdown().await;
    called.inspect_err(|_| report_failures(&failures, terminal))
}

/// The content of the demo.
struct Demo<'h> {
    hosted: &'h CommandHost,
    view: View,
    called: Called,
    /// The text of the configuration.
    text: &'h str,
    /// The URL of the gateway.
    url: String,
    /// The configuration of a client.
    entry: String,
    called_through: Called,
    is_to_stay: bool,
}

impl Demo<'_> {
    fn tools(&self) -> ListCommand<'_> {
        ListCommand {
            view: &self.view,
            kinds: &[ItemKind::Tool],
            servers: None,
            describe: self.hosted.host.description_style(),
            shows_hidden: true,
        }
    }

    fn as_text(&self, layout: TextLayout) -> String {
        let (text, (tool, argument)) = (self.text, CALL);
        let mut shown = format!(
            "Two demo servers: `words` is this program over stdio, `numbers` is at an HTTP address.\n\
             Their configuration, as you would write it in trunkline.json and allow with `trunkline trust`:\n\n{text}\n"
        );
        let mut section = |title: &str, content: &str| {
            let _ = write!(shown, "\n{title}\n\n{content}");
        };
        section(
            "Both have been started (`trunkline status`):",
            &status::as_text(self.hosted, layout),
        );
        section(
            "Their tools (`trunkline tools --all`):",
            &listing_text::render(&self.tools(), layout),
        );
        let title = format!("A call (`trunkline call {tool} text=\"{argument}\"`):");
        section(&title, &text_of(&self.called));
        let title =
            format!("Both are served as one at {} (`trunkline serve`). For any client:", self.url);
        section(&title, &self.entry);
        let title = format!("The same call by a client of that address, as `{CALL_THROUGH}`:");
        section(&title, &text_of(&self.called_through));
        let slips = text.replace("\"command\"", "\"comand\"").replace("\"http\"", "\"htpp\"");
        let slips = config::parse("demo.json", slips);
        let problems = report::problems(&slips, Verbosity::Normal, layout.style);
        section(
            "The same configuration with two slips in it (`trunkline check`):",
            problems.trim_end(),
        );
        shown
            + "\n\n"
            + match self.is_to_stay {
                true => STAYS,
                false => ENDS,
            }
    }

    fn as_json(&self) -> Value {
        json!({
            "configuration": self.hosted.loaded.config.to_json(),
            "status": status::as_json(self.hosted),
            "tools": self.tools().as_json(),
            "result": self.called.result.to_value(),
            "gateway": {
                "url": self.url,
                "client": serde_json::from_str::<Value>(&self.entry).unwrap_or_default(),
                "result": self.called_through.result.to_value(),
            },
        })
    }
}
