//! `trunkline restart`: restarts the background service, or one of its servers.

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::{closest_match, escape_control};

use super::{down, up};
use crate::arguments::{Format, RestartArguments};
use crate::environment::ProcessEnv;
use crate::host::command_host::runtime;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;
use crate::socket::dial;
use crate::socket::endpoint::Endpoint;
use crate::socket::hello::{Wants, Welcome};
use crate::socket::runtime_dir::RuntimeDir;

/// Asks the service and gateways for something that concerns one of their servers. A server that none of them has is
/// an unknown one.
pub(crate) fn ask_for_server(
    server: &str,
    wants: impl Fn() -> Wants,
    environment: &ProcessEnv,
) -> Result<Vec<Value>> {
    let folder = RuntimeDir::of(environment)?;
    runtime()?.block_on(async {
        let (service, gateways) =
            tokio::join!(dial::ask(&folder, Wants::Status), dial::gateway_states(&folder));
        let service = service.transpose().map(|state| (Endpoint::service(&folder), state));
        let (mut running, mut hung) = (Vec::new(), None);
        for (endpoint, state) in service.into_iter().chain(gateways) {
            match state {
                Ok(state) => running.push((endpoint, state)),
                Err(error) => hung = hung.or(Some(error)),
            }
        }
        let is_found =
            |(_, state): &(Endpoint, Welcome)| server_names(&state.response).contains(&server);
        if let Some(error) = hung.filter(|_| !running.iter().any(is_found)) {
            // It may have the server.
            return Err(error);
        }
        if running.is_empty() {
            let failure = Failure::new(FailureKind::Unavailable, "no service is running");
            return Err(failure.with_hint("`trunkline up` starts it").into());
        }
        let mut responses = Vec::new();
        for (endpoint, _) in running.iter().filter(|it| is_found(it)) {
            if let Some(welcome) = dial::ask_endpoint(endpoint, &folder, wants()).await? {
                responses.push(welcome.response);
            }
        }
        if responses.is_empty() {
            let names = running.iter().flat_map(|(_, state)| server_names(&state.response));
            return Err(unknown_server(server, &names.collect::<Vec<_>>()).into());
        }
        Ok(responses)
    })
}

/// The names of the servers in the state of the service or of a gateway.
fn server_names(status: &Value) -> Vec<&str> {
    let projects = status["projects"].as_array().into_iter().flatten();
    let servers = projects.chain([status]).filter_map(|it| it["servers"].as_array()).flatten();
    let servers = servers.chain(status["commands"].as_array().into_iter().flatten());
    let ended = status["ended"].as_array().into_iter().flatten().filter_map(Value::as_str);
    servers.filter_map(|it| it["name"].as_str()).chain(ended).collect()
}

fn unknown_server(server: &str, names: &[&str]) -> Failure {
    let message = format!("no server `{}` runs in the background", escape_control(server));
    let unknown = |message| Failure::new(FailureKind::Unknown, message);
    match closest_match(server, names.iter().copied()) {
        Some(near) => {
            let near = escape_control(near);
            unknown(format!("{message}; did you mean `{near}`?")).suggesting(vec![near])
        }
        None => unknown(message).with_hint("`trunkline ps` lists those that do"),
    }
}

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
    let wants = || Wants::Restart { server: server.to_owned() };
    let answers = ask_for_server(server, wants, environment)?;
    // An older service does not name them.
    let directories = answers.iter().filter_map(|it| it["directories"].as_array()).flatten();
    let mut directories: Vec<_> = directories.filter_map(Value::as_str).collect();
    directories.sort_unstable();
    directories.dedup();
    let starts = answers.iter().any(|it| it["starts"].as_bool().unwrap_or(true));
    match settings.format {
        Format::Text => terminal.confirm(&restarted_text(server, starts, &directories))?,
        format => {
            let value = json!({ "restarted": server, "directories": directories });
            terminal.print(&report::document(&value, format))?;
        }
    }
    Ok(Outcome::Good)
}

/// What was restarted, and for which projects if these are several.
fn restarted_text(server: &str, starts: bool, directories: &[&str]) -> String {
    let (server, count) = (escape_control(server), directories.len());
    let several = directories.iter().map(|it| format!("  {}\n", escape_control(it)));
    match (starts, count) {
        (true, 0 | 1) => format!("The server `{server}` starts again.\n"),
        (true, _) => {
            let head = format!("The server `{server}` starts again in {count} projects:\n");
            std::iter::once(head).chain(several).collect()
        }
        (false, 0 | 1) => {
            format!("The process of `{server}` ends; the next command starts another.\n")
        }
        (false, _) => {
            let head = format!(
                "The processes of `{server}` end, in {count} directories; the next command starts another:\n"
            );
            std::iter::once(head).chain(several).collect()
        }
    }
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
    terminal.confirm(&match before {
        Some(before) => {
            format!("The service runs again ({} instead of {}).\n", now.pid, before.pid)
        }
        None => format!("No service was running; it runs now ({}).\n", now.process()),
    })?;
    Ok(Outcome::Good)
}
