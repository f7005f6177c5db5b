//! The host: owns servers, catalog and policy, and makes calls on behalf of callers.
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
//!     println!("{tool}");           // the definition for a model
//! }
//! let arguments = Raw::from_text(r#"{"query":"mcp"}"#).unwrap();
//! let error = host.call(&view, "docs_search", arguments, Default::default()).await.unwrap_err();
//! assert_eq!(error.to_string(), "there is no tool `docs_search`");
//! host.shutdown().await;
//! # });
//! ```

mod toggle_store;
mod options;
mod authorize;
mod refresh;
mod bind;
mod catalog_task;
mod blocking;
mod search_index;
mod legacy_connections;
mod dedicated;
mod relay;
mod close;
mod status;
mod unready;
mod meta;
mod shown;
mod weak_host;
mod caller;
mod conversations;
mod item_tools;
mod login;
mod login_link;
mod login_watch;
mod progress;
mod tool;
mod start_error;
mod config_source;
mod builder;

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

pub use self::builder::HostBuilder;
pub use self::caller::{Arguments, HostCaller};
use self::catalog_task::{CatalogTask, NewCatalog, RefreshHandle};
use self::conversations::ConversationState;
pub use self::conversations::{Conversations, ToggleSubject};
use self::dedicated::DedicatedConnections;
pub use self::dedicated::DedicatedServerFailure;
use self::legacy_connections::LegacyConnections;
pub use self::login_link::LoginLink;
use self::login_link::LoginLinks;
use self::login_watch::watch_logins;
pub use self::meta::MetaAnswer;
pub use self::options::HostOptions;
pub use self::progress::Progress;
pub use self::relay::{RelayMethod, ResolvedRequest, TaskOrigin};
use self::search_index::SearchIndex;
use self::shown::CallerShownTools;
pub use self::start_error::StartError;
pub use self::status::{ServerCondition, ServerStatus};
pub use self::toggle_store::{ToggleStore, ToggleStoreError};
pub use self::tool::{Tool, ToolCall};
pub use self::weak_host::WeakHost;
use crate::call::{CallError, CallOptions, ClientContext, Completion, Outcome};
use crate::catalog::{Catalog, Entry};
use crate::config::{Access, Agent, Chain, Config, Diagnostic, Restart, Server, Share};
use crate::connection::{ChildOptions, Connection, ConnectionOptions};
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::{Notification, Raw};
use crate::name::{AgentName, ServerName};
use crate::policy::{CallerSpec, Rules, UnknownCaller};
use crate::principal::Requester;
use crate::registry::{Registry, ReloadSummary, ServerSet};
use crate::transport::ReachableGateways;
use crate::view::{DescriptionStyle, RouteError, View};

/// How long to wait for servers whose lists are not known yet (CON-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Not at all: servers are started and lists requested, and their items appear later.
    NoWait,
    /// For `timeouts.grace` of each server, counted once from the first start of a server that has
    /// not been ready since, regardless of restarts; or from the first request for the list,
    /// regardless of further ones. Lists that arrive later appear later. Cached lists of servers
    /// that do not run are not waited for.
    Grace,
    /// Until each server is ready or has failed.
    AllReady,
}

/// Configuration and rules for all callers, replaced as a whole.
#[derive(Clone)]
struct ActiveConfig {
    config: Arc<Config>,
    rules: Arc<Rules>,
    /// Its enabled servers, shared by calls.
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

/// All servers of a configuration, and every operation on them. A cheap handle: clones share the
/// same servers.
///
/// Dropping the last handle kills the servers; [`Host::shutdown`] ends them in order.
#[derive(Clone)]
pub struct Host {
    shared: Arc<HostShared>,
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
    /// Options of dedicated and of shared connections.
    connections: [ConnectionOptions; 2],
    search: Arc<SearchIndex>,
    login_links: LoginLinks,
    /// The tools that the owner was shown.
    owner_shown: Arc<CallerShownTools>,
    conversations: ConversationState,
}

/// A configuration with its agents, including those in files, and its diagnostics.
struct HostConfig {
    config: Config,
    agents: BTreeMap<AgentName, Agent>,
    diagnostics: Vec<Diagnostic>,
}

impl Host {
    /// Starts a host with a configuration and its agents, including those in files
    /// ([`load_agents`](crate::config::load_agents)). Servers with an eager start policy are
    /// starting when this returns.
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
        let own = options.connections;
        let registry = options.registry.unwrap_or_else(|| Registry::new(own.clone()));
        let connections = [own, registry.options().clone()];
        let servers = Arc::new(registry.open(&config));
        let (conversations, toggles) = ConversationState::load(options.toggle_store);
        let mut active = ActiveConfig::new(config, agents);
        active.set_toggles(toggles);
        let active = watch::Sender::new(active);
        let NewCatalog { task, catalog, refresh } =
            CatalogTask::build(Arc::clone(&servers), active.subscribe(), options.reserved);
        let search = Arc::new(SearchIndex::default());
        // Ends with the catalog task.
        tokio::spawn(Arc::clone(&search).follow(catalog.clone(), active.subscribe()));
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
            connections,
            search,
            login_links: LoginLinks::default(),
            owner_shown: Arc::default(),
            conversations,
        };
        let host = Self { shared: Arc::new(shared) };
        let [_, options] = &host.shared.connections;
        if options.oauth().is_some() {
            tokio::spawn(watch_logins(host.downgrade()));
        }
        host
    }

    /// Declares client capabilities to servers that start from now on, unless the host was built with
    /// capabilities. A gateway declares those that it can pass on.
    pub fn declare_capabilities(&self, capabilities: &Raw) {
        for options in &self.shared.connections {
            options.declare_capabilities(capabilities.clone());
        }
    }

    /// The options of the child processes of this host.
    pub fn child_options(&self) -> &ChildOptions {
        let [own, _] = &self.shared.connections;
        own.child()
    }

    /// The Trunkline processes above this one, as passed to its servers (CON-16).
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

    /// Whether any caller may receive tools in another form than directly (BUN-3).
    pub fn has_meta_tools(&self) -> bool {
        self.shared.active.borrow().rules.has_meta_tools()
    }

    /// Waits until another configuration than `known` is active.
    pub async fn config_changed(&self, known: &Arc<Config>) {
        let mut standing = self.shared.active.subscribe();
        // The channel cannot close meanwhile: `self` holds the sender.
        let _ = standing.wait_for(|standing| !Arc::ptr_eq(&standing.config, known)).await;
    }

    /// Waits until the host is shutting down, for code that serves it to clients.
    pub async fn shutdown_started(&self) {
        let _ = self.shared.shutdown.subscribe().wait_for(|is_ending| *is_ending).await;
    }

    /// All known items of all servers, without limits of a caller. Never waits.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.catalog.borrow())
    }

    /// The catalog, now and whenever it changes.
    pub fn watch_catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.clone()
    }

    /// Whether descriptions name the server of an item, as configured.
    pub fn description_style(&self) -> DescriptionStyle {
        match self.config().naming().describe_server {
            true => DescriptionStyle::WithServer,
            false => DescriptionStyle::AsWritten,
        }
    }

    /// The view of a caller, of the items that are known now. Never waits.
    pub fn view(&self, who: CallerSpec<'_>) -> Result<View, UnknownCaller> {
        let rules = Arc::clone(&self.shared.active.borrow().rules);
        let caller = rules.caller(who)?;
        Ok(View::new(self.catalog(), rules, Arc::new(caller)))
    }

    /// Calls a tool by its name in a view. Only the definition that was shown is called. If its
    /// server is restarting, the call waits for that.
    pub async fn call(
        &self,
        view: &View,
        name: &str,
        arguments: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let options = options.begun();
        let unavailable = match view.route(ItemKind::Tool, name) {
            Err(RouteError::Denied(reason)) => reason.unavailable(),
            _ => None,
        };
        let restarted;
        let view = match unavailable {
            Some(server) => {
                let servers = std::slice::from_ref(server);
                restarted = self.view_after_refresh(view, servers, options.time_left()).await?;
                &restarted
            }
            None => view,
        };
        let entry = view.route(ItemKind::Tool, name).map_err(|none| self.judged(none.into()))?;
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

    /// Reads a resource by its URI in a view.
    pub async fn read(
        &self,
        view: &View,
        address: &str,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let params = object().with("uri", &Raw::from_string(address));
        self.relay(self.find(view, RelayMethod::Read, &params)?, options).await
    }

    /// Gets a prompt by its name in a view, with arguments: an object of strings.
    pub async fn prompt(
        &self,
        view: &View,
        name: &str,
        arguments: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let params = object().with("name", &Raw::from_string(name)).with("arguments", &arguments);
        self.relay(self.find(view, RelayMethod::Prompt, &params)?, options).await
    }

    /// Completes an argument of a prompt or a resource template, by its name in a view. The result
    /// has `completion.values`, which is empty for a server without completions.
    pub async fn complete(
        &self,
        view: &View,
        completion: &Completion<'_>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let found = self.find(view, RelayMethod::Completion, &completion.params())?;
        self.relay(found, options).await
    }

    /// Sends a notification to a server on behalf of a client, if the server runs: to the client's
    /// own connection, if it is dedicated. The caller checks that the client may do so.
    pub async fn notify_server(
        &self,
        server: &ServerName,
        requester: &Requester,
        notification: Notification,
    ) {
        let is_own = |server: &Server| server.behaviour.share == Share::PerClient;
        let connection = match self.config().server(server.as_str()) {
            Some(found) if is_own(found) => {
                let own = self.shared.dedicated.all_of(requester.client.as_str());
                own.into_iter().find(|connection| connection.server().name == *server)
            }
            _ => self.shared.servers.get(server.as_str()),
        };
        let older = self.shared.legacy.all_of(server);
        for connection in connection.into_iter().chain(older) {
            let _ = connection.notify_for(requester, notification.clone()).await;
        }
    }

    /// Tells all servers that a client has for itself something about this client.
    pub async fn notify_dedicated(&self, requester: &Requester, notification: &Notification) {
        for connection in self.shared.dedicated.all_of(requester.client.as_str()) {
            let _ = connection.notify_for(requester, notification.clone()).await;
        }
    }

    /// Applies another configuration. Unchanged servers are not affected. The others are shut down
    /// before this returns, or by [`Host::shutdown`] if the future is dropped.
    pub async fn reload(
        &self,
        config: Config,
        agents: BTreeMap<AgentName, Agent>,
    ) -> ReloadSummary {
        let config = config.within(self.shared.max_access, self.shared.restart);
        let config = self.replace_config(ActiveConfig::new(config, agents));
        // Concurrently: a server may take long to end.
        let (reloaded, ()) = tokio::join!(
            self.shared.servers.reload(&config),
            self.shared.dedicated.follow(&config)
        );
        self.shared.legacy.follow(&self.shared.servers.connections()).await;
        self.shared.refresh.request().await;
        reloaded
    }

    /// The current dedicated connections of a client.
    pub fn dedicated_connections(&self, client: &str) -> Vec<Arc<Connection>> {
        self.shared.dedicated.all_of(client)
    }

    /// The connection to a server for a client: a dedicated one, if the server is not shared.
    ///
    /// # Errors
    ///
    /// When there is no such server, or the limit on dedicated connections is reached.
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

    /// Failures of dedicated servers from now on. They show nowhere else: lists come from the
    /// shared connection.
    pub fn dedicated_failures(&self) -> broadcast::Receiver<DedicatedServerFailure> {
        self.shared.dedicated.failures()
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
