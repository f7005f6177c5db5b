//! The servers of the configuration, started for one command and stopped at its end, however it ends.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tokio::runtime::{self, Runtime};
use trunkline::config::{self, Loaded};
use trunkline::connection::Options;
use trunkline::error::Error;
use trunkline::registry::Registry;

use crate::environment::Environment;
use crate::exit::Outcome;
use crate::report;
use crate::settings::Settings;
use crate::terminal::Terminal;

/// What a command works with.
pub(crate) struct Servers {
    pub(crate) registry: Registry,
    pub(crate) loaded: Loaded,
}

/// Loads the configuration, says what is wrong with it, and runs a command on its servers. They are
/// stopped when the command ends, and when a signal ends it.
pub(crate) fn with_servers(
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&Servers, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    let loaded = config::load(&**environment, &settings.load_options(environment, None));
    terminal.say(&report::problems(&loaded, settings.verbosity, terminal.message_style()));
    run(loaded, environment, terminal, command)
}

/// Runs a command on the servers of a configuration.
pub(crate) fn run(
    loaded: Loaded,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&Servers, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    let resolver = Arc::clone(environment) as _;
    let options = Options::new(resolver, environment.child_options(), environment.http_options());
    runtime()?.block_on(async {
        let registry = Registry::new(&loaded.config, &options);
        let servers = Servers { registry, loaded };
        let result = tokio::select! {
            result = command(&servers, terminal) => result,
            signal = ended_by_signal() => signal,
        };
        terminal.clear_progress();
        servers.registry.close_all().await;
        result
    })
}

pub(crate) fn runtime() -> Result<Runtime> {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().context("cannot start")
}

/// Waits for a signal that asks us to end.
async fn ended_by_signal() -> Result<Outcome> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result?,
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    bail!("interrupted; the servers have been stopped")
}

impl Servers {
    /// Starts every server and says which cannot be used.
    pub(crate) async fn start_all(&self, terminal: &mut Terminal) -> Vec<Error> {
        let count = self.registry.connections().len();
        terminal.progress(&format!("starting {}…", report::plural(count, "server")));
        let failures = self.registry.connect_all().await;
        terminal.clear_progress();
        failures
    }
}

/// Why a server cannot be used, for people.
pub(crate) fn failure_text(error: &Error) -> String {
    let hint = error.hint().map_or(String::new(), |hint| format!("\n  {hint}"));
    format!("error: {error}{hint}\n")
}
