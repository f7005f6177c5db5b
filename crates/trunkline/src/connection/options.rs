//! What every connection needs of its host.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Semaphore;

use super::cache::ServerCache;
use super::client_meta::ClientMeta;
use super::handler::CallHandler;
use crate::config::{Chain, Resolver};
use crate::error::Error;
use crate::message::Raw;
use crate::name::ServerName;
use crate::transport::{
    ChildOptions, ClientProcess, HttpClient, HttpOptions, ReachableGateways, RemainingProcess,
};

/// Threads that may be filling in references at the same time. One that is stuck in a file that does
/// not answer cannot be ended; as many servers as this start without waiting for each other.
const MAX_RESOLVERS: usize = 64;

/// What every connection needs of its host. Clones share it, and what was learnt about servers.
#[derive(Clone)]
pub struct ConnectionOptions {
    reach: Arc<SharedResources>,
    cache: Arc<ServerCache>,
    capabilities: Raw,
    client_meta: ClientMeta,
    handler: Option<Arc<dyn CallHandler>>,
    remaining: Arc<Mutex<Vec<OrphanProcess>>>,
}

/// A process that could not be ended with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanProcess {
    /// The server that it was started by.
    pub server: ServerName,
    /// The process.
    pub process: RemainingProcess,
}

/// Processes that could not be ended and that nobody has taken note of: enough to see what is wrong.
const MAX_REMAINING: usize = 100;

struct SharedResources {
    resolver: Arc<dyn Resolver + Send + Sync>,
    resolvers: Arc<Semaphore>,
    child: ChildOptions,
    http: HttpOptions,
    /// Made when the first address is reached: it reads the certificates of the system.
    client: OnceLock<Result<HttpClient, Error>>,
    /// The gateways behind servers.
    gateways: ReachableGateways,
}

impl ConnectionOptions {
    /// Who answers what values refer to, what child processes inherit, and how addresses are
    /// reached.
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
            client_meta: ClientMeta::new(&Raw::empty_object()),
            capabilities: Raw::empty_object(),
            handler: None,
            remaining: Arc::default(),
        }
    }

    /// Keeps what is learnt about servers in a folder, so that their tools are known before they
    /// start, and the generation they speak need not be found out again (CON-9).
    ///
    /// The files hold what the servers offer, under a digest of their configuration. They can be
    /// deleted at any time.
    #[must_use]
    pub fn with_cache_dir(self, folder: PathBuf) -> Self {
        Self { cache: Arc::new(ServerCache::in_dir(folder)), ..self }
    }

    /// Declares what callers offer to servers, as the protocol writes it:
    /// `{"elicitation":{},"roots":{}}`. By default nothing is.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Raw) -> Self {
        let client_meta = ClientMeta::new(&capabilities);
        Self { capabilities, client_meta, ..self }
    }

    /// Lets somebody answer what a server of the older generation asks that belongs to no request,
    /// or could belong to any of several: `roots/list` as soon as it has started, for example. By
    /// default that is refused, because whoever answers has to be the one the server works for:
    /// this is for servers that work for one.
    ///
    /// The answers are given beside the conversation. They are also told what the server says of its
    /// own accord, as everybody is who listens to
    /// [`Connection::notifications`](super::Connection::notifications).
    #[must_use]
    pub fn with_handler(self, handler: Arc<dyn CallHandler>) -> Self {
        Self { handler: Some(handler), ..self }
    }

    /// Takes note of processes that could not be ended with a server.
    pub(super) fn record_orphan(&self, server: &ServerName, processes: &[RemainingProcess]) {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_REMAINING.saturating_sub(remaining.len());
        let new = processes.iter().take(room).cloned();
        remaining.extend(new.map(|process| OrphanProcess { server: server.clone(), process }));
    }

    /// The processes that could not be ended since this was asked last, of every server with these
    /// options.
    pub(crate) fn take_orphans(&self) -> Vec<OrphanProcess> {
        std::mem::take(&mut *self.remaining.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// This process and those above it, as children and gateways are told (CON-16).
    pub fn chain(&self) -> &Chain {
        self.reach.child.chain()
    }

    /// The gateways that its servers lead to.
    pub(crate) fn gateways(&self) -> &ReachableGateways {
        &self.reach.gateways
    }

    pub(super) fn resolver(&self) -> Arc<dyn Resolver + Send + Sync> {
        Arc::clone(&self.reach.resolver)
    }

    /// The threads that may ask the resolver at the same time.
    pub(super) fn resolvers(&self) -> &Arc<Semaphore> {
        &self.reach.resolvers
    }

    pub(super) fn child(&self) -> &ChildOptions {
        &self.reach.child
    }

    pub(super) fn client(&self) -> Result<HttpClient, Error> {
        let process =
            || ClientProcess { chain: self.chain().clone(), gateways: self.reach.gateways.clone() };
        let client = || HttpClient::of_process(&self.reach.http, Some(process()));
        self.reach.client.get_or_init(client).clone()
    }

    pub(super) fn cache(&self) -> &ServerCache {
        &self.cache
    }

    pub(super) fn handler(&self) -> Option<Arc<dyn CallHandler>> {
        self.handler.clone()
    }

    pub(super) fn client_meta(&self) -> &ClientMeta {
        &self.client_meta
    }

    pub(super) fn capabilities(&self) -> &Raw {
        &self.capabilities
    }
}
