//! The host of the configuration, made for one command and ended with it, however it ends.

use std::cell::Cell;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use tokio::runtime::{self, Runtime};
use trunkline::catalog::Kind;
use trunkline::config::{Loaded, printable};
use trunkline::connection::{Connection, Options, State};
use trunkline::error::Error;
use trunkline::host::{Host, HostOptions, Patience};
use trunkline::name::ServerName;
use trunkline::policy::{Switch, Switches, Who};
use trunkline::view::View;

use crate::arguments::WhoArguments;
use crate::environment::Environment;
use crate::exit::{Failure, FailureKind, Outcome};
use crate::loading::{self, Agents};
use crate::report;
use crate::settings::Settings;
use crate::terminal::Terminal;

const INTERRUPTED: &str = "interrupted; the servers have been stopped";

/// What a command works with.
pub(crate) struct Hosted {
    pub(crate) host: Host,
    pub(crate) loaded: Loaded,
    /// Whether the command goes on until a signal ends it, which is no failure then.
    goes_on: Cell<bool>,
}

/// Which servers are asked for what they have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'n> {
    All,
    Only(&'n [ServerName]),
}

/// Loads the configuration, says what is wrong with it, and runs a command on a host of it. Its
/// servers are stopped when the command ends, and when a signal ends it.
pub(crate) fn with_host(
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&Hosted, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    let (loaded, agents) = loading::load(settings, environment, None);
    terminal.say(&report::problems(&loaded, settings.verbosity, terminal.message_style()));
    let options = match environment.memory_directory() {
        Some(folder) => options(environment).with_memory_in(folder),
        None => options(environment),
    };
    run((loaded, agents), options, terminal, command)
}

/// What connections need of this process.
pub(crate) fn options(environment: &Arc<Environment>) -> Options {
    let resolver = Arc::clone(environment) as _;
    Options::new(resolver, environment.child_options(), environment.http_options())
}

/// Runs a command on a host of a configuration.
pub(crate) fn run(
    (loaded, agents): (Loaded, Agents),
    options: Options,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&Hosted, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    runtime()?.block_on(async {
        let host = Host::start(loaded.config.clone(), agents, HostOptions::new(options));
        let hosted = Hosted { host, loaded, goes_on: Cell::new(false) };
        let result = tokio::select! {
            result = command(&hosted, terminal) => result,
            signal = asked_to_end() => match signal {
                Ok(()) if hosted.goes_on.get() => Ok(Outcome::Good),
                Ok(()) => Err(anyhow!(INTERRUPTED)),
                Err(error) => Err(error),
            },
        };
        terminal.clear_progress();
        hosted.host.shutdown().await;
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

impl Hosted {
    /// Says that the command goes on until a signal ends it.
    pub(crate) fn go_on(&self) {
        self.goes_on.set(true);
    }

    /// What somebody sees, of what is known now.
    pub(crate) fn view(&self, who: &WhoArguments) -> Result<View> {
        let mut switches = Switches::default();
        for name in &who.off {
            switches.set(&self.find(name)?, Switch::Off);
        }
        let bundles: Vec<&str> = who.bundles.iter().map(String::as_str).collect();
        let who = Who { agent: who.agent.as_deref(), bundles: &bundles, switches };
        Ok(self.host.view(who).map_err(Failure::from)?)
    }

    /// The server of a name, which is switched on.
    pub(crate) fn find(&self, name: &str) -> Result<ServerName> {
        if let Some(connection) = self.host.servers().get(name) {
            return Ok(connection.server().name.clone());
        }
        let connections = self.host.servers().connections();
        let names: Vec<_> = connections.iter().map(|it| it.server().name.as_str()).collect();
        let is_there = self.loaded.config.server(name);
        let name = printable(name);
        let message = match is_there {
            Some(_) => format!("the server `{name}` is switched off; set `enabled` to use it"),
            None if names.is_empty() => {
                format!("there is no server `{name}`; there are no servers")
            }
            None => format!("there is no server `{name}`; there are {}", names.join(", ")),
        };
        Err(Failure::new(FailureKind::Unknown, message).into())
    }

    /// Starts every server. Returns why those cannot be used that cannot.
    pub(crate) async fn start_all(&self, terminal: &mut Terminal) -> Vec<Error> {
        let connections = self.host.servers().connections();
        self.with_progress(&connections, self.host.servers().connect_all(), terminal).await
    }

    /// Waits until the catalog holds the tools of every server that is ready. No server is started.
    pub(crate) async fn look_at_ready(&self) {
        let connections = self.host.servers().connections();
        let ready = connections.iter().filter(|it| it.status().state == State::Ready);
        let names: Vec<_> = ready.map(|it| it.server().name.clone()).collect();
        self.host.gather_of(&names, &[Kind::Tool], Patience::UntilAllAreReady).await;
    }

    /// Asks servers for what they have of some kinds. Returns why those cannot be used that cannot.
    pub(crate) async fn gather(
        &self,
        asked: Asked<'_>,
        kinds: &[Kind],
        terminal: &mut Terminal,
    ) -> Vec<Error> {
        let patience = Patience::UntilAllAreReady;
        let servers = self.host.servers();
        let (connections, mut failures) = match asked {
            Asked::All => {
                let connections = servers.connections();
                let gathered = self.host.gather(kinds, patience);
                let failures = self.with_progress(&connections, gathered, terminal).await;
                (connections, failures)
            }
            Asked::Only(names) => {
                let connections: Vec<_> =
                    names.iter().filter_map(|name| servers.get(name.as_str())).collect();
                let gathered = self.host.gather_of(names, kinds, patience);
                let failures = self.with_progress(&connections, gathered, terminal).await;
                (connections, failures)
            }
        };
        // What is remembered of a server is there also when it is down.
        for connection in connections {
            let name = &connection.server().name;
            let status = connection.status();
            let is_said = failures.iter().any(|error| error.server() == Some(name));
            if status.state == State::Failed && !is_said {
                failures.extend(status.last_error);
            }
        }
        failures
    }

    /// Waits for servers, and shows how far they are.
    async fn with_progress(
        &self,
        connections: &[Arc<Connection>],
        work: impl Future<Output = Vec<Error>>,
        terminal: &mut Terminal,
    ) -> Vec<Error> {
        let mut watch = self.host.servers().watch();
        let mut work = std::pin::pin!(work);
        let failures = loop {
            tokio::select! {
                failures = &mut work => break failures,
                Some(_) = watch.next() => terminal.progress(&progress(connections)),
            }
        };
        terminal.clear_progress();
        failures
    }
}

/// How far the start of servers is.
fn progress(connections: &[Arc<Connection>]) -> String {
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

/// Says why servers cannot be used.
pub(crate) fn say_failures(failures: &[Error], terminal: &Terminal) {
    for error in failures {
        terminal.say(&format!("error: {}\n", Failure::unavailable(error)));
    }
}
