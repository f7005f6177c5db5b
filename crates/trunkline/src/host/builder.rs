//! Builds a host from configuration text, files or values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::config_source::{ConfigSource, load};
use super::start_error::StartError;
use super::toggle_store::ToggleStore;
use super::{Host, HostConfig, HostOptions};
use crate::auth::AuthProvider;
use crate::config::{
    self, Access, Agent, Chain, EmptyResolver, Environment, LoadOptions, LoadedConfig, Resolver,
    Restart,
};
use crate::connection::{CallHandler, ChildOptions, ConnectionOptions, HttpOptions, StreamSource};
#[cfg(feature = "env")]
use crate::env::SystemEnv;
use crate::message::Raw;
use crate::name::AgentName;
use crate::oauth::OAuth;
use crate::registry::{ConnectionPool, Registry};

/// Builds a [`Host`].
///
/// ```
/// use trunkline::Host;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let host = Host::builder()
///     .config_text("mcp.json", r#"{ "mcpServers": { "docs": { "command": "docs-server" } } }"#)
///     .start()
///     .await?;
/// assert_eq!(host.status()[0].server.as_str(), "docs");
/// host.shutdown().await;
/// # Ok::<(), trunkline::host::StartError>(()) }).unwrap();
/// ```
#[must_use = "a host is started with `start`"]
pub struct HostBuilder {
    source: ConfigSource,
    agents: Option<BTreeMap<AgentName, Agent>>,
    allows_errors: bool,
    is_lazy: bool,
    environment: Option<Arc<dyn Environment + Send + Sync>>,
    resolver: Arc<dyn Resolver + Send + Sync>,
    /// Determined at first use unless it is set: that inspects the processes above this one.
    child: OnceLock<ChildOptions>,
    http: HttpSource,
    cache_dir: Option<PathBuf>,
    caches_all_lists: bool,
    cache_write_delay: Duration,
    capabilities: Option<Raw>,
    handler: Option<Arc<dyn CallHandler>>,
    reserved: BTreeSet<Box<str>>,
    streams: Option<Arc<dyn StreamSource>>,
    connection_runtime: Option<Handle>,
    oauth: Option<OAuth>,
    auth_providers: Vec<(Box<str>, Arc<dyn AuthProvider>)>,
    registry: Option<Registry>,
    pool: Option<(ConnectionPool, PathBuf)>,
    max_access: Access,
    restart: Option<Restart>,
    toggle_store: Option<Arc<dyn ToggleStore>>,
}

/// Where the options for HTTP come from.
enum HttpSource {
    Options(HttpOptions),
    /// Variables and certificate files, read when the host starts.
    #[cfg(feature = "env")]
    Environment(Arc<SystemEnv>),
}

impl HttpSource {
    fn read(self) -> HttpOptions {
        match self {
            Self::Options(options) => options,
            #[cfg(feature = "env")]
            Self::Environment(system) => system.http_options(),
        }
    }
}

/// Options of child processes that inherit no variables.
fn without_environment() -> ChildOptions {
    ChildOptions::from_environment(std::iter::empty())
}

impl Host {
    /// Starts to build a host. Without further calls it has no servers.
    pub fn builder() -> HostBuilder {
        HostBuilder {
            source: ConfigSource::Loaded(Box::new(config::parse("mcp.json", "{}"))),
            agents: None,
            allows_errors: false,
            is_lazy: false,
            environment: None,
            resolver: Arc::new(EmptyResolver),
            child: OnceLock::new(),
            http: HttpSource::Options(HttpOptions::default()),
            cache_dir: None,
            caches_all_lists: false,
            cache_write_delay: Duration::ZERO,
            capabilities: None,
            handler: None,
            reserved: BTreeSet::new(),
            streams: None,
            connection_runtime: None,
            oauth: None,
            auth_providers: Vec::new(),
            registry: None,
            pool: None,
            max_access: Access::ReadWrite,
            restart: None,
            toggle_store: None,
        }
    }
}

impl HostBuilder {
    /// Uses the text of a configuration file. The name is for messages.
    pub fn config_text(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.config(config::parse(name, text))
    }

    /// Uses a configuration that was loaded before.
    pub fn config(self, loaded: LoadedConfig) -> Self {
        Self { source: ConfigSource::Loaded(Box::new(loaded)), ..self }
    }

    /// Loads the configuration with these options when the host starts. Files and variables are
    /// read through the [`environment`](Self::environment).
    pub fn load(self, options: LoadOptions) -> Self {
        Self { source: ConfigSource::Load(Box::new(options)), ..self }
    }

    /// Loads a configuration file when the host starts, relative to the working directory. It is read
    /// through the [`environment`](Self::environment), which `inherit_env` sets.
    pub fn config_file(self, path: impl Into<PathBuf>) -> Self {
        self.load(LoadOptions { path: Some(path.into()), ..LoadOptions::default() })
    }

    /// Uses agents that were loaded before, by [`load_agents`](config::load_agents), instead of those
    /// of the configuration and its agent files.
    ///
    /// ```
    /// use trunkline::Host;
    /// use trunkline::config::{self, AgentFile};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let text = "---\nname: reviewer\naccess: read-only\n---\n";
    /// let loaded = config::parse_agents("AGENTS.md", text, AgentFile::Several);
    /// let host = Host::builder().agents(loaded.agents).start().await.unwrap();
    /// assert!(host.for_agent("reviewer").is_ok());
    /// # host.shutdown().await;
    /// # });
    /// ```
    pub fn agents(self, agents: BTreeMap<AgentName, Agent>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    /// Starts the host also if the configuration has errors and no server can be used, for programs
    /// that show the [diagnostics](Host::diagnostics) and continue.
    ///
    /// ```
    /// use trunkline::Host;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let builder = || Host::builder().config_text("mcp.json", "{ not JSON");
    /// assert!(builder().start().await.is_err());
    /// let host = builder().allow_errors().start().await.unwrap();
    /// assert!(host.status().is_empty() && !host.diagnostics().is_empty());
    /// # host.shutdown().await;
    /// # });
    /// ```
    pub fn allow_errors(self) -> Self {
        Self { allows_errors: true, ..self }
    }

    /// Starts a server only when it is used, also if its `connect` is `eager`: for programs that end soon.
    pub fn start_lazily(self) -> Self {
        Self { is_lazy: true, ..self }
    }

    /// The Trunkline processes above this one, by the [options of child processes](Self::child_options).
    /// A program checks its configuration with it before it starts anything (CON-16).
    pub fn chain(&self) -> &Chain {
        self.child.get_or_init(without_environment).chain()
    }

    /// Uses the environment of this process: reads files, resolves references such as `${TOKEN}` and
    /// `${file:…}`, passes variables on to child processes as `inheritEnv` says, and uses the proxies and
    /// CA certificates of the usual variables.
    ///
    /// ```standalone_crate
    /// # use tokio::net::TcpListener;
    /// # use trunkline_gateway::demo::DemoServer;
    /// use serde_json::json;
    /// use trunkline::Host;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let url = format!("http://{}/mcp", listener.local_addr()?);
    /// # tokio::spawn(DemoServer::Words.listen(listener));
    /// # let folder = std::env::temp_dir().join(format!("trunkline-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let config = json!({ "mcpServers": { "words": {
    /// #     "url": url, "headers": { "Authorization": "Bearer ${CARGO_PKG_NAME}" },
    /// # } } });
    /// # std::fs::write(folder.join("mcp.json"), config.to_string())?;
    /// # std::env::set_current_dir(&folder)?;
    /// let host = Host::builder().config_file("mcp.json").inherit_env().start().await?;
    /// for tool in host.tools().await {
    ///     println!("{} {}", tool.name(), tool.description());
    /// }
    /// let outcome = host.call_tool("words_shout", json!({ "text": "mcp" })).await?;
    /// println!("{}", outcome.text());
    /// # assert_eq!(outcome.text(), "MCP");
    /// host.shutdown().await;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(feature = "env")]
    pub fn inherit_env(self) -> Self {
        let system = Arc::new(SystemEnv::new());
        let resolver: Arc<dyn Resolver + Send + Sync> = system.clone();
        let child = OnceLock::from(system.child_options());
        let builder =
            Self { resolver, child, http: HttpSource::Environment(system.clone()), ..self };
        builder.environment(system)
    }

    /// Sets the environment that configuration files, agent files and variables are read from.
    pub fn environment(self, environment: Arc<dyn Environment + Send + Sync>) -> Self {
        Self { environment: Some(environment), ..self }
    }

    /// Sets the resolver of references such as `${TOKEN}`, used when a server starts.
    pub fn resolver(self, resolver: Arc<dyn Resolver + Send + Sync>) -> Self {
        Self { resolver, ..self }
    }

    /// Sets the options of child processes, such as the variables they inherit.
    pub fn child_options(self, child: ChildOptions) -> Self {
        Self { child: OnceLock::from(child), ..self }
    }

    /// Sets the options of remote connections: proxies and certificates.
    pub fn http_options(self, http: HttpOptions) -> Self {
        Self { http: HttpSource::Options(http), ..self }
    }

    /// Caches lists and protocol versions of servers in this directory, so that tools are known
    /// before a server starts.
    pub fn cache_dir(self, directory: impl Into<PathBuf>) -> Self {
        Self { cache_dir: Some(directory.into()), ..self }
    }

    /// Also caches prompts, resources and resource templates, for a program that shows old lists with their age.
    pub fn cache_all_lists(self) -> Self {
        Self { caches_all_lists: true, ..self }
    }

    /// Delays what is written to the cache directory, so that servers that start at the same time have the processors: for
    /// programs that run for long.
    pub fn cache_write_delay(self, delay: Duration) -> Self {
        Self { cache_write_delay: delay, ..self }
    }

    /// Declares client capabilities to servers, such as elicitation.
    pub fn capabilities(self, capabilities: Raw) -> Self {
        Self { capabilities: Some(capabilities), ..self }
    }

    /// Sets the handler for requests of legacy servers that belong to no call.
    pub fn handler(self, handler: Arc<dyn CallHandler>) -> Self {
        Self { handler: Some(handler), ..self }
    }

    /// Asks for a stream to each server before it is started: for servers that run in this process, or that
    /// another one has started.
    ///
    /// ```standalone_crate
    /// use std::sync::Arc;
    /// use serde_json::json;
    /// use trunkline::Host;
    /// use trunkline::connection::{ServerStream, StreamFuture, StreamRequest, StreamSource};
    /// use trunkline_gateway::demo::DemoServer;
    ///
    /// /// Serves the entry `words` in this process.
    /// struct InProcess;
    ///
    /// impl StreamSource for InProcess {
    ///     fn open<'a>(&'a self, request: StreamRequest<'a>) -> StreamFuture<'a> {
    ///         Box::pin(async move {
    ///             if request.server.name.as_str() != "words" {
    ///                 return None;
    ///             }
    ///             let (near, far) = tokio::io::duplex(64 * 1024);
    ///             let (input, output) = tokio::io::split(far);
    ///             tokio::spawn(DemoServer::Words.serve(input, output));
    ///             let (reader, writer) = tokio::io::split(near);
    ///             Some(ServerStream::new(reader, writer))
    ///         })
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let host = Host::builder()
    ///     .config_text("mcp.json", r#"{ "mcpServers": { "words": { "command": "not-started" } } }"#)
    ///     .streams(Arc::new(InProcess))
    ///     .start()
    ///     .await?;
    /// let outcome = host.call_tool("words_shout", json!({ "text": "mcp" })).await?;
    /// assert_eq!(outcome.text(), "MCP");
    /// host.shutdown().await;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn streams(self, streams: Arc<dyn StreamSource>) -> Self {
        Self { streams: Some(streams), ..self }
    }

    /// Runs the connections to servers on this runtime, instead of that of the caller of [`start`](Self::start). With
    /// a runtime of one thread that also serves clients, a call stays on that thread.
    pub fn connection_runtime(self, runtime: Handle) -> Self {
        Self { connection_runtime: Some(runtime), ..self }
    }

    /// Obtains tokens for remote servers that need them, and keeps the logins of the user (CON-12).
    pub fn oauth(self, oauth: OAuth) -> Self {
        Self { oauth: Some(oauth), ..self }
    }

    /// Adds the provider of credentials for servers with this `authProviderId` (CON-12).
    pub fn auth_provider(
        mut self,
        id: impl Into<Box<str>>,
        provider: Arc<dyn AuthProvider>,
    ) -> Self {
        self.auth_providers.push((id.into(), provider));
        self
    }

    /// Reserves these names for tools of the embedding application (TOOL-13).
    pub fn reserve_names<N: Into<Box<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.reserved.extend(names.into_iter().map(Into::into));
        self
    }

    /// Shares connections with other hosts of this registry. Its connection options are used.
    pub fn registry(self, registry: Registry) -> Self {
        Self { registry: Some(registry), ..self }
    }

    /// Shares connections with the hosts of other clients, which may have other environments. Servers with
    /// `share: per-project` are shared within the project.
    pub fn connection_pool(self, pool: ConnectionPool, project: impl Into<PathBuf>) -> Self {
        Self { pool: Some((pool, project.into())), ..self }
    }

    /// Limits the access that any configuration may allow (TOOL-5).
    pub fn max_access(self, max_access: Access) -> Self {
        Self { max_access, ..self }
    }

    /// Sets the restart policy where the configuration has none, and the most that a configuration
    /// may request (CON-5).
    pub fn restart(self, restart: Restart) -> Self {
        Self { restart: Some(restart), ..self }
    }

    /// Keeps the toggles of conversations in a store, so that they survive a restart (TOOL-9).
    pub fn toggle_store(self, store: Arc<dyn ToggleStore>) -> Self {
        Self { toggle_store: Some(store), ..self }
    }

    /// Starts the host. A server whose entry has errors is disabled, and [`Host::diagnostics`]
    /// contains the reason.
    ///
    /// # Errors
    ///
    /// When the configuration has errors and no server can be used, unless
    /// [errors are allowed](Self::allow_errors), or the system has no thread to read it on.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn start(self) -> Result<Host, StartError> {
        let allows_errors = self.allows_errors;
        let (host, options) = match self.reads_files() {
            true => self.read_on_thread().await?,
            false => self.read(),
        };
        let has_errors = host.diagnostics.iter().any(|found| found.is_error(false));
        if has_errors && !allows_errors && host.config.servers().len() == 0 {
            return Err(StartError::of_config(host.diagnostics));
        }
        Ok(Host::start_with(host, options))
    }

    /// Whether the configuration, its agents or the options for HTTP are read from files.
    fn reads_files(&self) -> bool {
        let reads_agents = match &self.source {
            ConfigSource::Loaded(loaded) => !loaded.config.agents().files.is_empty(),
            ConfigSource::Load(_) => return true,
        };
        let has_http_options = matches!(self.http, HttpSource::Options(_));
        !has_http_options || (reads_agents && self.agents.is_none())
    }

    /// Reads everything on a separate thread: a file may be on a file system that never responds,
    /// and a runtime waits for its own threads when it is dropped. Dropping the future leaves the
    /// thread behind.
    async fn read_on_thread(self) -> Result<(HostConfig, HostOptions), StartError> {
        let (done, answer) = oneshot::channel();
        let work = move || {
            // The caller may have stopped waiting.
            let _ = done.send(self.read());
        };
        let thread = thread::Builder::new().name("trunkline-load".to_owned()).spawn(work);
        thread.map_err(StartError::of_thread)?;
        Ok(answer.await.expect("invariant: loading does not panic"))
    }

    /// Reads everything that comes from files and variables.
    fn read(self) -> (HostConfig, HostOptions) {
        let mut host = load(self.source, self.agents, self.environment.as_deref());
        if self.is_lazy {
            host.config.start_lazily();
        }
        let child = self.child.into_inner().unwrap_or_else(without_environment);
        let mut connections = ConnectionOptions::new(self.resolver, child, self.http.read());
        if let Some(directory) = self.cache_dir {
            connections = connections
                .with_cache_dir(directory)
                .with_cache_write_delay(self.cache_write_delay);
        }
        if self.caches_all_lists {
            connections = connections.with_all_lists_cached();
        }
        if let Some(capabilities) = self.capabilities {
            connections = connections.with_capabilities(capabilities);
        }
        if let Some(handler) = self.handler {
            connections = connections.with_handler(handler);
        }
        if let Some(runtime) = self.connection_runtime {
            connections = connections.with_runtime(runtime);
        }
        if let Some(streams) = self.streams {
            connections = connections.with_streams(streams);
        }
        if let Some(oauth) = self.oauth {
            connections = connections.with_oauth(oauth);
        }
        for (id, provider) in self.auth_providers {
            connections = connections.with_auth_provider(id, provider);
        }
        let Self { reserved, registry, pool, max_access, restart, toggle_store, .. } = self;
        let registry = registry.or_else(|| {
            pool.map(|(pool, project)| Registry::in_pool(connections.clone(), pool, project))
        });
        let options =
            HostOptions { reserved, registry, max_access, restart, toggle_store, connections };
        (host, options)
    }
}
