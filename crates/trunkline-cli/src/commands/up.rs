//! `trunkline up`: starts the background service, or runs it in this process.

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::arguments::{Format, UpArguments};
use crate::environment::ProcessEnv;
use crate::host::command_host::runtime;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::service::lock::{self, ServiceLock};
use crate::service::run::{IdleEnd, serve};
use crate::service::{start, unit_files};
use crate::settings::Settings;
use crate::socket::dial;
use crate::socket::hello::{BUILD, ServiceInfo, Wants};
use crate::socket::runtime_dir::RuntimeDir;

pub(crate) fn run(
    arguments: &UpArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    if let Some(supervisor) = arguments.print_unit {
        terminal.print(&unit_files::text(supervisor, environment)?)?;
    } else if arguments.detach {
        let detached = start::detach(environment);
        if let Err(error) = &detached {
            start::report(Some(&format!("{error:#}")));
        }
        detached?;
    } else if arguments.foreground {
        run_here(arguments, environment, terminal)?;
    } else {
        start_in_background(settings, environment, terminal)?;
    }
    Ok(Outcome::Good)
}

/// Runs the service in this process.
fn run_here(arguments: &UpArguments, environment: &ProcessEnv, terminal: &Terminal) -> Result<()> {
    let served = (|| {
        let folder = RuntimeDir::of(environment)?;
        if arguments.supervised {
            // The supervisor decides which process is the service.
            lock::end_holder(&folder)?;
        }
        let Some(lock) = ServiceLock::acquire(&folder)? else {
            return runs_already(arguments.report);
        };
        let idle = if arguments.supervised { IdleEnd::Stays } else { IdleEnd::Ends };
        let ready = || {
            if arguments.report {
                start::report(None);
            }
        };
        let runtime = runtime()?;
        let served = runtime.block_on(serve(lock, idle, (environment, terminal), ready));
        runtime.shutdown_background();
        served
    })();
    if let (Err(error), true) = (&served, arguments.report) {
        start::report(Some(&format!("{error:#}")));
    }
    served
}

/// Another process has become the service.
fn runs_already(is_reported: bool) -> Result<()> {
    match is_reported {
        true => start::report(None),
        false => bail!("another service is running; `trunkline down` ends it"),
    }
    Ok(())
}

fn start_in_background(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<()> {
    let folder = RuntimeDir::of(environment)?;
    let runtime = runtime()?;
    let running = runtime.block_on(dial::ask(&folder, Wants::Status))?;
    let has_run = running.is_some();
    let welcome = match running {
        Some(running) => running,
        None => {
            start::start(&folder, environment)?;
            runtime
                .block_on(dial::ask(&folder, Wants::Status))?
                .context("the service has ended at once")?
        }
    };
    let info = welcome.service;
    if settings.format != Format::Text {
        let value = json!({ "service": info, "started": !has_run });
        terminal.print(&report::document(&value, settings.format))?;
        return Ok(());
    }
    terminal.confirm(&started(&info, has_run))?;
    if info.build != BUILD {
        terminal.warn(&format!(
            "the service has version {}, and this program {BUILD}; `trunkline restart` replaces it",
            info.build
        ));
    }
    Ok(())
}

fn started(info: &ServiceInfo, has_run: bool) -> String {
    match has_run {
        true => format!("The service runs already ({}).\n", info.process()),
        false => format!(
            "The service runs in the background ({}); `trunkline down` ends it.\nHosts use it with the \
             command `trunkline connect`.\n",
            info.process()
        ),
    }
}

/// Starts the service again, for `restart`.
pub(crate) fn start_again(environment: &ProcessEnv) -> Result<ServiceInfo> {
    let folder = RuntimeDir::of(environment)?;
    start::start(&folder, environment)?;
    match runtime()?.block_on(dial::ask(&folder, Wants::Status))? {
        Some(welcome) => Ok(welcome.service),
        None => bail!("the service has ended at once; `trunkline logs` says why"),
    }
}
