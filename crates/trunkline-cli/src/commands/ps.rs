//! `trunkline ps`: the clients and servers of the background service. Starts nothing.

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
use crate::service::hello::{ServiceInfo, Wants};
use crate::service::runtime_dir::RuntimeDir;
use crate::service::{dial, lock};
use crate::settings::Settings;

pub(crate) fn run(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let folder = RuntimeDir::of(environment)?;
    let running = runtime()?.block_on(dial::ask(&folder, Wants::Status))?;
    if let (None, Some(service)) = (&running, lock::running(&folder)?) {
        bail!(
            "the service ({}) is ending, or its socket was removed; `trunkline down` ends it",
            service.process()
        );
    }
    if settings.format != Format::Text {
        let value = match running {
            Some((welcome, mut status)) => {
                status["service"] = json!(welcome.service);
                status
            }
            None => json!({ "service": null, "projects": [] }),
        };
        terminal.print(&report::document(&value, settings.format))?;
        return Ok(Outcome::Good);
    }
    terminal.print(&match running {
        Some((welcome, status)) => as_text(&welcome.service, &status),
        None => {
            "No service is running; `trunkline up` or a host with `trunkline connect` starts it.\n"
                .to_owned()
        }
    })?;
    Ok(Outcome::Good)
}

fn as_text(service: &ServiceInfo, status: &Value) -> String {
    let clients = status["clients"].as_u64().unwrap_or_default();
    let mut text = format!(
        "The service runs ({}, version {}) with {}.\n",
        service.process(),
        escape_control(&service.build),
        plural(usize::try_from(clients).unwrap_or_default(), "client"),
    );
    for project in status["projects"].as_array().into_iter().flatten() {
        text += &project_text(project);
    }
    text
}

fn project_text(project: &Value) -> String {
    let clients = project["clients"].as_u64().unwrap_or_default();
    let clients = plural(usize::try_from(clients).unwrap_or_default(), "client");
    let mut text = format!("\n{} ({clients})\n", shown(&project["directory"]));
    if let Some(problem) = project["problem"].as_str() {
        for line in problem.lines() {
            let _ = writeln!(text, "  ! {}", escape_control(line));
        }
    }
    for server in project["servers"].as_array().into_iter().flatten() {
        let process = server["process"].as_u64().map(|id| format!("  process {id}"));
        let _ = writeln!(
            text,
            "  {:<20} {:<9} {:<11} {:>4} tools{}",
            shown(&server["name"]),
            shown(&server["state"]),
            shown(&server["share"]),
            server["tools"],
            process.unwrap_or_default(),
        );
        if let Some(error) = server["error"].as_str().filter(|_| server["state"] != "ready") {
            let _ = writeln!(text, "    {}", escape_control(error));
        }
    }
    text
}

fn shown(value: &Value) -> String {
    escape_control(value.as_str().unwrap_or_default())
}
