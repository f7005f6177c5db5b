//! `trunkline restart`: restarts the background service, or one of its servers.

use anyhow::Result;
use serde_json::json;
use trunkline::config::escape_control;

use super::{down, up};
use crate::arguments::{Format, RestartArguments};
use crate::environment::ProcessEnv;
use crate::host::command_host::runtime;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;
use crate::socket::dial;
use crate::socket::hello::Wants;
use crate::socket::runtime_dir::RuntimeDir;

/// The error if nothing runs.
pub(crate) const NOT_RUNNING: &str = "no service is running";

pub(crate) fn run(
    arguments: &RestartArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    match &arguments.server {
        Some(server) => restart_server(server, settings, environment, terminal),
        None => restart_service(settings, environment, terminal),
    }
}

fn restart_server(
    server: &str,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let folder = RuntimeDir::of(environment)?;
    let wants = Wants::Restart { server: server.to_owned() };
    let Some(_) = runtime()?.block_on(dial::ask(&folder, wants))? else {
        let failure = Failure::new(FailureKind::Unavailable, NOT_RUNNING.to_owned());
        return Err(failure.with_hint("`trunkline up` starts it").into());
    };
    match settings.format {
        Format::Text => {
            terminal.print(&format!("The server `{}` starts again.\n", escape_control(server)))?;
        }
        _ => terminal.print(&report::document(&json!({ "restarted": server }), settings.format))?,
    }
    Ok(Outcome::Good)
}

fn restart_service(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let before = down::stop(environment, true)?;
    let now = up::start_again(environment)?;
    if settings.format != Format::Text {
        let value = json!({ "ended": before, "service": now });
        terminal.print(&report::document(&value, settings.format))?;
        return Ok(Outcome::Good);
    }
    terminal.print(&match before {
        Some(before) => {
            format!("The service runs again ({} instead of {}).\n", now.pid, before.pid)
        }
        None => format!("No service was running; it runs now ({}).\n", now.process()),
    })?;
    Ok(Outcome::Good)
}
