//! `trunkline serve`: serves all servers as one MCP server, over HTTP or stdio.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
#[cfg(unix)]
use tracing::info;
use trunkline::config::{ColorStyle, Server, StartPolicy, Transport, escape_control};
use trunkline::connection::ChildOptions;
use trunkline_control::Activity;
use trunkline_gateway::{
    AcceptStatus, GatewayOptions, HttpService, Limits, Scope, Tokens, client_capabilities,
};

use crate::arguments::{Format, ServeArguments};
use crate::config::consent;
use crate::config::logins::{Browser, oauth};
use crate::control::gateway_lock::GatewayLock;
use crate::control::served_host::{PROJECT, ServedHost};
use crate::control::trust_requests::ProjectFiles;
use crate::control::{audit, control_of};
use crate::environment::ProcessEnv;
use crate::gateway::client_config::{ClientEndpoints, client_entry};
use crate::gateway::health::report_on;
use crate::gateway::reload::{ConfigReloader, ReloadStatus};
use crate::gateway::tokens::TokenFile;
use crate::host::command_host::{self, CommandHost};
use crate::host::host_builder;
use crate::host::relay_thread::RelayThread;
use crate::host::state::project_directory;
use crate::output::exit::Outcome;
use crate::output::report::{self, NOTHING_FOUND, plural};
use crate::output::stdio::is_disconnect;
use crate::output::terminal::Terminal;
#[cfg(unix)]
use crate::service::gateway_socket::GatewaySocket;
use crate::settings::{Settings, Verbosity};

pub(crate) fn run(
    arguments: &ServeArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let child_options = environment.child_options_soon();
    let (mut following, (mut loaded, mut agents)) = ConfigReloader::load(settings, environment)?;
    consent::warn_of_unsafe(&loaded, environment, terminal);
    let may_ask = loaded.consent_holds().is_some() && terminal.can_ask() && !arguments.stdio;
    let options = settings.load_options(environment, None);
    if may_ask && consent::ask(&options, environment, terminal)? {
        (following, (loaded, agents)) = ConfigReloader::load(settings, environment)?;
    }
    consent::say_held(&loaded, terminal);
    let tokens = arguments.tokens.as_ref();
    let tokens = tokens.map(|named| following.read_tokens(named.as_deref())).transpose()?;
    let options = options_of(arguments, tokens.as_ref().map(|(_, tokens)| tokens.clone()))?;
    terminal.say(&report::problems(&loaded, settings.verbosity, terminal.message_style()));
    let has_servers = loaded.config.servers().len() > 0;
    if let Some(file) =
        settings.config.as_ref().filter(|_| !has_servers && loaded.has_errors(false))
    {
        // With an explicit file, serving nothing until it is corrected would not be useful.
        bail!(
            "nothing can be served: no server of {} can be used",
            escape_control(&file.to_string_lossy())
        );
    }
    if loaded.origins.is_empty() && !loaded.has_errors(false) {
        terminal.tell(NOTHING_FOUND);
    }
    if loaded.config.servers().any(starts_process_at_once) {
        ChildOptions::start_watchdog();
    }
    let relay = RelayThread::start()?;
    let command = ServeCommand {
        arguments,
        relay: &relay,
        settings,
        environment,
        tokens: tokens.map(|(file, _)| file),
        addresses: ClientEndpoints::new(&loaded.config, &agents),
    };
    let builder = host_builder::builder_with(environment, child_options());
    let builder = host_builder::with_cache(builder, settings, environment)
        .oauth(oauth(settings, environment, browser_of(arguments)))
        .capabilities(client_capabilities())
        .connection_runtime(relay.handle().clone())
        .cache_write_delay(host_builder::CACHE_WRITE_DELAY);
    let builder = host_builder::with_state(builder, &loaded, environment);
    command_host::run((loaded, agents), builder, terminal, async |hosted, terminal| match arguments
        .stdio
    {
        true => command.over_streams(hosted, following, terminal).await,
        false => command.over_http(options, hosted, following, terminal).await,
    })
}

/// Where the browser of a user is. A client of another machine has it there, where a link to this one would lead nowhere.
fn browser_of(arguments: &ServeArguments) -> Browser {
    let is_alone = arguments.listen.ip().is_loopback() && arguments.tokens.is_none();
    let is_local = arguments.stdio || is_alone;
    if is_local { Browser::Local } else { Browser::Remote }
}

/// Whether a server is a process that starts with the gateway.
fn starts_process_at_once(server: &Server) -> bool {
    let is_process = matches!(server.transport, Transport::Stdio(_));
    let is_eager = server.behaviour.connect == StartPolicy::Eager;
    is_process && is_eager && server.enabled
}

/// The gateway options of the command line.
fn options_of(arguments: &ServeArguments, tokens: Option<Tokens>) -> Result<GatewayOptions> {
    let address = arguments.listen.ip();
    if !address.is_loopback() && tokens.is_none() {
        bail!(
            "{} can be reached by others, who could use every server\n  \
             give `--tokens` to let in only those who have a token (`trunkline token add NAME` \
             makes one), or listen on 127.0.0.1",
            arguments.listen
        );
    }
    let limits = Limits { requests_per_second: arguments.rate, ..Limits::default() };
    let mut hosts = arguments.hosts.clone();
    if !address.is_unspecified() {
        hosts.push(bracketed(address));
    }
    let tokens = tokens.unwrap_or_default();
    Ok(GatewayOptions { tokens, hosts, origins: arguments.origins.clone(), limits, observer: None })
}

/// An IP address as part of a URL.
fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Binds the listener.
async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => format!(
                "another program listens there, perhaps another `trunkline serve`; `--listen \
                 {}:0` takes a port that is free",
                bracketed(address.ip())
            ),
            ErrorKind::AddrNotAvailable => {
                "it is no address of this machine; 127.0.0.1 always is".to_owned()
            }
            ErrorKind::PermissionDenied => "ports below 1024 are not for everybody".to_owned(),
            _ => return anyhow!("cannot listen on {address}: {error}"),
        };
        anyhow!("cannot listen on {address}: {error}\n  {advice}")
    })
}

/// Keeps processes for commands of this user, while the gateway runs. Without a socket, commands start their own.
#[cfg(unix)]
fn serve_commands(hosted: &CommandHost, url: &str, environment: &ProcessEnv) {
    let directory = project_directory(&hosted.loaded, environment);
    match GatewaySocket::bind((&hosted.host, &directory), url, environment) {
        Ok(socket) => hosted.spawn(socket.serve()),
        Err(error) => info!(%error, "no processes are kept for commands"),
    }
}

#[cfg(not(unix))]
fn serve_commands(_: &CommandHost, _: &str, _: &ProcessEnv) {}

/// Reports whether connections can be accepted, whenever that changes.
async fn say_accept_changes(
    mut changes: mpsc::UnboundedReceiver<AcceptStatus>,
    terminal: &Terminal,
) -> Infallible {
    while let Some(status) = changes.recv().await {
        say_accepting(&status, terminal);
    }
    std::future::pending().await
}

/// Reports that connections cannot be accepted any more, or that they can again.
fn say_accepting(accepting: &AcceptStatus, terminal: &Terminal) {
    match accepting {
        AcceptStatus::Fails(error) => terminal.warn(&format!(
            "no connection can be accepted: {error}\n  \
             raise the limit of open files (`ulimit -n`), or use fewer clients and servers; new \
             connections wait meanwhile"
        )),
        AcceptStatus::Works => terminal.tell("connections are accepted again\n"),
    }
}

/// The state of the command before it listens.
struct ServeCommand<'a> {
    arguments: &'a ServeArguments,
    /// Relays between clients and servers.
    relay: &'a RelayThread,
    settings: &'a Settings,
    environment: &'a ProcessEnv,
    tokens: Option<TokenFile>,
    addresses: ClientEndpoints,
}

impl ServeCommand<'_> {
    async fn over_streams(
        &self,
        hosted: &CommandHost,
        following: ConfigReloader,
        terminal: &mut Terminal,
    ) -> Result<Outcome> {
        let (agent, bundles) = (self.arguments.agent.clone(), self.arguments.bundles.clone());
        let conversation = self.arguments.conversation.clone();
        let scope = Scope { agent, bundles, access: None, conversation };
        scope.check(&hosted.host).map_err(|none| hosted.unknown_caller(none))?;
        hosted.keep_running_until_closed();
        if terminal.has_keyboard() {
            terminal.tell(
                "Speaking MCP over standard input and output, as to a client that has started \
                 this; Ctrl-D ends it.\n",
            );
        }
        self.warn_of_no_server(hosted, terminal);
        let (input, output) = terminal.streams();
        let serving = trunkline_gateway::serve_stream(hosted.host.clone(), scope, input, output);
        // Where the servers are, so that messages do not change threads.
        let mut task = JoinSet::new();
        task.spawn_on(serving, self.relay.handle());
        let served = tokio::select! {
            Some(served) = task.join_next() => served.unwrap_or_else(|error| Err(error.into())),
            never = following.run(&hosted.host, terminal) => match never {},
            never = report_on(&hosted.host, terminal) => match never {},
        };
        match served {
            // A disconnected client is not a failure.
            Err(error) if is_disconnect(&error) => Ok(Outcome::Good),
            served => served.map(|()| Outcome::Good).context("standard input or output failed"),
        }
    }

    async fn over_http(
        &self,
        options: GatewayOptions,
        hosted: &CommandHost,
        following: ConfigReloader,
        terminal: &mut Terminal,
    ) -> Result<Outcome> {
        let listener = self.relay.handle().spawn(bind(self.arguments.listen)).await??;
        let url = self.url(listener.local_addr()?);
        // Without it, `trunkline page --address` makes no links for this gateway.
        let _lock = GatewayLock::acquire(listener.local_addr()?.port(), self.environment);
        let activity = Activity::default();
        let hosts = options.hosts.clone();
        let observer = Some(activity.observer(PROJECT));
        let status = ReloadStatus::default();
        let problems = report::problems(&hosted.loaded, Verbosity::Normal, ColorStyle::Plain);
        status.on_loaded(&hosted.loaded, self.environment.working_directory(), problems);
        let following = following.reporting_to(status.clone());
        let settings = *hosted.loaded.config.audit();
        audit::apply(&activity, PROJECT, settings, (self.environment, terminal));
        let source = Arc::new(self.source(hosted, status));
        let control = control_of(source, activity, hosts, self.environment, terminal);
        let options = GatewayOptions { observer, ..options };
        let routes = control.clone();
        let service = HttpService::new(hosted.host.clone(), options)
            .merge(move || trunkline_control::router(&routes));
        hosted.keep_running_until_closed();
        serve_commands(hosted, &url, self.environment);
        terminal.print(&match self.settings.format {
            Format::Text => format!("{url}\n"),
            Format::Json | Format::Raw => report::line(&self.addresses.as_json(&url)),
        })?;
        terminal.tell(&self.introduction(&url, hosted));
        let link = control.login_link(url.trim_end_matches("/mcp")).url;
        terminal.tell(&format!("The page, by a link that works once: {link}\n"));
        self.warn_of_no_server(hosted, terminal);
        self.warn(hosted, terminal);
        let host = hosted.host.clone();
        let ending = async move { host.shutdown_started().await };
        let (accepting, accept_changes) = mpsc::unbounded_channel();
        let serving = trunkline_gateway::serve(listener, service)
            .with_graceful_shutdown(ending)
            .on_accept_status(move |status| drop(accepting.send(status)));
        let mut task = JoinSet::new();
        task.spawn_on(serving.into_future(), self.relay.handle());
        let report = say_accept_changes(accept_changes, terminal);
        tokio::select! {
            Some(served) = task.join_next() => {
                let served = served.unwrap_or_else(|error| Err(error.into()));
                served.context("cannot listen any more")?;
            }
            never = report => match never {},
            never = following.run(&hosted.host, terminal) => match never {},
            never = report_on(&hosted.host, terminal) => match never {},
        }
        Ok(Outcome::Good)
    }

    fn source(&self, hosted: &CommandHost, status: ReloadStatus) -> ServedHost {
        let options = self.settings.load_options(self.environment, None);
        let files = ProjectFiles {
            project: PROJECT.to_owned(),
            options,
            environment: self.environment.clone(),
        };
        ServedHost {
            host: hosted.host.clone(),
            directory: project_directory(&hosted.loaded, self.environment),
            status,
            files: Some(files),
        }
    }

    /// The URL for clients. An unspecified address (`0.0.0.0`) cannot be used in a URL, so it is
    /// replaced.
    fn url(&self, listening: SocketAddr) -> String {
        let named = self.arguments.hosts.first();
        let authority = match (listening.ip(), named) {
            (address, None) if address.is_unspecified() && address.is_ipv4() => {
                format!("127.0.0.1:{}", listening.port())
            }
            (address, None) if address.is_unspecified() => format!("[::1]:{}", listening.port()),
            (address, Some(name)) if address.is_unspecified() => {
                let has_port =
                    name.rsplit_once(':').is_some_and(|(_, it)| it.parse::<u16>().is_ok());
                if has_port { name.clone() } else { format!("{name}:{}", listening.port()) }
            }
            _ => listening.to_string(),
        };
        format!("http://{authority}/mcp")
    }

    fn introduction(&self, url: &str, hosted: &CommandHost) -> String {
        let count = plural(hosted.host.servers().connections().len(), "server");
        let entry = client_entry(url, self.tokens.is_some());
        let scopes = self.addresses.scopes_as_text(url);
        format!(
            "Serving {count} at {url}; Ctrl-C ends it.\n{scopes}For the configuration of a client:\n\
             {entry}"
        )
    }

    /// Warns if all servers are switched off. A missing configuration has been reported.
    fn warn_of_no_server(&self, hosted: &CommandHost, terminal: &Terminal) {
        let reason = report::why_no_server(&hosted.loaded, &self.settings.written_config());
        if let Some(reason) = reason.filter(|_| hosted.loaded.config.servers().len() > 0) {
            terminal.warn(&reason);
        }
    }

    /// Warns of settings that may not be intended.
    fn warn(&self, hosted: &CommandHost, terminal: &Terminal) {
        let address = self.arguments.listen.ip();
        if address.is_unspecified() && self.arguments.hosts.is_empty() {
            terminal.warn(
                "requests under any other name than those of this machine itself are refused; \
                 `--allow-host NAME` allows one",
            );
        }
        let Some(file) = &self.tokens else { return };
        file.warn_if_open(terminal);
        file.warn_of_useless(&hosted.host, terminal);
        if !address.is_loopback() && self.settings.verbosity > Verbosity::Quiet {
            terminal.warn(
                "tokens are sent in clear over HTTP; on a network that is not yours alone, put \
                 something in front that speaks HTTPS",
            );
        }
    }
}
