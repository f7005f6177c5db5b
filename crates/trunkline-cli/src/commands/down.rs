//! `trunkline down`: ends the background service and its servers.

use anyhow::Result;
use serde_json::json;

use crate::arguments::Format;
use crate::environment::ProcessEnv;
use crate::host::command_host::runtime;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::service::lock;
use crate::settings::Settings;
use crate::socket::dial;
use crate::socket::hello::{ServiceInfo, Wants};
use crate::socket::runtime_dir::RuntimeDir;

pub(crate) fn run(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let ended = stop(environment, false)?;
    if settings.format != Format::Text {
        terminal.print(&report::document(&json!({ "ended": ended }), settings.format))?;
        return Ok(Outcome::Good);
    }
    terminal.confirm(&match ended {
        Some(info) => format!("The service ({}) and its servers have ended.\n", info.process()),
        None => "No service is running.\n".to_owned(),
    })?;
    Ok(Outcome::Good)
}

/// Ends the service, and waits until none of its processes is running; `None` if none ran.
pub(crate) fn stop(environment: &ProcessEnv, restarts: bool) -> Result<Option<ServiceInfo>> {
    let folder = RuntimeDir::of(environment)?;
    let asked = runtime()?.block_on(dial::ask(&folder, Wants::Stop { restarts }));
    // It holds the lock until its servers have ended, also if it cannot be reached.
    let Some(service) = lock::running(&folder)? else {
        return Ok(asked.ok().flatten().map(|welcome| welcome.service));
    };
    let is_ending = matches!(asked, Ok(Some(_)));
    if !is_ending || !lock::wait_until_ended(&folder, &service)? {
        lock::end_holder(&folder)?;
    }
    Ok(Some(service))
}
