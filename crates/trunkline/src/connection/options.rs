//! What every connection needs of its host.

use std::sync::{Arc, OnceLock};

use crate::config::Resolver;
use crate::error::Error;
use crate::wire::{ChildOptions, HttpClient, HttpOptions};

/// What every connection needs of its host. Clones share it.
#[derive(Clone)]
pub struct Options {
    inner: Arc<Inner>,
}

struct Inner {
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
        Self { inner: Arc::new(Inner { resolver, child, http, client: OnceLock::new() }) }
    }

    pub(super) fn resolver(&self) -> &(dyn Resolver + Send + Sync) {
        &*self.inner.resolver
    }

    pub(super) fn child(&self) -> &ChildOptions {
        &self.inner.child
    }

    pub(super) fn client(&self) -> Result<HttpClient, Error> {
        self.inner.client.get_or_init(|| HttpClient::new(&self.inner.http)).clone()
    }
}
