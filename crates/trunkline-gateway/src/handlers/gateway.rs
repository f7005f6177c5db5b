//! The gateway: one answer to every request, whatever it came over and whatever it speaks.

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
use trunkline::view::View;

use super::discover;
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

/// How often what nobody came back for is looked for.
const SWEEP: Duration = Duration::from_secs(15);

/// Everything the ways in have in common.
pub(crate) struct Gateway {
    pub(crate) host: Host,
    pub(crate) codec: StateCodec,
    pub(crate) arguments: ArgumentsHasher,
    pub(crate) parked: Arc<ParkedCalls>,
    pub(crate) dedicated_calls: Arc<DedicatedCalls>,
    pub(crate) changes: ChangeHub,
    /// End with the gateway: a host may outlive many of them, one for each pair of streams.
    _tasks: [TaskGuard; 2],
    pub(crate) recent: Arc<ActiveCalls>,
    pub(crate) tool_revisions: ToolRevisions,
    pub(crate) last_lists: LastLists,
    /// When servers that failed were last tried again.
    pub(crate) tried: Mutex<HashMap<ServerName, Instant>>,
    pub(crate) pages: ListCache,
}

impl Gateway {
    /// A gateway to the servers of a host, within limits.
    pub(crate) fn new(host: Host, limits: &Limits) -> Arc<Self> {
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

    /// Answers a request, also if handling it panics. Whoever opens a session does it before.
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
            // In a box, so that what is nearly always asked for needs no room for all else.
            None => Box::pin(self.dispatch_local(caller, incoming)).await,
        }
    }

    /// Answers what is not about one thing of one server.
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
                return self.relay_task(caller, method, params).await;
            }
            _ if is_mcp_method(method) => Err(unknown_method(method)),
            _ => return self.relay_custom(caller, &incoming).await,
        };
        result.map(ResultBody::from)
    }

    /// What a caller sees of what is known now.
    pub(crate) fn view(&self, caller: &Caller) -> Result<View, RpcError> {
        let view = caller.identity.view(&self.host);
        view.map_err(|unknown| invalid(&unknown.to_string()))
    }

    /// What the servers that a caller sees want said, as far as they have said it. Those that do not run
    /// are started; nobody waits for that (CON-15).
    pub(crate) async fn instructions(&self, caller: &Caller) -> Result<Option<String>, RpcError> {
        self.refresh_lists_with(&[ItemKind::Tool], WaitFor::NoWait).await;
        let view = self.view(caller)?;
        Ok(discover::instructions(&self.host, &view))
    }

    /// Lets a session hear of changes.
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
        // A server of which this caller can see nothing has nothing to log for it.
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
        self.subscribe_uri(caller, &view, &session.subscriptions, address).await?;
        self.start_notifications(session);
        Ok(Raw::empty_object())
    }

    /// Has a server say when a resource changes.
    pub(crate) async fn subscribe_uri(
        &self,
        caller: &Caller,
        view: &View,
        subscriptions: &ResourceSubscriptions,
        address: String,
    ) -> Result<(), RpcError> {
        let found = view.route_resource(&address).map_err(|none| invalid(&none.to_string()))?;
        let server = &found.entry.server().name;
        // Nothing leads from a server of a client's own to a client without a session.
        let client = caller.session.as_ref().and_then(|_| self.client(caller, server));
        let connection = self.host.connection_for(server, client.as_ref());
        let connection = connection.map_err(|error| invalid(&error.to_string()))?;
        let teller =
            if client.is_some() { NotificationSource::Own } else { NotificationSource::Shared };
        subscriptions.add((&connection, teller), found.uri, address).await
    }

    /// Passes on what is not of the protocol, if there can be no doubt whom it is for.
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
        // The rules may be others by now.
        let view = self.view(&caller)?;
        let server = only_server(&view)?;
        let asking = Arc::clone(&caller.client);
        let sent = caller.with_client_meta(params);
        let handler = self.handler_for(caller, incoming.wants_progress(), None);
        let handler = handler.with_server(Some(&server));
        let engaged = self.register_call(&handler, &server);
        let requester = handler.caller.requester();
        let options = CallOptions {
            handler: &handler,
            rounds: InputRequired::Return,
            client: engaged.client(),
            older_era: (asking.era == Era::Legacy).then_some(&asking.capabilities),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        match self.host.relay_to(&view, &server, (method, sent), options).await {
            Ok(outcome) => Ok(translate::ParsedResult::from_outcome(&outcome)
                .for_client(asking.era, RelayMethod::Call)),
            Err(error) => match error.refusal() {
                Some(refusal) => translate::error(&asking, RelayMethod::Call, params, refusal)
                    .map(ResultBody::from),
                None => Err(translate::call_error(&error)),
            },
        }
    }
}

/// Gives up what no client came back for, every [`SWEEP`].
async fn sweep(gateway: Weak<Gateway>) {
    let mut ticks = interval(SWEEP);
    loop {
        ticks.tick().await;
        let Some(gateway) = gateway.upgrade() else { return };
        gateway.parked.sweep(Instant::now());
        gateway.host.close_idle().await;
    }
}

/// Passes lines of logs on to whom they can only be about.
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

/// The request that its client does not wait for any more, in the plainest spelling of its id.
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
    use crate::{Scope, serve};

    /// A host that serves one pair of streams after another kept a task and 100 KiB for each.
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
            serve(host.clone(), Scope::default(), reader, writer).await.unwrap();
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
