//! What every connection needs of its host.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::attendant::Attendant;
use super::generation::{Declared, empty};
use super::memory::Memory;
use crate::config::Resolver;
use crate::error::Error;
use crate::message::Raw;
use crate::wire::{ChildOptions, HttpClient, HttpOptions};

/// What every connection needs of its host. Clones share it, and what was learnt about servers.
#[derive(Clone)]
pub struct Options {
    reach: Arc<Reach>,
    memory: Arc<Memory>,
    capabilities: Raw,
    declared: Declared,
    attendant: Option<Arc<dyn Attendant>>,
}

struct Reach {
    resolver: Arc<dyn Resolver + Send + Sync>,
    child: ChildOptions,
    http: HttpOptions,
    /// Made when the first address is reached: it reads the certificates of the system.
    client: OnceLock<Result<HttpClient, Error>>,
}

impl Options {
    /// Who answers what values refer to, what child processes inherit, and how addresses are
    /// reached.
    pub fn new(
        resolver: Arc<dyn Resolver + Send + Sync>,
        child: ChildOptions,
        http: HttpOptions,
    ) -> Self {
        let client = OnceLock::new();
        Self {
            reach: Arc::new(Reach { resolver, child, http, client }),
            memory: Arc::default(),
            declared: Declared::new(&empty()),
            capabilities: empty(),
            attendant: None,
        }
    }

    /// Keeps what is learnt about servers in a folder, so that their tools are known before they
    /// start, and the generation they speak need not be found out again (CON-9).
    ///
    /// The files hold what the servers offer, under a digest of their configuration. They can be
    /// deleted at any time.
    #[must_use]
    pub fn with_memory_in(self, folder: PathBuf) -> Self {
        Self { memory: Arc::new(Memory::in_folder(folder)), ..self }
    }

    /// Declares what callers offer to servers, as the protocol writes it:
    /// `{"elicitation":{},"roots":{}}`. By default nothing is.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Raw) -> Self {
        let declared = Declared::new(&capabilities);
        Self { capabilities, declared, ..self }
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
    pub fn with_attendant(self, attendant: Arc<dyn Attendant>) -> Self {
        Self { attendant: Some(attendant), ..self }
    }

    pub(super) fn resolver(&self) -> &(dyn Resolver + Send + Sync) {
        &*self.reach.resolver
    }

    pub(super) fn child(&self) -> &ChildOptions {
        &self.reach.child
    }

    pub(super) fn client(&self) -> Result<HttpClient, Error> {
        self.reach.client.get_or_init(|| HttpClient::new(&self.reach.http)).clone()
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn attendant(&self) -> Option<Arc<dyn Attendant>> {
        self.attendant.clone()
    }

    pub(super) fn declared(&self) -> &Declared {
        &self.declared
    }

    pub(super) fn capabilities(&self) -> &Raw {
        &self.capabilities
    }
}
