//! A host through its public interface: refresh, views and calls.

mod builder;
mod host_limits;
mod stale_views;
mod lifecycle;
mod third_party_servers;
mod calls;
mod meta_mode;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;
use trunkline::call::{CallError, CallOptions, Outcome};
use trunkline::catalog::{Catalog, Entry};
use trunkline::config::{self, Config};
use trunkline::connection::{CallHandler, HandlerFuture, ServerRequest};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::policy::CallerSpec;
use trunkline::view::View;

use crate::support::file_driven_server::{options, within};

/// Parses a configuration that must have no errors.
fn configuration(value: &Value) -> Config {
    let loaded = config::parse("test", value.to_string());
    assert!(!loaded.has_errors(false), "{:?}", loaded.diagnostics);
    loaded.config
}

/// Starts a host of servers whose callers handle elicitation and sampling.
fn host_of(servers: &Value) -> Host {
    host_with(&json!({ "mcpServers": servers }), &[])
}

/// Starts a host of a configuration, with reserved names of native tools.
fn host_with(value: &Value, own: &[&str]) -> Host {
    let capabilities = Raw::from_value(&json!({ "elicitation": {}, "sampling": {} }));
    let reserved: BTreeSet<Box<str>> = own.iter().map(|name| (*name).into()).collect();
    let connections = options().with_capabilities(capabilities);
    let config = configuration(value);
    let agents = config.agents().named.clone();
    Host::start(config, agents, HostOptions { reserved, ..HostOptions::new(connections) })
}

/// Waits until all servers are ready and listed.
async fn gather(host: &Host, kinds: &[ItemKind]) {
    let missing = within(host.refresh(kinds, WaitFor::AllReady)).await;
    assert!(missing.is_empty(), "{missing:?}");
}

/// The view of a caller without limits.
fn view(host: &Host) -> View {
    host.view(CallerSpec::default()).unwrap()
}

/// The names of the tools in a view.
fn tools(view: &View) -> Vec<&str> {
    view.entries(ItemKind::Tool).map(Entry::exposed).collect()
}

/// Waits until a tool is in the catalog.
async fn until_there(host: &Host, tool: &str) {
    let mut catalog = host.watch_catalog();
    let has = |catalog: &Arc<Catalog>| catalog.get(ItemKind::Tool, tool).is_some();
    within(catalog.wait_for(has)).await.unwrap();
}

/// Calls a tool as a caller without limits.
async fn call(host: &Host, tool: &str, arguments: &Value) -> Result<Outcome, CallError> {
    call_with(host, tool, arguments, CallOptions::default()).await
}

async fn call_with(
    host: &Host,
    tool: &str,
    arguments: &Value,
    options: CallOptions<'_>,
) -> Result<Outcome, CallError> {
    let view = view(host);
    within(host.call(&view, tool, Raw::from_value(arguments), options)).await
}

/// A handler with prepared responses that records requests and notifications.
#[derive(Default)]
struct Caller {
    answers: BTreeMap<&'static str, Value>,
    asked: Mutex<Vec<String>>,
    requests: Mutex<Vec<ServerRequest>>,
    told: Mutex<Vec<Notification>>,
    hears: Notify,
}

impl Caller {
    fn answering<const N: usize>(answers: [(&'static str, Value); N]) -> Self {
        Self { answers: answers.into(), ..Self::default() }
    }

    fn options(&self) -> CallOptions<'_> {
        CallOptions { handler: self, ..CallOptions::default() }
    }

    /// The number of notifications with a method.
    fn heard(&self, method: &str) -> usize {
        self.told.lock().unwrap().iter().filter(|told| &*told.method == method).count()
    }
}

impl CallHandler for Caller {
    fn on_notification(&self, notification: &Notification) {
        self.told.lock().unwrap().push(notification.clone());
        self.hears.notify_one();
    }

    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        self.asked.lock().unwrap().push(question.method.to_string());
        let answer = self.answers.get(&*question.method).map(Raw::from_value);
        self.requests.lock().unwrap().push(question);
        Box::pin(async move { answer.ok_or_else(|| RpcError::new(-1, "I do not say")) })
    }
}
