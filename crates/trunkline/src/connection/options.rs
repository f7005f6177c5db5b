//! Options and resources of the host that every connection shares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::cache::ServerCache;
use super::client_meta::ClientMeta;
use super::handler::CallHandler;
use super::stream_source::StreamSource;
use crate::auth::AuthProvider;
use crate::config::{Chain, Resolver};
use crate::error::Error;
use crate::message::Raw;
use crate::name::ServerName;
use crate::oauth::OAuth;
use crate::transport::{
    ChildOptions, ClientProcess, HttpClient, HttpOptions, ReachableGateways, RemainingProcess,
};

/// Threads that resolve references at the same time. A thread that is blocked on a file that never
/// responds cannot be ended; as many servers as this start without waiting for each other.
const MAX_RESOLVERS: usize = 64;

/// Options and resources of the host that every connection shares. Clones share them, and the
/// cache.
#[derive(Clone)]
pub struct ConnectionOptions {
    reach: Arc<SharedResources>,
    cache: Arc<ServerCache>,
    cache_write_delay: Duration,
    declaration: Arc<Mutex<ClientDeclaration>>,
    handler: Option<Arc<dyn CallHandler>>,
    streams: Option<Arc<dyn StreamSource>>,
    oauth: Option<OAuth>,
    auth_providers: Arc<BTreeMap<Box<str>, Arc<dyn AuthProvider>>>,
    remaining: Arc<Mutex<Vec<OrphanProcess>>>,
    runtime: Option<Handle>,
}

/// The client capabilities that servers are told when they start.
#[derive(Clone)]
struct ClientDeclaration {
    capabilities: Raw,
    client_meta: ClientMeta,
    /// Whether they were set when the options were built, which nothing changes later.
    is_fixed: bool,
}

impl ClientDeclaration {
    fn new(capabilities: Raw, is_fixed: bool) -> Self {
        Self { client_meta: ClientMeta::new(&capabilities), capabilities, is_fixed }
    }
}

/// A process that could not be ended with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanProcess {
    /// The server that started it.
    pub server: ServerName,
    /// The process.
    pub process: RemainingProcess,
}

/// Limit on orphan processes that are recorded and not yet collected: enough to diagnose the
/// problem.
const MAX_REMAINING: usize = 100;

struct SharedResources {
    resolver: Arc<dyn Resolver + Send + Sync>,
    resolvers: Arc<Semaphore>,
    child: ChildOptions,
    http: HttpOptions,
    /// Created for the first remote server: it reads the certificates of the system.
    client: OnceLock<Result<HttpClient, Error>>,
    /// The gateways behind servers.
    gateways: ReachableGateways,
}

impl ConnectionOptions {
    /// Options with a resolver of references, the environment of child processes, and the settings
    /// of remote connections.
    pub fn new(
        resolver: Arc<dyn Resolver + Send + Sync>,
        child: ChildOptions,
        http: HttpOptions,
    ) -> Self {
        let (client, gateways) = (OnceLock::new(), ReachableGateways::default());
        let resolvers = Arc::new(Semaphore::new(MAX_RESOLVERS));
        Self {
            reach: Arc::new(SharedResources { resolver, resolvers, child, http, client, gateways }),
            cache: Arc::default(),
            cache_write_delay: Duration::ZERO,
            declaration: Arc::new(Mutex::new(ClientDeclaration::new(Raw::empty_object(), false))),
            handler: None,
            streams: None,
            oauth: None,
            auth_providers: Arc::default(),
            remaining: Arc::default(),
            runtime: None,
        }
    }

    /// Caches discovered servers in a directory, so that their tools are known before they start,
    /// and their era need not be detected again (CON-9).
    ///
    /// The files contain the tools of the servers, under a digest of their configuration. They can
    /// be deleted at any time.
    #[must_use]
    pub fn with_cache_dir(self, folder: PathBuf) -> Self {
        Self { cache: Arc::new(ServerCache::in_dir(folder)), ..self }
    }

    /// Also caches prompts, resources and resource templates, once they were listed. Until a server runs, its lists are
    /// those of an earlier run: this is for programs that show them with their age
    /// ([`Connection::cached_at`](super::Connection::cached_at)).
    #[must_use]
    pub fn with_all_lists_cached(self) -> Self {
        Self { cache: Arc::new(self.cache.with_all_kinds()), ..self }
    }

    /// Delays what is written to the cache directory, so that servers that start at the same time have the processors: for
    /// programs that run for long. Nothing is delayed when a connection is closed.
    #[must_use]
    pub fn with_cache_write_delay(self, delay: Duration) -> Self {
        Self { cache_write_delay: delay, ..self }
    }

    /// Declares the client capabilities, as the protocol defines them:
    /// `{"elicitation":{},"roots":{}}`. By default there are none.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Raw) -> Self {
        let declaration = ClientDeclaration::new(capabilities, true);
        Self { declaration: Arc::new(Mutex::new(declaration)), ..self }
    }

    /// Sets the handler for requests of legacy servers that belong to no call, or could belong to
    /// any of several: for example `roots/list` at the start. By default they are rejected, because
    /// the response has to come from the client that the server works for: this is for servers that
    /// work for one client.
    ///
    /// The handler runs outside of the session, and blocks no call. It also receives notifications
    /// that belong to no request, like the receivers of
    /// [`Connection::notifications`](super::Connection::notifications).
    #[must_use]
    pub fn with_handler(self, handler: Arc<dyn CallHandler>) -> Self {
        Self { handler: Some(handler), ..self }
    }

    /// Asks for a stream to each server before it is started.
    #[must_use]
    pub fn with_streams(self, streams: Arc<dyn StreamSource>) -> Self {
        Self { streams: Some(streams), ..self }
    }

    /// Runs connections on this runtime, instead of that of the caller of
    /// [`Connection::new`](super::Connection::new).
    #[must_use]
    pub fn with_runtime(self, runtime: Handle) -> Self {
        Self { runtime: Some(runtime), ..self }
    }

    /// Obtains tokens for remote servers, and keeps logins (CON-12). Without it, a server that requires
    /// authentication needs `headers`, `headersCommand` or `authProviderId`.
    #[must_use]
    pub fn with_oauth(self, oauth: OAuth) -> Self {
        Self { oauth: Some(oauth), ..self }
    }

    /// Adds the provider of credentials with this `authProviderId` (CON-12).
    #[must_use]
    pub fn with_auth_provider(
        mut self,
        id: impl Into<Box<str>>,
        provider: Arc<dyn AuthProvider>,
    ) -> Self {
        let mut providers = BTreeMap::clone(&self.auth_providers);
        providers.insert(id.into(), provider);
        self.auth_providers = Arc::new(providers);
        self
    }

    pub(super) fn streams(&self) -> Option<&dyn StreamSource> {
        self.streams.as_deref()
    }

    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone().unwrap_or_else(Handle::current)
    }

    pub(crate) fn oauth(&self) -> Option<&OAuth> {
        self.oauth.as_ref()
    }

    pub(super) fn auth_provider(&self, id: &str) -> Option<Arc<dyn AuthProvider>> {
        self.auth_providers.get(id).cloned()
    }

    /// Records processes that could not be ended with a server.
    pub(super) fn record_orphan(&self, server: &ServerName, processes: &[RemainingProcess]) {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_REMAINING.saturating_sub(remaining.len());
        let new = processes.iter().take(room).cloned();
        remaining.extend(new.map(|process| OrphanProcess { server: server.clone(), process }));
    }

    /// The processes that could not be ended since the last call, of every server with these
    /// options.
    pub(crate) fn take_orphans(&self) -> Vec<OrphanProcess> {
        std::mem::take(&mut *self.remaining.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// This process and the Trunkline processes above it, as passed to child processes and gateways
    /// (CON-16).
    pub fn chain(&self) -> &Chain {
        self.reach.child.chain()
    }

    /// The gateways that its servers lead to.
    pub(crate) fn gateways(&self) -> &ReachableGateways {
        &self.reach.gateways
    }

    pub(crate) fn resolver(&self) -> Arc<dyn Resolver + Send + Sync> {
        Arc::clone(&self.reach.resolver)
    }

    /// Permits for threads that call the resolver.
    pub(super) fn resolvers(&self) -> &Arc<Semaphore> {
        &self.reach.resolvers
    }

    pub(crate) fn child(&self) -> &ChildOptions {
        &self.reach.child
    }

    pub(super) fn client(&self) -> Result<HttpClient, Error> {
        let process =
            || ClientProcess { chain: self.chain().clone(), gateways: self.reach.gateways.clone() };
        let client = || HttpClient::of_process(&self.reach.http, Some(process()));
        self.reach.client.get_or_init(client).clone()
    }

    pub(super) fn cache_write_delay(&self) -> Duration {
        self.cache_write_delay
    }

    pub(super) fn cache(&self) -> &ServerCache {
        &self.cache
    }

    pub(super) fn handler(&self) -> Option<Arc<dyn CallHandler>> {
        self.handler.clone()
    }

    /// Declares client capabilities to servers that start from now on, unless these options were built
    /// with capabilities.
    pub(crate) fn declare_capabilities(&self, capabilities: Raw) {
        let mut declaration = self.declaration.lock().unwrap_or_else(PoisonError::into_inner);
        if !declaration.is_fixed {
            *declaration = ClientDeclaration::new(capabilities, false);
        }
    }

    fn declaration(&self) -> ClientDeclaration {
        self.declaration.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn client_meta(&self) -> ClientMeta {
        self.declaration().client_meta
    }

    pub(super) fn capabilities(&self) -> Raw {
        self.declaration().capabilities
    }
}
