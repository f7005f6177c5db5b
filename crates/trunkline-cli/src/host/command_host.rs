//! Runs one command on a host of the configuration, and stops its servers however the command ends.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline::catalog::ItemKind;
use trunkline::config::{LoadedConfig, closest_match, escape_control};
use trunkline::connection::{Connection, OrphanProcess, State};
use trunkline::error::Error;
use trunkline::host::{Host, HostBuilder, HostCaller, WaitFor};
use trunkline::name::{ConversationName, ServerName};
use trunkline::policy::{CallerSpec, Disclosure, Toggle, UnknownCaller};
use trunkline::view::View;

use super::caller::CallerOptions;
use super::elicitation::UserInput;
use super::host_builder::{builder, with_cache, with_roots, with_service, with_state};
use super::signals::Signals;
use crate::config::consent::{self, HeldServers};
use crate::config::load::Agents;
use crate::environment::ProcessEnv;
use crate::host_files::import_offer;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::roots::ServerRoots;
use crate::settings::{Settings, Verbosity};

const CHECK_SAYS: &str = "`trunkline check` says which";

/// Servers that are listed in the error for an unknown one; more would not be read.
const MAX_NAMED: usize = 12;

const INTERRUPTED: &str = "interrupted; the servers have been stopped";

const INTERRUPTED_TWICE: &str = "interrupted twice; the servers have been killed";

/// How long a command may take to send final messages; short enough not to be noticed at the
/// terminal.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The host and the configuration of a command.
pub(crate) struct CommandHost {
    pub(crate) host: Host,
    pub(crate) loaded: LoadedConfig,
    /// The roots of the servers.
    pub(crate) roots: Arc<ServerRoots>,
    until: Cell<Lifetime>,
    /// Processes that could not be stopped with their servers.
    remaining: RefCell<Vec<OrphanProcess>>,
    /// Tasks that end by themselves when the servers are shut down.
    tasks: RefCell<JoinSet<()>>,
}

/// When a command ends, and the meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// Ends when its work is done; a signal is a failure.
    Done,
    /// Runs until a signal, which is a success.
    Signal,
    /// The same, and it sends final messages when the servers stop.
    ServersEnd,
}

/// How problems of the configuration are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemDetail {
    /// In full: the command concerns all servers.
    Shown,
    /// In full, for a command that names a server: its error says if that server is not trusted.
    OfServer,
    /// As a count: the command concerns one item, and most problems have no effect on it.
    Counted,
}

impl ProblemDetail {
    /// The detail for a command that concerns all servers or one.
    pub(crate) fn of_list(server: Option<&str>) -> Self {
        if server.is_some() { Self::OfServer } else { Self::Shown }
    }
}

/// Loads the configuration, reports its problems, and runs a command on a host of it. The servers
/// are stopped when the command ends, also by a signal.
pub(crate) fn with_host(
    problems: ProblemDetail,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&CommandHost, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    let (loaded, agents) = consent::load(settings, environment, terminal)?;
    // Without any server, the problems are the reason why the command fails.
    let has_servers = loaded.config.servers().len() > 0;
    let is_counted = problems == ProblemDetail::Counted && has_servers;
    let said = match (is_counted, settings.verbosity) {
        (true, Verbosity::Quiet) => String::new(),
        (true, Verbosity::Normal) => report::problem_count(&loaded, &settings.written_config()),
        _ => report::problems(&loaded, settings.verbosity, terminal.message_style()),
    };
    let held = HeldServers::of(&loaded);
    if problems == ProblemDetail::Shown {
        held.say(terminal);
    }
    // With `--quiet`, problems are reported only if the command does not fail.
    let comes_last = settings.verbosity == Verbosity::Quiet && has_servers;
    if !comes_last {
        terminal.say(&said);
    }
    // Commands about many items report this themselves.
    if problems == ProblemDetail::Counted && !has_servers && settings.verbosity > Verbosity::Quiet {
        terminal.say(report::no_servers(&loaded));
        if loaded.origins.is_empty() {
            terminal.say(&import_offer(environment));
        }
    }
    let builder = with_cache(builder(environment), settings, environment);
    let builder = builder.cache_all_lists().start_lazily();
    let builder = match settings.server {
        // Toggles are for the servers of the project, and this one may have the name of one of them.
        Some(_) => builder,
        None => with_state(builder, &loaded, environment),
    };
    let roots = ServerRoots::new(&settings.roots, terminal.can_ask(), &loaded.config);
    let roots = Arc::new(roots);
    let builder = with_roots(with_service(builder, settings, environment, &roots), &roots);
    let result = run_with((loaded, agents, roots), builder, terminal, command);
    if problems != ProblemDetail::Shown && !held.explain(&result) {
        held.say(terminal);
    }
    if comes_last && result.is_ok() {
        terminal.say(&said);
    }
    result
}

/// Runs a command on a host of a configuration. Its problems have been reported, so that the host
/// starts regardless of them.
pub(crate) fn run(
    (loaded, agents): (LoadedConfig, Agents),
    builder: HostBuilder,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&CommandHost, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    run_with((loaded, agents, Arc::default()), builder, terminal, command)
}

/// The same with the roots that the servers are told.
fn run_with(
    (loaded, agents, roots): (LoadedConfig, Agents, Arc<ServerRoots>),
    builder: HostBuilder,
    terminal: &mut Terminal,
    command: impl AsyncFnOnce(&CommandHost, &mut Terminal) -> Result<Outcome>,
) -> Result<Outcome> {
    builder.chain().check(&loaded.config).map_err(Failure::from)?;
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let host = builder.config(loaded.clone()).agents(agents).allow_errors().start().await?;
        if let Some(problem) = host.conversations().problem() {
            let advice = "every server is switched off, because it may be one of those";
            terminal.warn(&format!("{problem}\n  {advice}"));
        }
        let until = Cell::new(Lifetime::Done);
        let (remaining, tasks) = Default::default();
        let hosted = CommandHost { host, loaded, roots, until, remaining, tasks };
        let mut signals = Signals::listen()?;
        let running = run_until_signal(&hosted, command(&hosted, terminal), &mut signals);
        let Some(result) = running.await else { return Err(anyhow!(INTERRUPTED_TWICE)) };
        terminal.clear_progress();
        let last = tokio::select! {
            last = hosted.shut_down() => last,
            () = signals.next() => return Err(anyhow!(INTERRUPTED_TWICE)),
        };
        let remaining = hosted.remaining.take();
        report_orphans(&[remaining, last].concat(), terminal);
        result
    });
    // Servers that were not shut down are killed when their tasks are dropped. The thread that
    // reads standard input may block forever.
    runtime.shutdown_timeout(if is_forced(&result) { LAST_WORDS } else { Duration::ZERO });
    result
}

/// Runs a command until it completes or a signal ends it; `None` on a second signal.
async fn run_until_signal(
    hosted: &CommandHost,
    running: impl Future<Output = Result<Outcome>>,
    signals: &mut Signals,
) -> Option<Result<Outcome>> {
    let mut running = pin!(running);
    tokio::select! {
        result = &mut running => return Some(result),
        () = signals.next() => {}
    }
    tokio::select! {
        result = hosted.wait_for_signal(running) => Some(result),
        () = signals.next() => None,
    }
}

/// Whether a second signal ended the command.
fn is_forced(result: &Result<Outcome>) -> bool {
    result.as_ref().is_err_and(|error| error.to_string() == INTERRUPTED_TWICE)
}

pub(crate) fn runtime() -> Result<Runtime> {
    let mut builder = runtime::Builder::new_multi_thread();
    // At least two, so that one long computation does not block all other tasks.
    let cores = thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    builder.worker_threads(cores).enable_all().build().context("cannot start")
}

impl CommandHost {
    /// Declares to servers that start from now on what the user can answer.
    pub(crate) fn offer_input(&self, input: &UserInput) {
        if let Some(capabilities) = input.capabilities() {
            self.host.declare_capabilities(&capabilities);
        }
    }

    /// Declares that the command runs until a signal.
    pub(crate) fn keep_running(&self) {
        self.until.set(Lifetime::Signal);
    }

    /// Declares that the command runs until the servers stop, and then ends by itself.
    pub(crate) fn keep_running_until_closed(&self) {
        self.until.set(Lifetime::ServersEnd);
    }

    /// Runs a task that ends by itself when the servers are shut down. The program waits for it.
    #[cfg(unix)]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.borrow_mut().spawn(task);
    }

    async fn shut_down(&self) -> Vec<OrphanProcess> {
        let mut tasks = self.tasks.take();
        let tasks = async { while tasks.join_next().await.is_some() {} };
        tokio::join!(self.host.shutdown(), tasks).0
    }

    /// The result of a command that a signal ends.
    async fn wait_for_signal(
        &self,
        running: impl Future<Output = Result<Outcome>>,
    ) -> Result<Outcome> {
        match self.until.get() {
            Lifetime::Done => Err(anyhow!(INTERRUPTED)),
            Lifetime::Signal => Ok(Outcome::Good),
            Lifetime::ServersEnd => {
                let (remaining, _) =
                    tokio::join!(self.host.shutdown(), timeout(LAST_WORDS, running));
                self.remaining.replace(remaining);
                Ok(Outcome::Good)
            }
        }
    }

    /// The caller's view, for its first use. Warns of toggles for servers that do not exist.
    pub(crate) fn view_with_warnings(
        &self,
        who: &CallerOptions<'_>,
        terminal: &Terminal,
    ) -> Result<View> {
        for (name, written) in &who.toggle_file.servers {
            if self.loaded.config.server(name.as_str()).is_none() {
                let unknown = self.no_server(name.as_str());
                terminal.warn(&format!("{}: {unknown}", written.location));
            }
        }
        self.view(who)
    }

    /// The caller's view of the current catalog.
    pub(crate) fn view(&self, who: &CallerOptions<'_>) -> Result<View> {
        Ok(self.caller(who)?.view().map_err(Failure::from)?)
    }

    /// The caller of the command.
    pub(crate) fn caller(&self, who: &CallerOptions<'_>) -> Result<HostCaller> {
        let mut switches = who.toggles();
        for name in &who.arguments.off {
            let server = self.find(name)?;
            if switches.get(&server) == Toggle::On {
                switches.set(&server, Toggle::Off);
            }
        }
        let bundles: Vec<&str> = who.arguments.bundles.iter().map(String::as_str).collect();
        let agent = who.arguments.agent.as_deref();
        // The user of the command line owns the configuration.
        let disclosure = Disclosure::Reasons;
        let conversation = who.arguments.conversation.as_ref().map(ConversationName::as_str);
        let bundles = &*bundles;
        let mut spec = CallerSpec { agent, bundles, conversation, ..CallerSpec::default() };
        (spec.switches, spec.disclosure) = (switches, disclosure);
        Ok(self.host.for_caller(spec).map_err(|none| self.unknown_caller(none))?)
    }

    /// The error for an unknown agent or bundle, with a hint if the configuration has errors.
    pub(crate) fn unknown_caller(&self, none: UnknownCaller) -> Failure {
        let failure = Failure::from(none);
        match self.loaded.has_errors(false) {
            true => failure.with_hint("the configuration has errors: `trunkline check` shows them"),
            false => failure,
        }
    }

    /// The enabled server with this name.
    pub(crate) fn find(&self, name: &str) -> Result<ServerName> {
        match self.host.servers().get(name) {
            Some(connection) => Ok(connection.server().name.clone()),
            None => Err(self.no_server(name).into()),
        }
    }

    /// The error for a name that is not an enabled server.
    fn no_server(&self, name: &str) -> Failure {
        let unknown = |message| Failure::new(FailureKind::Unknown, message);
        let shown = escape_control(name);
        if let Some(held) = self.held(name) {
            return held;
        }
        if self.loaded.config.server(name).is_some() {
            let message = format!("the server `{shown}` is switched off; set `enabled` to use it");
            return unknown(message);
        }
        if self.loaded.config.broken().iter().any(|broken| broken.as_str() == name) {
            let message = format!("the entry of server `{shown}` has errors");
            return unknown(message).with_hint(CHECK_SAYS);
        }
        let names = self.all();
        let known = || names.iter().map(ServerName::as_str);
        if let Some(near) = closest_match(name, known()) {
            let message = format!("there is no server `{shown}`; did you mean `{near}`?");
            return unknown(message).suggesting(vec![near.to_owned()]);
        }
        let listed = || known().map(escape_control).collect::<Vec<_>>().join(", ");
        let others = match names.len() {
            0 => "there are no servers".to_owned(),
            1 => format!("the only one is `{}`", listed()),
            count if count > MAX_NAMED => format!("there are {count} others"),
            _ => format!("there are {}", listed()),
        };
        unknown(format!("there is no server `{shown}`; {others}"))
    }

    /// The error for a server that is not started because its file is not trusted.
    pub(crate) fn held(&self, name: &str) -> Option<Failure> {
        let server = self.loaded.config.server(name)?;
        let hold = server.hold.as_ref()?;
        let shown = escape_control(server.name.as_str());
        let message = format!("server `{shown}` is not started: {hold}");
        let failure = Failure::new(FailureKind::Unavailable, message).of(&server.name);
        Some(failure.with_hint(consent::remedy(hold)))
    }

    /// The same for all servers.
    pub(crate) fn all_held(&self) -> Vec<Failure> {
        let names = self.loaded.config.servers().map(|server| server.name.as_str());
        names.filter_map(|name| self.held(name)).collect()
    }

    /// A note that the name would belong to a server with errors in its entry.
    pub(crate) fn broken_owner(&self, name: &str) -> Option<String> {
        let broken = self.loaded.config.broken().iter();
        let owner =
            broken.filter(|it| name.starts_with(it.as_str())).max_by_key(|it| it.as_str().len())?;
        Some(format!("the entry of server `{owner}` has errors: {CHECK_SAYS}"))
    }

    /// All enabled servers.
    pub(crate) fn all(&self) -> Vec<ServerName> {
        let connections = self.host.servers().connections();
        connections.iter().map(|it| it.server().name.clone()).collect()
    }

    /// The servers that can have items in a view.
    pub(crate) fn holders(&self, view: &View) -> Vec<ServerName> {
        let mut servers = self.all();
        servers.retain(|server| view.could_contain(server));
        servers
    }

    /// Starts all servers. Returns the errors of those that fail.
    pub(crate) async fn start_all(&self, terminal: &mut Terminal) -> Vec<Error> {
        let connections = self.host.servers().connections();
        self.with_progress(&connections, self.host.servers().connect_all(), terminal).await
    }

    /// Waits until the catalog contains the tools of all ready servers. Starts no server.
    pub(crate) async fn refresh_ready(&self) {
        let connections = self.host.servers().connections();
        let ready = connections.iter().filter(|it| it.status().state == State::Ready);
        let names: Vec<_> = ready.map(|it| it.server().name.clone()).collect();
        self.host.refresh_servers(&names, &[ItemKind::Tool], WaitFor::AllReady).await;
    }

    /// The servers with cached lists of these kinds (CON-15).
    pub(crate) fn cached(&self, asked: &[ServerName], kinds: &[ItemKind]) -> Vec<ServerName> {
        let servers = self.host.servers();
        let is_remembered = |name: &&ServerName| {
            let connection = servers.get(name.as_str());
            connection.is_some_and(|it| kinds.iter().all(|kind| it.is_recorded(*kind)))
        };
        asked.iter().filter(is_remembered).cloned().collect()
    }

    /// Refreshes the lists of servers. Returns the errors of those that fail.
    pub(crate) async fn refresh(
        &self,
        asked: &[ServerName],
        kinds: &[ItemKind],
        terminal: &mut Terminal,
    ) -> Vec<Error> {
        let servers = self.host.servers();
        let connections: Vec<_> =
            asked.iter().filter_map(|name| servers.get(name.as_str())).collect();
        let gathered = self.host.refresh_servers(asked, kinds, WaitFor::AllReady);
        let mut failures = self.with_progress(&connections, gathered, terminal).await;
        // A failed server with cached lists is not among the failures.
        for connection in connections {
            let name = &connection.server().name;
            let status = connection.status();
            let is_said = failures.iter().any(|error| error.server() == Some(name));
            if status.state == State::Failed && !is_said {
                failures.extend(status.last_error);
            }
        }
        // A stable order, independent of which server failed first.
        failures.sort_by(|a, b| a.server().cmp(&b.server()));
        failures
    }

    /// Shows progress while servers are refreshed.
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
                Some(_) = watch.next(), if !connections.is_empty() => terminal.progress(&progress(connections)),
            }
        };
        terminal.clear_progress();
        failures
    }
}

/// The progress of starting servers.
fn progress(connections: &[Arc<Connection>]) -> String {
    let is_on = |state| matches!(state, State::Idle | State::Starting);
    let waiting: Vec<_> =
        connections.iter().filter(|connection| is_on(connection.status().state)).collect();
    let names: Vec<_> = waiting
        .iter()
        .take(3)
        .map(|connection| escape_control(connection.server().name.as_str()))
        .collect();
    let others = if waiting.len() > names.len() { ", …" } else { "" };
    let (done, all) = (connections.len() - waiting.len(), connections.len());
    format!("starting servers, {done} of {all} done: {}{others}", names.join(", "))
}

/// Warns of processes that could not be stopped with their servers.
pub(crate) fn report_orphans(remaining: &[OrphanProcess], terminal: &Terminal) {
    for OrphanProcess { server, process } in remaining {
        let (server, program) = (escape_control(server.as_str()), escape_control(&process.program));
        let id = process.id;
        terminal.warn(&format!(
            "server `{server}`: its process {id} (`{program}`) could not be ended; it is still \
             running, and `kill -9 {id}` by its owner ends it"
        ));
    }
}

/// Reports why servers are unavailable.
pub(crate) fn report_failures(failures: &[Error], terminal: &Terminal) {
    for error in failures {
        terminal.say(&format!("error: {}\n", Failure::unavailable(error)));
    }
}
