//! `Gateway`: the state that all handlers and transports share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, interval};
use trunkline::catalog::Catalog;
use trunkline::host::{Host, WeakHost};
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::view::View;

use super::list_cache::ListCache;
use crate::changes::{ChangeHub, LogSink, TaskGuard};
use crate::client::arguments_digest::ArgumentsHasher;
use crate::client::caller::Caller;
use crate::client::parked::ParkedCalls;
use crate::client::shown_tools::ShownTools;
use crate::client::state_codec::StateCodec;
use crate::client::tool_revisions::{LastLists, ToolRevisions};
use crate::options::Limits;
use crate::request::errors::invalid;
use crate::request::record::RequestObserver;
use crate::request::response::MAX_KEPT_OF_ALL;
use crate::routing::active_calls::ActiveCalls;
use crate::routing::dedicated::DedicatedCalls;

/// Interval of removing parked calls and idle connections.
const SWEEP: Duration = Duration::from_secs(15);

/// The state that all transports share.
pub(crate) struct Gateway {
    pub(crate) host: Host,
    pub(crate) codec: StateCodec,
    pub(crate) arguments: ArgumentsHasher,
    pub(crate) parked: Arc<ParkedCalls>,
    pub(crate) dedicated_calls: Arc<DedicatedCalls>,
    pub(crate) changes: ChangeHub,
    /// Tasks that end with the gateway: a host may outlive many gateways, one per pair of streams.
    _tasks: [TaskGuard; 3],
    pub(crate) recent: Arc<ActiveCalls>,
    pub(crate) tool_revisions: ToolRevisions,
    pub(crate) last_lists: LastLists,
    pub(crate) shown_tools: ShownTools,
    /// When failed servers were last retried.
    pub(crate) tried: Mutex<HashMap<ServerName, Instant>>,
    pub(crate) pages: ListCache,
    pub(crate) observer: Option<Arc<dyn RequestObserver>>,
}

impl Gateway {
    /// Creates a gateway for the servers of a host, with limits.
    pub(crate) fn new(
        host: Host,
        limits: &Limits,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Arc<Self> {
        host.declare_capabilities(&client_capabilities());
        let recent = Arc::new(ActiveCalls::default());
        let (changes, following) = ChangeHub::of(&host, log_sink(&recent));
        Arc::new_cyclic(|gateway| Self {
            changes,
            _tasks: [
                following,
                TaskGuard::of(&tokio::spawn(sweep(gateway.clone()))),
                TaskGuard::of(&tokio::spawn(index_changes(host.downgrade(), host.watch_catalog()))),
            ],
            recent,
            host,
            codec: StateCodec::new(),
            arguments: ArgumentsHasher::default(),
            parked: Arc::new(ParkedCalls::new(limits.answer_wait, MAX_KEPT_OF_ALL)),
            dedicated_calls: Arc::default(),
            tool_revisions: ToolRevisions::default(),
            last_lists: LastLists::default(),
            shown_tools: ShownTools::default(),
            tried: Mutex::default(),
            pages: ListCache::default(),
            observer,
        })
    }

    /// The caller's view of the current catalog.
    pub(crate) fn view(&self, caller: &Caller) -> Result<View, RpcError> {
        let view = caller.identity.view(&self.host);
        view.map_err(|unknown| invalid(&unknown.to_string()))
    }
}

/// Removes expired parked calls and closes idle connections, every [`SWEEP`].
async fn sweep(gateway: Weak<Gateway>) {
    let mut ticks = interval(SWEEP);
    loop {
        ticks.tick().await;
        let Some(gateway) = gateway.upgrade() else { return };
        gateway.parked.sweep(Instant::now());
        gateway.host.close_idle().await;
    }
}

/// Keeps the search index up to date, so that a search does not have to wait for it.
async fn index_changes(host: WeakHost, mut catalog: watch::Receiver<Arc<Catalog>>) {
    loop {
        let newest = Arc::clone(&catalog.borrow_and_update());
        let Some(host) = host.upgrade() else { return };
        if host.has_meta_tools() {
            host.tool_index(&newest).await;
        }
        drop(host);
        if catalog.changed().await.is_err() {
            return;
        }
    }
}

/// Delivers log messages to the sessions whose calls they can only concern.
fn log_sink(recent: &Arc<ActiveCalls>) -> LogSink {
    let recent = Arc::clone(recent);
    Arc::new(move |server, received| recent.deliver(server, received))
}

/// The client capabilities that the gateway declares to upstream servers: all that its clients may
/// support. The capabilities of the client are checked per call; a server request that it does not
/// support is refused with that reason.
pub fn client_capabilities() -> Raw {
    Raw::from_value(&json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "tools": {} },
        "roots": {},
    }))
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, split};
    use tokio::runtime::Handle;
    use tokio::time::{sleep, timeout};
    use trunkline::config::{self, EmptyResolver};
    use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
    use trunkline::host::HostOptions;

    use super::*;
    use crate::{Scope, serve_stream};

    /// A host that served one pair of streams after another leaked a task and 100 KiB for each.
    #[tokio::test]
    async fn gateway_is_freed_when_its_streams_have_ended() {
        let loaded = config::parse("mcp.json", "{}");
        let child = ChildOptions::from_environment(std::iter::empty());
        let options =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
        let host = HostOptions::new(options);
        let host = Host::start(loaded.config, Default::default(), host);
        let alive = || Handle::current().metrics().num_alive_tasks();
        let before = alive();
        for _ in 0..20 {
            let (near, far) = duplex(1024);
            drop(near);
            let (reader, writer) = split(far);
            serve_stream(host.clone(), Scope::default(), reader, writer).await.unwrap();
        }
        let ended = async {
            while alive() > before {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), ended).await.expect("no task is left");
        host.shutdown().await;
    }
}
