//! `Gateway`: dispatches every request, for both transports and both eras.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::time::interval;
use trunkline::call::CallOptions;
use trunkline::connection::{InputRequired, LogLevel};
use trunkline::host::{Host, RelayMethod, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::{Id, Message, Notification, Raw, RpcError};
use trunkline::name::{MAX_URI_BYTES, ServerName};
use trunkline::protocol::{Era, is_mcp_method};
use trunkline::view::{ResourceRoute, View};

use super::discover;
use super::errors::{FailedRequest, Failure};
use super::list_cache::ListCache;
use crate::changes::{
    ChangeHub, ListKinds, LogSink, NotificationSource, ResourceSubscriptions, TaskGuard,
};
use crate::client::arguments_digest::ArgumentsHasher;
use crate::client::caller::Caller;
use crate::client::parked::ParkedCalls;
use crate::client::session::Session;
use crate::client::state_codec::StateCodec;
use crate::client::tool_revisions::{LastLists, ToolRevisions};
use crate::options::Limits;
use crate::request::errors::{invalid, unknown_method};
use crate::request::incoming::IncomingRequest;
use crate::request::response::{MAX_KEPT_OF_ALL, ResultBody, RpcResult};
use crate::request::{panics, translate};
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
    _tasks: [TaskGuard; 2],
    pub(crate) recent: Arc<ActiveCalls>,
    pub(crate) tool_revisions: ToolRevisions,
    pub(crate) last_lists: LastLists,
    /// When failed servers were last retried.
    pub(crate) tried: Mutex<HashMap<ServerName, Instant>>,
    pub(crate) pages: ListCache,
}

impl Gateway {
    /// Creates a gateway for the servers of a host, with limits.
    pub(crate) fn new(host: Host, limits: &Limits) -> Arc<Self> {
        host.declare_capabilities(&discover::client_capabilities());
        let recent = Arc::new(ActiveCalls::default());
        let (changes, following) = ChangeHub::of(&host, log_sink(&recent));
        Arc::new_cyclic(|gateway| Self {
            changes,
            _tasks: [following, TaskGuard::of(&tokio::spawn(sweep(gateway.clone())))],
            recent,
            host,
            codec: StateCodec::new(),
            arguments: ArgumentsHasher::default(),
            parked: Arc::new(ParkedCalls::new(limits.answer_wait, MAX_KEPT_OF_ALL)),
            dedicated_calls: Arc::default(),
            tool_revisions: ToolRevisions::default(),
            last_lists: LastLists::default(),
            tried: Mutex::default(),
            pages: ListCache::default(),
        })
    }

    /// Handles a request; a panic becomes an error response. Sessions are opened by the transport.
    pub(crate) async fn answer(
        self: Arc<Self>,
        caller: Caller,
        incoming: IncomingRequest,
    ) -> RpcResult {
        panics::answer_or_error(self.dispatch(caller, incoming)).await
    }

    async fn dispatch(self: Arc<Self>, caller: Caller, incoming: IncomingRequest) -> RpcResult {
        #[cfg(test)]
        assert_ne!(&*incoming.method, "test/panic");
        if !incoming.params.is_object() {
            return Err(invalid("`params` must be an object"));
        }
        incoming.check_progress_token()?;
        match RelayMethod::from_method(&incoming.method) {
            Some(relay_method) => self.relay(caller, relay_method, incoming).await,
            // Boxed, so that the future of the common case does not need space for the others.
            None => Box::pin(self.dispatch_local(caller, incoming)).await,
        }
    }

    /// Handles all requests that do not target one item of one server.
    async fn dispatch_local(
        self: Arc<Self>,
        caller: Caller,
        incoming: IncomingRequest,
    ) -> RpcResult {
        let (method, params) = (&*incoming.method, &incoming.params);
        if let Some(kind) = ItemKind::ALL.into_iter().find(|kind| kind.list_method() == method) {
            return self.list(&caller, kind, params).await.map(ResultBody::from);
        }
        let result = match (caller.era(), method) {
            (Era::Legacy, "ping") => Ok(Raw::empty_object()),
            (Era::Legacy, "logging/setLevel") => self.set_level(&caller, params),
            (Era::Legacy, "resources/subscribe") => self.subscribe(&caller, params).await,
            (Era::Legacy, "resources/unsubscribe") => unsubscribe(&caller, params),
            (Era::Modern, "server/discover") => {
                self.instructions(&caller).await.map(discover::discover_result)
            }
            (Era::Modern, "subscriptions/listen") => self.listen(&caller, &incoming).await,
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => {
                return self.relay_task(caller, &incoming).await;
            }
            _ if is_mcp_method(method) => Err(unknown_method(method)),
            _ => return self.relay_custom(caller, &incoming).await,
        };
        result.map(ResultBody::from)
    }

    /// The caller's view of the current catalog.
    pub(crate) fn view(&self, caller: &Caller) -> Result<View, RpcError> {
        let view = caller.identity.view(&self.host);
        view.map_err(|unknown| invalid(&unknown.to_string()))
    }

    /// The instructions of the servers that a caller sees, as far as they are known. Starts servers
    /// that do not run, without waiting for them (CON-15).
    pub(crate) async fn instructions(&self, caller: &Caller) -> Result<Option<String>, RpcError> {
        self.refresh_lists_with(&[ItemKind::Tool], WaitFor::NoWait).await;
        let view = self.view(caller)?;
        Ok(discover::instructions(&self.host, &view))
    }

    /// Starts change notifications for a session.
    pub(crate) fn start_notifications(&self, session: &Session) {
        session.listen(|| {
            let stream = Arc::clone(&session.stream);
            let tell =
                move |notification| stream.notify(Message::Notification(notification).write());
            let subscriptions = Arc::clone(&session.subscriptions);
            let scope = &session.identity.scope;
            self.changes.begin(&self.host, scope).tell(ListKinds::ALL, subscriptions, tell)
        });
    }

    fn set_level(&self, caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
        let level = params.get("level");
        let level = level.as_ref().and_then(Raw::as_str).and_then(|it| LogLevel::parse(&it));
        let level = level.ok_or_else(|| invalid("`level` must be one of the levels of syslog"))?;
        if let Some(session) = &caller.session {
            session.set_level(level);
            for connection in self.host.dedicated_connections(session.id.as_str()) {
                connection.set_log_level(level);
            }
        }
        // A server without visible items has no log messages for this caller.
        let (view, requester) = (self.view(caller)?, caller.requester());
        for connection in self.host.servers().connections() {
            let server = &connection.server().name;
            if view.could_contain(server) {
                self.host.set_log_level(server, &requester, level);
            }
        }
        Ok(Raw::empty_object())
    }

    async fn subscribe(&self, caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
        let Some(session) = &caller.session else { return Err(invalid("there is no session")) };
        let address = string_param(params, "uri")?;
        if address.len() > 2 * MAX_URI_BYTES {
            return Err(invalid(&format!("`uri` is longer than {} bytes", 2 * MAX_URI_BYTES)));
        }
        let params = Raw::empty_object().append_members(&[("uri", &Raw::from_string(&address))]);
        let view = self.view_with(caller, (RelayMethod::Read, &params)).await?;
        let found = view.route_resource(&address).map_err(|none| invalid(&none.to_string()))?;
        self.subscribe_uri(caller, found, &session.subscriptions, address).await?;
        self.start_notifications(session);
        Ok(Raw::empty_object())
    }

    /// Subscribes to updates of a resource on its server.
    pub(crate) async fn subscribe_uri(
        &self,
        caller: &Caller,
        found: ResourceRoute<'_>,
        subscriptions: &ResourceSubscriptions,
        address: String,
    ) -> Result<(), RpcError> {
        let server = &found.entry.server().name;
        // A client without a session has no channel for notifications of a dedicated server.
        let client = caller.session.as_ref().and_then(|_| self.client(caller, server));
        let connection = self.host.connection_for(server, client.as_ref());
        let connection = connection.map_err(|error| invalid(&error.to_string()))?;
        let teller =
            if client.is_some() { NotificationSource::Own } else { NotificationSource::Shared };
        subscriptions.add((&connection, teller), found.uri, address).await
    }

    /// Forwards a method that is not part of MCP, if exactly one server can be its recipient.
    async fn relay_custom(
        self: &Arc<Self>,
        caller: Caller,
        incoming: &IncomingRequest,
    ) -> RpcResult {
        let (method, params) = (&*incoming.method, &incoming.params);
        let only_server =
            |view: &View| self.only_server(view).ok_or_else(|| unknown_method(method));
        only_server(&self.view(&caller)?)?;
        self.refresh_lists(&ItemKind::ALL).await;
        // The rules may have changed meanwhile.
        let view = self.view(&caller)?;
        let server = only_server(&view)?;
        let asking = caller.clone();
        let sent = caller.with_client_meta(params);
        let handler = self.handler_for(caller, incoming.wants_progress(), None);
        let handler = handler.with_server(Some(&server));
        let engaged = self.register_call(&handler, &server);
        let requester = handler.caller.requester();
        let options = CallOptions {
            handler: &handler,
            rounds: InputRequired::Return,
            client: engaged.client(),
            older_era: Some(asking.older_era()),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        match self.host.relay_to(&view, &server, (method, sent), options).await {
            Ok(outcome) => Ok(translate::ParsedResult::from_outcome(&outcome)
                .for_client(asking.era(), RelayMethod::Call)),
            Err(error) => {
                FailedRequest::custom(&asking.client, params).response(&Failure::from(&error))
            }
        }
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

/// Delivers log messages to the sessions whose calls they can only concern.
fn log_sink(recent: &Arc<ActiveCalls>) -> LogSink {
    let recent = Arc::clone(recent);
    Arc::new(move |server, said| recent.deliver(server, said))
}

fn unsubscribe(caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
    let address = string_param(params, "uri")?;
    if let Some(session) = &caller.session {
        session.subscriptions.remove(&address);
    }
    Ok(Raw::empty_object())
}

/// The ID of the request that a notification cancels, normalized.
pub(crate) fn cancelled_id(notification: &Notification) -> Option<Id> {
    if &*notification.method != "notifications/cancelled" {
        return None;
    }
    Id::from_raw(&notification.params.as_ref()?.get("requestId")?).map(|id| id.normalized())
}

fn string_param(params: &Raw, key: &str) -> Result<String, RpcError> {
    let value = params.get(key);
    let text = value.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
    text.ok_or_else(|| invalid(&format!("`{key}` must be a text")))
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
    async fn nothing_is_left_of_a_gateway_whose_streams_have_ended() {
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
