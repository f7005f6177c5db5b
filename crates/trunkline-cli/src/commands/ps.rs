//! `trunkline ps`: the clients and servers of the background service, and gateways. Starts nothing.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use trunkline::config::escape_control;

use crate::arguments::Format;
use crate::environment::ProcessEnv;
use crate::host::command_host::runtime;
use crate::output::exit::Outcome;
use crate::output::report::{self, plural};
use crate::output::terminal::Terminal;
use crate::output::text_layout::TextLayout;
use crate::service::lock;
use crate::settings::Settings;
use crate::socket::dial;
use crate::socket::endpoint::Endpoint;
use crate::socket::hello::{ServiceInfo, Wants, Welcome};
use crate::socket::runtime_dir::RuntimeDir;

/// Lines of standard error of a server that failed; `trunkline logs SERVER` has more.
const MAX_LINES: usize = 3;

pub(crate) fn run(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let folder = RuntimeDir::of(environment)?;
    let runtime = runtime()?;
    let (running, gateways) = runtime.block_on(async {
        tokio::join!(dial::ask(&folder, Wants::Status), dial::gateway_states(&folder))
    });
    if running.is_err() && settings.format == Format::Text {
        // They run, whatever the service does.
        let shown: String = gateways.iter().map(|it| gateway_text(it, terminal.layout())).collect();
        terminal.print(shown.trim_start_matches('\n'))?;
    }
    let running = running?;
    if let (None, Some(service)) = (&running, lock::running(&folder)?) {
        bail!(
            "the service ({}) is ending, or its socket was removed; `trunkline down` ends it",
            service.process()
        );
    }
    if settings.format != Format::Text {
        let mut value = match running {
            Some(welcome) => {
                let mut status = welcome.response;
                status["service"] = json!(welcome.service);
                status
            }
            None => json!({
                "service": null, "projects": [], "commands": [], "ended": [], "clients": 0,
                "connections": 0,
            }),
        };
        value["gateways"] = gateways.iter().map(gateway_value).collect();
        terminal.print(&report::document(&value, settings.format))?;
        return Ok(Outcome::Good);
    }
    let mut text = match running {
        Some(welcome) => as_text(&welcome.service, &welcome.response, terminal.layout()),
        None => {
            "No service is running; `trunkline up` or a host with `trunkline connect` starts it.\n"
                .to_owned()
        }
    };
    for gateway in &gateways {
        text += &gateway_text(gateway, terminal.layout());
    }
    terminal.print(&text)?;
    Ok(Outcome::Good)
}

fn gateway_value((endpoint, state): &(Endpoint, Result<Welcome>)) -> Value {
    let mut value = match state {
        Ok(welcome) => welcome.response.clone(),
        Err(error) => {
            json!({
                "url": null, "directory": null, "servers": [], "commands": [], "ended": [],
                "error": error.to_string(),
            })
        }
    };
    value["pid"] = json!(endpoint.gateway_process());
    value
}

fn gateway_text((endpoint, state): &(Endpoint, Result<Welcome>), layout: TextLayout) -> String {
    let status = match state {
        Ok(welcome) => &welcome.response,
        Err(error) => return format!("\n{error}\n"),
    };
    let head = format!("\n{endpoint} serves {}.\n", shown(&status["url"]));
    let mut text = head.replacen("the", "The", 1);
    text += &format!("\n{}\n", shown(&status["directory"]));
    text += &servers_text(status, layout);
    let processes = status["commands"].as_array().map_or(&[][..], Vec::as_slice);
    text + &commands_text(processes, layout)
}

fn as_text(service: &ServiceInfo, status: &Value, layout: TextLayout) -> String {
    let clients = status["clients"].as_u64().unwrap_or_default();
    let mut text = format!(
        "The service runs ({}, version {}, protocol {}) with {}.\n",
        service.process(),
        escape_control(&service.build),
        service.protocol,
        plural(usize::try_from(clients).unwrap_or_default(), "client"),
    );
    for project in status["projects"].as_array().into_iter().flatten() {
        text += &project_text(project, layout);
    }
    let processes = status["commands"].as_array().map_or(&[][..], Vec::as_slice);
    text += &commands_text(processes, layout);
    if status["page"].is_string() {
        text += "\n`trunkline page` opens a page that shows and steers all of this.\n";
    }
    text
}

fn project_text(project: &Value, layout: TextLayout) -> String {
    let clients = project["clients"].as_u64().unwrap_or_default();
    let clients = plural(usize::try_from(clients).unwrap_or_default(), "client");
    let mut text = format!("\n{} ({clients})\n", shown(&project["directory"]));
    if let Some(problem) = project["problem"].as_str() {
        for line in problem.lines() {
            let _ = writeln!(text, "  ! {}", escape_control(line));
        }
    }
    text + &servers_text(project, layout)
}

/// The servers of a project or of a gateway.
fn servers_text(project: &Value, layout: TextLayout) -> String {
    let mut text = String::new();
    let servers = project["servers"].as_array().map_or(&[][..], Vec::as_slice);
    let header = ["server", "state", "share", "tools", "pid"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(header).chain(servers.iter().map(row)).collect();
    let table = report::table_with_head(&rows, layout);
    for line in table.lines().filter(|_| !servers.is_empty()) {
        let _ = writeln!(text, "  {line}");
    }
    servers.iter().for_each(|server| text += &trouble(server));
    text
}

/// The processes that are kept for commands.
fn commands_text(processes: &[Value], layout: TextLayout) -> String {
    if processes.is_empty() {
        return String::new();
    }
    let header = ["server", "state", "pid", "directory"].map(str::to_owned);
    let rows = processes.iter().map(|process| {
        let seconds = process["seconds"].as_u64().unwrap_or_default();
        let state = match process["inUse"].as_bool() {
            Some(true) => "in use".to_owned(),
            _ => format!("idle for {seconds} s"),
        };
        let pid = process["pid"].as_u64().map_or("-".to_owned(), |it| it.to_string());
        [shown(&process["name"]), state, pid, shown(&process["directory"])]
    });
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    let mut text = "\nkept for commands\n".to_owned();
    for line in report::table_with_head(&rows, layout).lines() {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn row(server: &Value) -> [String; 5] {
    let number = |key: &str| server[key].as_u64().map_or("-".to_owned(), |it| it.to_string());
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let [name, state, share] = ["name", "state", "share"].map(|key| or_dash(shown(&server[key])));
    [name, state, share, number("tools"), number("pid")]
}

/// Why a server does not run, what it wrote last, and what to do.
fn trouble(server: &Value) -> String {
    let mut text = String::new();
    let Some(error) = server["error"].as_str().filter(|_| server["state"] != "ready") else {
        return text;
    };
    let _ = writeln!(text, "\n  {}", escape_control(error));
    let lines: Vec<_> = server["stderr"].as_array().into_iter().flatten().collect();
    for line in &lines[lines.len().saturating_sub(MAX_LINES)..] {
        let _ = writeln!(text, "    it said: {}", shown(line));
    }
    if let Some(hint) = server["hint"].as_str() {
        let _ = writeln!(text, "    {}", escape_control(hint));
    }
    text
}

fn shown(value: &Value) -> String {
    escape_control(value.as_str().unwrap_or_default())
}
