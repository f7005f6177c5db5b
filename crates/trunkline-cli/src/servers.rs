//! The servers of the configuration, started for one command and stopped at its end, however it ends.

use std::cell::Cell;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use tokio::runtime::{self, Runtime};
use trunkline::config::{self, Loaded, printable};
use trunkline::connection::{Options, State};
use trunkline::error::Error;
use trunkline::registry::{Registry, ServerSet};

use crate::environment::Environment;
use crate::exit::Outcome;
use crate::report;
use crate::settings::Settings;
use crate::terminal::Terminal;

const INTERRUPTED: &str = "interrupted; the servers have been stopped";

/// What a command works with.
pub(crate) struct Servers {
    pub(crate) set: ServerSet,
    pub(crate) loaded: Loaded,
    /// Whether the command goes on until a signal ends it, which is no failure then.
    goes_on: Cell<bool>,
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
    let options = match environment.memory_directory() {
        Some(folder) => options(environment).with_memory_in(folder),
        None => options(environment),
    };
    run(loaded, options, terminal, command)
}

/// What connections need of this process.
pub(crate) fn options(environment: &Arc<Environment>) -> Options {
    let resolver = Arc::clone(environment) as _;
    Options::new(resolver, environment.child_options(), environment.http_options())
}

/// Runs a command on the servers of a configuration.
pub(crate) fn run(
    loaded: Loaded,
    options: Options,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&Servers, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    runtime()?.block_on(async {
        let set = Registry::new(options).open(&loaded.config);
        let servers = Servers { set, loaded, goes_on: Cell::new(false) };
        let result = tokio::select! {
            result = command(&servers, terminal) => result,
            signal = asked_to_end() => match signal {
                Ok(()) if servers.goes_on.get() => Ok(Outcome::Good),
                Ok(()) => Err(anyhow!(INTERRUPTED)),
                Err(error) => Err(error),
            },
        };
        terminal.clear_progress();
        servers.set.close().await;
        result
    })
}

pub(crate) fn runtime() -> Result<Runtime> {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().context("cannot start")
}

/// Waits for a signal that asks us to end.
async fn asked_to_end() -> Result<()> {
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
    Ok(())
}

impl Servers {
    /// Says that the command goes on until a signal ends it.
    pub(crate) fn go_on(&self) {
        self.goes_on.set(true);
    }

    /// Starts every server and says which cannot be used.
    pub(crate) async fn start_all(&self, terminal: &mut Terminal) -> Vec<Error> {
        let mut watch = self.set.watch();
        let mut started = std::pin::pin!(self.set.connect_all());
        let failures = loop {
            tokio::select! {
                failures = &mut started => break failures,
                Some(_) = watch.next() => terminal.progress(&self.progress()),
            }
        };
        terminal.clear_progress();
        failures
    }

    /// How far the start of the servers is.
    fn progress(&self) -> String {
        let connections = self.set.connections();
        let is_on = |state| matches!(state, State::Idle | State::Starting);
        let waiting: Vec<_> =
            connections.iter().filter(|connection| is_on(connection.status().state)).collect();
        let names: Vec<_> = waiting
            .iter()
            .take(3)
            .map(|connection| printable(connection.server().name.as_str()))
            .collect();
        let others = if waiting.len() > names.len() { ", …" } else { "" };
        let (done, all) = (connections.len() - waiting.len(), connections.len());
        format!("starting servers, {done} of {all} done: {}{others}", names.join(", "))
    }
}

/// Why a server cannot be used, for people.
pub(crate) fn failure_text(error: &Error) -> String {
    let hint = error.hint().map_or(String::new(), |hint| format!("\n  {}", printable(hint)));
    format!("error: {}{hint}\n", printable(&error.to_string()))
}
