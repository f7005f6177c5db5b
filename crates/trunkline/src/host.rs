//! A host: servers, what they have, who may see it, and calls. Everything enters here.
//!
//! ```
//! use std::sync::{Arc, Weak};
//! use trunkline::config::{self, EmptyResolver};
//! use trunkline::connection::{ChildOptions, HttpOptions, ConnectionOptions};
//! use trunkline::host::{Host, HostOptions, WaitFor};
//! use trunkline::item::ItemKind;
//! use trunkline::message::Raw;
//! use trunkline::policy::CallerSpec;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let loaded = config::parse("mcp.json", r#"{
//!     "mcpServers": { "docs": { "command": "no-such-program" } },
//!     "agents": { "reader": { "tools": ["docs_*"] } }
//! }"#);
//! let child = ChildOptions::from_environment(std::env::vars_os());
//! let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
//! let agents = loaded.config.agents().named.clone();
//! let host = Host::start(loaded.config, agents, HostOptions::new(options));
//!
//! let failures = host.refresh(&[ItemKind::Tool], WaitFor::AllReady).await;
//! assert!(failures[0].to_string().contains("not found"));
//!
//! let view = host.view(CallerSpec { agent: Some("reader"), ..CallerSpec::default() }).unwrap();
//! for tool in view.list(ItemKind::Tool, host.description_style()) {
//!     println!("{tool}");           // what a model gets
//! }
//! let arguments = Raw::from_text(r#"{"query":"mcp"}"#).unwrap();
//! let error = host.call(&view, "docs_search", arguments, Default::default()).await.unwrap_err();
//! assert_eq!(error.to_string(), "there is no tool `docs_search`");
//! host.shutdown().await;
//! # });
//! ```

mod options;
mod refresh;
mod bind;
mod catalog_task;
mod legacy_connections;
mod dedicated;
mod relay;
mod close;
mod restart_wait;
mod status;
mod caller;
mod tool;
mod builder;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

pub use self::builder::{HostBuilder, StartError};
pub use self::caller::{Arguments, HostCaller};
use self::catalog_task::{CatalogTask, RefreshHandle};
use self::dedicated::DedicatedConnections;
pub use self::dedicated::DedicatedServerFailure;
use self::legacy_connections::LegacyConnections;
pub use self::options::HostOptions;
pub use self::relay::{RelayMethod, ResolvedRequest};
pub use self::status::{ServerCondition, ServerStatus};
pub use self::tool::{Progress, Tool, ToolCall};
use crate::call::{
    Authorizer, CallError, CallErrorKind, CallOptions, ClientContext, Completion, Outcome,
};
use crate::catalog::{Catalog, Entry};
use crate::config::{Access, Agent, Chain, Config, Diagnostic, Restart, Server, Share};
use crate::connection::{Connection, State};
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::{Notification, Raw};
use crate::name::{AgentName, ServerName};
use crate::policy::{CallerSpec, Rules, UnknownCaller};
use crate::registry::{Registry, ReloadSummary, ServerSet};
use crate::transport::ReachableGateways;
use crate::view::{DescriptionStyle, View};

/// How long servers are waited for whose lists are not known yet (CON-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Not at all: servers are started and lists asked for, and what they have comes later.
    NoWait,
    /// As long as `timeouts.grace` of each, counted once from the first start of a server that has not
    /// been ready since, however often it is started again; or from when the list was first asked for,
    /// however many ask for it. What is not there by then comes later. Lists that are remembered of
    /// servers which do not run are not waited for.
    Grace,
    /// Until each is ready or has failed.
    AllReady,
}

/// What holds for all callers, swapped as a whole.
#[derive(Clone)]
struct ActiveConfig {
    config: Arc<Config>,
    rules: Arc<Rules>,
    /// Its servers that are switched on, to be shared by calls.
    servers: Arc<HashMap<ServerName, Arc<Server>>>,
}

impl ActiveConfig {
    fn new(config: Config, agents: BTreeMap<AgentName, Agent>) -> Self {
        let rules = Arc::new(Rules::new(&config, agents));
        let server = |server: &Server| (server.name.clone(), Arc::new(server.clone()));
        let servers = config.servers().filter(|server| server.enabled);
        let servers = Arc::new(servers.map(server).collect());
        Self { config: Arc::new(config), rules, servers }
    }
}

/// All servers of a configuration, and everything that callers do with them. A cheap handle: clones share
/// the same servers.
///
/// Dropping the last handle kills the servers; [`Host::shutdown`] ends them in order.
#[derive(Clone)]
pub struct Host {
    shared: Arc<HostShared>,
}

/// A handle that does not keep its host alive.
#[derive(Clone)]
pub struct WeakHost {
    shared: Weak<HostShared>,
}

impl WeakHost {
    /// The host, while another handle keeps it alive.
    pub fn upgrade(&self) -> Option<Host> {
        self.shared.upgrade().map(|shared| Host { shared })
    }
}

struct HostShared {
    servers: Arc<ServerSet>,
    active: watch::Sender<ActiveConfig>,
    catalog: watch::Receiver<Arc<Catalog>>,
    refresh: RefreshHandle,
    dedicated: DedicatedConnections,
    legacy: LegacyConnections,
    catalog_task: AbortHandle,
    max_access: Access,
    restart: Option<Restart>,
    /// Turns true when the shutdown begins.
    shutdown: watch::Sender<bool>,
    chain: Chain,
    /// The gateways that servers lead to.
    gateways: ReachableGateways,
    diagnostics: Vec<Diagnostic>,
}

/// A configuration with its agents, those in files included, and what is wrong with it.
struct HostConfig {
    config: Config,
    agents: BTreeMap<AgentName, Agent>,
    diagnostics: Vec<Diagnostic>,
}

impl Host {
    /// Makes a host of a configuration and its agents, those in files included
    /// ([`load_agents`](crate::config::load_agents)). Servers that are to be connected at the start
    /// are being started when this returns.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(config: Config, agents: BTreeMap<AgentName, Agent>, options: HostOptions) -> Self {
        Self::start_with(HostConfig { config, agents, diagnostics: Vec::new() }, options)
    }

    fn start_with(host: HostConfig, options: HostOptions) -> Self {
        let HostConfig { config, agents, diagnostics } = host;
        let chain = options.connections.chain().clone();
        let gateways = options.connections.gateways().clone();
        let HostOptions { max_access, restart, .. } = options;
        let config = config.within(max_access, restart);
        let dedicated = DedicatedConnections::new(options.connections.clone());
        let legacy = LegacyConnections::new(options.connections.clone());
        let registry = options.registry.unwrap_or_else(|| Registry::new(options.connections));
        let servers = Arc::new(registry.open(&config));
        let active = watch::Sender::new(ActiveConfig::new(config, agents));
        let (task, catalog, refresh) =
            CatalogTask::new(Arc::clone(&servers), active.subscribe(), options.reserved);
        let shared = HostShared {
            servers,
            active,
            catalog,
            refresh,
            dedicated,
            legacy,
            catalog_task: tokio::spawn(task.run()).abort_handle(),
            max_access,
            restart,
            shutdown: watch::Sender::new(false),
            chain,
            gateways,
            diagnostics,
        };
        Self { shared: Arc::new(shared) }
    }

    /// A handle that does not keep the host alive.
    pub fn downgrade(&self) -> WeakHost {
        WeakHost { shared: Arc::downgrade(&self.shared) }
    }

    /// The processes above this one, as its servers are told (CON-16).
    pub fn chain(&self) -> &Chain {
        &self.shared.chain
    }

    /// The value of [`CHAIN_HEADER`](crate::config::CHAIN_HEADER) for responses of a gateway that serves
    /// this host: its process, and the gateways that its servers lead to.
    pub fn chain_header(&self) -> String {
        self.shared.chain.response_header(&self.shared.gateways.ids())
    }

    /// Everything that was wrong with the configuration that the host was [built](Host::builder) with.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.shared.diagnostics
    }

    /// The servers.
    pub fn servers(&self) -> &ServerSet {
        &self.shared.servers
    }

    /// The configuration in use.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.shared.active.borrow().config)
    }

    /// Waits until the configuration in use is another one than this.
    pub async fn config_changed(&self, known: &Arc<Config>) {
        let mut standing = self.shared.active.subscribe();
        // It cannot end before us: we hold the other side.
        let _ = standing.wait_for(|standing| !Arc::ptr_eq(&standing.config, known)).await;
    }

    /// Waits until the host is being ended, which those may want to say who serve it to others.
    pub async fn shutdown_started(&self) {
        let _ = self.shared.shutdown.subscribe().wait_for(|is_ending| *is_ending).await;
    }

    /// Everything that is known to exist, for whoever asks. Never waits.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.catalog.borrow())
    }

    /// The catalog, now and whenever it is another.
    pub fn watch_catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.clone()
    }

    /// Whether descriptions say which server something is of, as the configuration wants it.
    pub fn description_style(&self) -> DescriptionStyle {
        match self.config().naming().describe_server {
            true => DescriptionStyle::WithServer,
            false => DescriptionStyle::AsWritten,
        }
    }

    /// What a caller sees, of what is known now. Never waits.
    pub fn view(&self, who: CallerSpec<'_>) -> Result<View, UnknownCaller> {
        let rules = Arc::clone(&self.shared.active.borrow().rules);
        let caller = rules.caller(who)?;
        Ok(View::new(self.catalog(), rules, Arc::new(caller)))
    }

    /// Calls a tool by the name it has in a view. What was shown is what runs.
    pub async fn call(
        &self,
        view: &View,
        name: &str,
        arguments: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let options = options.begun();
        let restarted;
        let (view, entry) = match view.route(ItemKind::Tool, name) {
            Ok(entry) => (view, entry),
            Err(none) => {
                restarted = self.wait_for_restart(view, &none, options.time_left()).await;
                let Some(view) = &restarted else { return Err(self.judged(none.into())) };
                let entry = view.route(ItemKind::Tool, name);
                (view, entry.map_err(|none| self.judged(none.into()))?)
            }
        };
        self.call_entry(view, entry, arguments, options).await
    }

    /// Calls a tool that was resolved before.
    async fn call_entry(
        &self,
        view: &View,
        entry: &Entry,
        arguments: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let called = async {
            let route = self.bind(view, entry, &options).await?;
            route.call(arguments, options).await
        };
        called.await.map_err(|error| self.judged(error))
    }

    /// Reads a resource by the address it has in a view.
    pub async fn read(
        &self,
        view: &View,
        address: &str,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let params = object().with("uri", &Raw::from_string(address));
        self.relay(view, self.find(view, RelayMethod::Read, &params)?, options).await
    }

    /// Gets a prompt by the name it has in a view, filled in with arguments: an object of texts.
    pub async fn prompt(
        &self,
        view: &View,
        name: &str,
        arguments: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let params = object().with("name", &Raw::from_string(name)).with("arguments", &arguments);
        self.relay(view, self.find(view, RelayMethod::Prompt, &params)?, options).await
    }

    /// Asks what an argument of a prompt or of a template may be, under the names they have in a
    /// view. The result has `completion.values`; a server that completes nothing gives none.
    pub async fn complete(
        &self,
        view: &View,
        completion: &Completion<'_>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let found = self.find(view, RelayMethod::Completion, &completion.params())?;
        self.relay(view, found, options).await
    }

    /// Tells a server something on behalf of a client, if it runs: the client's own, if each has its
    /// own. Whether this client may is for the caller to say.
    pub async fn notify_server(
        &self,
        server: &ServerName,
        client: Option<&str>,
        notification: Notification,
    ) {
        let is_own = |server: &Server| server.behaviour.share == Share::PerClient;
        let connection = match self.config().server(server.as_str()) {
            Some(found) if is_own(found) => {
                let own =
                    client.map(|client| self.shared.dedicated.all_of(client)).unwrap_or_default();
                own.into_iter().find(|connection| connection.server().name == *server)
            }
            _ => self.shared.servers.get(server.as_str()),
        };
        let older = self.shared.legacy.all_of(server);
        for connection in connection.into_iter().chain(older) {
            let _ = connection.notify(notification.clone()).await;
        }
    }

    /// Tells all servers that a client has for itself something about this client.
    pub async fn notify_dedicated(&self, client: &str, notification: &Notification) {
        for connection in self.shared.dedicated.all_of(client) {
            let _ = connection.notify(notification.clone()).await;
        }
    }

    /// Takes over another configuration. Servers that are the same in it do not notice. Those that are
    /// not are ended before this returns, and by [`Host::shutdown`] if nobody waits for that.
    pub async fn reload(
        &self,
        config: Config,
        agents: BTreeMap<AgentName, Agent>,
    ) -> ReloadSummary {
        let config = config.within(self.shared.max_access, self.shared.restart);
        let standing = ActiveConfig::new(config, agents);
        let config = Arc::clone(&standing.config);
        self.shared.active.send_replace(standing);
        // Neither waits for the other: a server may take its time to end.
        let (reloaded, ()) = tokio::join!(
            self.shared.servers.reload(&config),
            self.shared.dedicated.follow(&config)
        );
        self.shared.legacy.follow(&self.shared.servers.connections()).await;
        self.shared.refresh.request().await;
        reloaded
    }

    /// The connections that a client has for itself just now.
    pub fn dedicated_connections(&self, client: &str) -> Vec<Arc<Connection>> {
        self.shared.dedicated.all_of(client)
    }

    /// The connection to a server that is asked on behalf of a client: its own, if each has one.
    ///
    /// # Errors
    ///
    /// When there is no such server, or too many clients have their own already.
    pub fn connection_for(
        &self,
        server: &ServerName,
        client: Option<&ClientContext>,
    ) -> Result<Arc<Connection>, CallError> {
        let configured = self.shared.active.borrow().servers.get(server).cloned();
        let configured = configured.ok_or_else(|| refresh_error(server))?;
        let shared =
            || self.shared.servers.get(server.as_str()).ok_or_else(|| refresh_error(server));
        match self.shared.dedicated.connection(&configured, client)? {
            Some(own) => Ok(own),
            None => Ok(shared()?),
        }
    }

    /// The servers that fail from now on of those that clients have for themselves. Nobody else would
    /// notice: lists come from the one that all share.
    pub fn dedicated_failures(&self) -> broadcast::Receiver<DedicatedServerFailure> {
        self.shared.dedicated.failures()
    }

    /// An error that says whether trying again helps, as far as that is a matter of the whole host.
    fn judged(&self, error: CallError) -> CallError {
        let Some(server) = error.server() else { return error };
        let is_down = error.kind() == CallErrorKind::Unavailable;
        if error.kind() == CallErrorKind::Failed(ErrorKind::ShuttingDown) {
            let config = self.config();
            let is_used = config.server(server.as_str()).is_some_and(|server| server.enabled);
            return if is_used { error.retryable(true) } else { CallError::removed(server) };
        }
        let Some(connection) = self.shared.servers.get(server.as_str()) else { return error };
        let has_failed = connection.watch().borrow().state == State::Failed;
        let error = if has_failed { error.unreachable() } else { error };
        if is_down { error.retryable(connection.will_recover()) } else { error }
    }

    /// What the same caller sees now.
    fn with_current_rules(&self, view: &View) -> Result<View, CallError> {
        let rules = Arc::clone(&self.shared.active.borrow().rules);
        let catalog = self.catalog();
        if Arc::ptr_eq(&rules, view.rules()) {
            return Ok(View::new(catalog, rules, Arc::clone(view.caller())));
        }
        let caller = rules.refreshed_caller(view.caller())?;
        Ok(View::new(catalog, rules, Arc::new(caller)))
    }
}

impl Authorizer for Host {
    /// What was shown is what runs: it has to be there still, a tool with the same definition, and allowed
    /// by the rules of now.
    fn authorize(&self, view: &View, entry: &Entry) -> Result<(), CallError> {
        let now = self.with_current_rules(view)?;
        if !entry.is_listed() {
            // Rules may be about its URI, and another server may list it by now.
            let found = now.route_resource(entry.exposed())?;
            let is_same = found.entry.server().name == entry.server().name;
            return if is_same { Ok(()) } else { Err(CallError::gone(entry)) };
        }
        if Arc::ptr_eq(now.catalog(), view.catalog()) {
            return Ok(now.authorize(entry)?);
        }
        let same = now.catalog().get(entry.kind(), entry.exposed());
        let same = same.filter(|same| same.server().name == entry.server().name);
        match same.filter(|same| same.name() == entry.name()) {
            None => Err(CallError::gone(entry)),
            Some(same) if same.kind() == ItemKind::Tool && same.digest() != entry.digest() => {
                Err(CallError::changed(entry))
            }
            Some(same) => Ok(now.authorize(same)?),
        }
    }
}

impl Drop for HostShared {
    fn drop(&mut self) {
        self.catalog_task.abort();
    }
}

fn object() -> Raw {
    Raw::from_value(&serde_json::json!({}))
}

fn refresh_error(server: &ServerName) -> Error {
    Error::new(ErrorKind::ShuttingDown, "it is not used any more").of(server)
}
