//! The service itself: accepts clients, and ends when it is told to, or when it has had no client for long.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};
use tracing::{info, warn};
use trunkline::config::CHAIN_VARIABLE;
use trunkline::error::{Error, ErrorKind};
use trunkline::host::Host;
use trunkline::name::ConversationName;
use trunkline_gateway::{Scope, StreamOptions, serve_stream};

use super::lock::ServiceLock;
use super::page::ServicePage;
use super::process_pool::ProcessPool;
use super::projects::Projects;
use super::socket_client::{SocketClient, accept};
use super::start;
use crate::environment::ProcessEnv;
use crate::host::signals::Signals;
use crate::output::terminal::Terminal;
use crate::socket::dial::line;
use crate::socket::hello::{
    ClientEnvironment, EndReason, Goodbye, ServiceInfo, StderrSource, Wants, Welcome,
};

/// How long a service without clients waits for the next one.
const IDLE: Duration = Duration::from_secs(15 * 60);

/// The interval of looking for idle projects.
const SWEEP: Duration = Duration::from_secs(10);

/// How long clients may take to read the last line.
const GOODBYE: Duration = Duration::from_secs(2);

/// The interval of checking that clients find the service.
const CHECK: Duration = Duration::from_secs(2);

/// The error for a server of this service that is its client, and hides that by its environment (CON-16).
const LOOP: &str = "this client was started by a server of the service, without the variables that tell which \
                    one: it would be a server of itself";

/// Ancestors of a process that are looked at.
const MAX_ANCESTORS: usize = 64;

/// When a service without clients ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleEnd {
    /// After a while.
    Ends,
    /// Never: a supervisor would start it again.
    Stays,
}

/// Serves clients until the service is stopped. When this returns, no server is running.
pub(crate) async fn serve(
    mut lock: ServiceLock,
    idle: IdleEnd,
    (environment, terminal): (&ProcessEnv, &Terminal),
    ready: impl FnOnce(),
) -> Result<()> {
    // `StandardInput=socket` of systemd.
    let listener = match Terminal::listening_socket() {
        Some(socket) => socket.into(),
        None => lock.bind()?,
    };
    lock.record()?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let mut signals = Signals::listen()?;
    ready();
    let (projects, end) = (Projects::default(), watch::Sender::new(None));
    if let Ok(log) = start::log_file(environment) {
        projects.set_log(log);
    }
    let page = ServicePage::start(&projects, environment, terminal).await;
    let processes = ProcessPool::new(environment.child_options());
    let service = Arc::new(Service { projects, processes, page, end, started: Instant::now() });
    let ServiceInfo { pid, build, .. } = ServiceInfo::of_process();
    info!(pid, build, "service started");
    let mut clients = JoinSet::new();
    tokio::select! {
        () = accept(&listener, &mut clients, |it| on_client(it, Arc::clone(&service))) => {}
        _ = service.ended() => {}
        () = service.idle(idle) => service.end(EndCause::Idle),
        () = unreachable(&lock) => {
            warn!("clients cannot find this service any more: its socket or lock was removed");
            service.end(EndCause::Unreachable);
        }
        () = signals.next() => service.end(EndCause::Signal),
    }
    // Clients that come from now on wait for the next service.
    drop(listener);
    info!(reason = ?*service.end.borrow(), "service ends");
    tokio::select! {
        () = async {
            // Each says goodbye to its client. One that does not read must not hold the others.
            let _ = timeout(GOODBYE, async { while clients.join_next().await.is_some() {} }).await;
            clients.shutdown().await;
            tokio::join!(service.projects.close_all(), service.processes.close_all());
        } => {}
        () = signals.next() => warn!("interrupted twice; the servers are killed"),
    }
    lock.release();
    Ok(())
}

/// Waits until clients cannot find the service.
async fn unreachable(lock: &ServiceLock) {
    let mut check = interval(CHECK);
    loop {
        check.tick().await;
        if !lock.is_reachable() {
            return;
        }
    }
}

/// Why the service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// `trunkline down`.
    Down,
    /// `trunkline restart`.
    Restart,
    /// A signal: of a supervisor, or of `trunkline down` if the service had not responded.
    Signal,
    /// No client for long.
    Idle,
    /// Its socket or its lock was removed.
    Unreachable,
}

impl EndCause {
    /// The reason that clients of `connect` are told.
    fn reason(self) -> EndReason {
        match self {
            Self::Down | Self::Signal | Self::Idle => EndReason::Stopped,
            Self::Restart => EndReason::Restarts,
            Self::Unreachable => EndReason::Unreachable,
        }
    }

    /// The error of a command that uses a process of the service.
    fn process_error(self) -> Error {
        let how = match self {
            Self::Down => "was stopped by `trunkline down`",
            Self::Restart => "was stopped by `trunkline restart`",
            Self::Signal => "was stopped by a signal or `trunkline down`",
            Self::Idle => "was stopped: it had no client",
            Self::Unreachable => "was stopped: its socket or its lock was removed",
        };
        let message = format!("the background service, which had its process, {how}");
        Error::new(ErrorKind::Exited, message).with_hint("the next command starts its own process")
    }
}

struct Service {
    projects: Projects,
    processes: ProcessPool,
    page: ServicePage,
    end: watch::Sender<Option<EndCause>>,
    started: Instant,
}

impl Service {
    fn end(&self, cause: EndCause) {
        self.end.send_modify(|end| *end = end.or(Some(cause)));
    }

    /// Waits until the service ends.
    async fn ended(&self) -> EndCause {
        let mut end = self.end.subscribe();
        let end = end.wait_for(Option::is_some).await;
        end.ok().and_then(|end| *end).unwrap_or(EndCause::Signal)
    }

    /// Closes idle projects, until the service itself has been idle for long.
    async fn idle(&self, idle: IdleEnd) {
        let mut sweep = interval(SWEEP);
        loop {
            sweep.tick().await;
            self.projects.close_idle().await;
            let (clients, since) = self.projects.clients();
            if self.page.is_watched() {
                continue;
            }
            let (is_in_use, last_used) = self.processes.use_state();
            let since = since.max(last_used).unwrap_or(self.started).max(self.started);
            if clients == 0 && !is_in_use && since.elapsed() > IDLE && idle == IdleEnd::Ends {
                return;
            }
        }
    }
}

async fn on_client(mut client: SocketClient, service: Arc<Service>) {
    let wants = tokio::select! {
        wants = client.wants() => wants,
        // The client tries again, with the next service.
        _ = service.ended() => return,
    };
    let result = match wants {
        Ok(Some(wants)) => respond(wants, &service, client).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        info!(%error, "the connection of a client failed");
    }
}

async fn respond(wants: Wants, service: &Service, mut client: SocketClient) -> io::Result<()> {
    let welcome = match wants {
        Wants::Mcp(environment)
            if !environment.has_variable(CHAIN_VARIABLE) && is_own_descendant(client.process) =>
        {
            Welcome::refusal(LOOP.to_owned())
        }
        Wants::Mcp(environment) => return serve_client(&environment, service, client).await,
        Wants::Process(request) => {
            let stopped = async { service.ended().await.process_error() };
            return client.use_process(&request, &service.processes, stopped).await;
        }
        Wants::Status => Welcome::with(status(service)),
        Wants::Restart { server } => {
            let kept = service.processes.restart(&server);
            let directories = service.projects.restart(&server).await;
            let starts = !directories.is_empty();
            match kept {
                None if !starts => Welcome::refusal(no_server(&server)),
                kept => {
                    let directories = if starts { directories } else { kept.unwrap_or_default() };
                    Welcome::with(json!({ "starts": starts, "directories": directories }))
                }
            }
        }
        Wants::Stderr { server, by_project } => {
            let kept = service.processes.stderr(&server);
            let sources =
                StderrSource::join(service.projects.stderr(&server).into_iter().chain(kept));
            match (sources.is_empty(), by_project) {
                (true, _) => Welcome::refusal(no_server(&server)),
                (false, true) => Welcome::with(json!(sources)),
                (false, false) => {
                    let lines: Vec<_> = sources.into_iter().flat_map(|it| it.lines).collect();
                    Welcome::with(json!(lines))
                }
            }
        }
        Wants::Page => match service.page.link() {
            Ok(url) => Welcome::with(json!({ "url": url })),
            Err(problem) => Welcome::refusal(problem),
        },
        Wants::Stop { restarts } => {
            service.end(if restarts { EndCause::Restart } else { EndCause::Down });
            Welcome::with(Value::Bool(true))
        }
    };
    client.write(&welcome).await
}

/// Whether a process was started by this one, or by a process that was.
fn is_own_descendant(process: Option<i32>) -> bool {
    let own = i32::try_from(std::process::id()).ok();
    let mut ancestor = process.and_then(parent);
    for _ in 0..MAX_ANCESTORS {
        match ancestor {
            Some(it) if Some(it) == own => return true,
            Some(it) if it > 1 => ancestor = parent(it),
            _ => return false,
        }
    }
    false
}

/// The parent of a process, where the system tells.
fn parent(process: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn no_server(server: &str) -> String {
    let shown = trunkline::config::escape_control(server);
    format!("no client of the service has a server `{shown}`")
}

fn status(service: &Service) -> Value {
    let (clients, _) = service.projects.clients();
    let mut status = service.projects.status();
    status["clients"] = json!(clients);
    status["commands"] = json!(service.processes.status());
    status["ended"] = json!(service.processes.ended_servers());
    status["page"] = json!(service.page.address());
    status["uptimeSeconds"] = json!(service.started.elapsed().as_secs());
    status
}

/// Serves an MCP session.
async fn serve_client(
    environment: &ClientEnvironment,
    service: &Service,
    mut client: SocketClient,
) -> io::Result<()> {
    let project = match service.projects.open(environment).await {
        Ok(Some(project)) => project,
        // The service ends: the client tries again, with the next one.
        Ok(None) => return Ok(()),
        Err(error) => return client.write(&Welcome::refusal(format!("{error:#}"))).await,
    };
    let conversation =
        match environment.conversation.as_deref().map(ConversationName::new).transpose() {
            Ok(conversation) => conversation,
            Err(error) => return client.write(&Welcome::refusal(error.to_string())).await,
        };
    let scope = Scope {
        agent: environment.agent.clone(),
        bundles: environment.bundles.clone(),
        access: None,
        conversation,
    };
    let Some(host) = project.host() else { return Ok(()) };
    if let Err(unknown) = scope.check(host) {
        return client.write(&Welcome::refusal(unknown.to_string())).await;
    }
    client.write(&Welcome::with(json!({ "notice": project.notice() }))).await?;
    let options = StreamOptions { scope, observer: project.observer() };
    serve_until_end((host.clone(), options), service, client).await
}

/// Serves an MCP session until the client or the service ends.
async fn serve_until_end(
    (host, options): (Host, StreamOptions),
    service: &Service,
    client: SocketClient,
) -> io::Result<()> {
    let SocketClient { lines, mut writer, .. } = client;
    let cause = tokio::select! {
        served = serve_stream(host, options, lines.into_reader(), &mut writer) => return served,
        cause = service.ended() => cause,
    };
    // A message may have been written in part.
    writer.write_all(b"\n").await?;
    writer.write_all(&line(&Goodbye { trunkline: cause.reason() })?).await?;
    writer.flush().await
}
