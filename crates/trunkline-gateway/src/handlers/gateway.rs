//! The gateway: one answer to every request, whatever it came over and whatever it speaks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::time::interval;
use trunkline::call::CallOptions;
use trunkline::connection::{LogLevel, Rounds};
use trunkline::host::{Host, Patience, Relayed};
use trunkline::item::Kind;
use trunkline::message::{Id, Message, Notification, Raw, RpcError};
use trunkline::name::{MAX_ADDRESS_BYTES, ServerName};
use trunkline::protocol::{Era, is_mcp_method};
use trunkline::view::View;

use super::discover;
use super::list_cache::ListCache;
use crate::changes::{Addresses, Changes, Listening, Lists, Log, Teller};
use crate::client::caller::Caller;
use crate::client::parked::Parked;
use crate::client::session::Session;
use crate::client::state_codec::Seal;
use crate::client::tool_revisions::{LastLists, ToolEditions};
use crate::options::Limits;
use crate::request::errors::{invalid, unknown_method};
use crate::request::incoming::Asked;
use crate::request::response::{Answer, MAX_KEPT_OF_ALL, Reply};
use crate::request::{panics, translate};
use crate::routing::active_calls::Recent;
use crate::routing::dedicated::OwnCalls;

/// How often what nobody came back for is looked for.
const SWEEP: Duration = Duration::from_secs(15);

/// Everything the ways in have in common.
pub(crate) struct Gateway {
    pub(crate) host: Arc<Host>,
    pub(crate) seal: Seal,
    pub(crate) parked: Arc<Parked>,
    pub(crate) own_calls: Arc<OwnCalls>,
    pub(crate) changes: Changes,
    /// End with the gateway: a host may outlive many of them, one for each pair of streams.
    _tasks: [Listening; 2],
    pub(crate) recent: Arc<Recent>,
    pub(crate) tool_editions: ToolEditions,
    pub(crate) last_lists: LastLists,
    /// When servers that failed were last tried again.
    pub(crate) tried: Mutex<HashMap<ServerName, Instant>>,
    pub(crate) pages: ListCache,
}

impl Gateway {
    /// A gateway to the servers of a host, within limits.
    pub(crate) fn new(host: Arc<Host>, limits: &Limits) -> Arc<Self> {
        let recent = Arc::new(Recent::default());
        let (changes, following) = Changes::of(&host, log_of(&recent));
        Arc::new_cyclic(|gateway| Self {
            changes,
            _tasks: [following, Listening::of(&tokio::spawn(sweep(gateway.clone())))],
            recent,
            host,
            seal: Seal::new(),
            parked: Arc::new(Parked::new(limits.answer_wait, MAX_KEPT_OF_ALL)),
            own_calls: Arc::default(),
            tool_editions: ToolEditions::default(),
            last_lists: LastLists::default(),
            tried: Mutex::default(),
            pages: ListCache::default(),
        })
    }

    /// Answers a request, also if handling it panics. Whoever opens a session does it before.
    pub(crate) async fn answer(self: Arc<Self>, caller: Caller, asked: Asked) -> Answer {
        panics::answer_or_error(self.handle(caller, asked)).await
    }

    async fn handle(self: Arc<Self>, caller: Caller, asked: Asked) -> Answer {
        #[cfg(test)]
        assert_ne!(&*asked.method, "test/panic");
        if !asked.params.is_object() {
            return Err(invalid("`params` must be an object"));
        }
        asked.check_progress_token()?;
        match Relayed::from_method(&asked.method) {
            Some(relayed) => self.relay(caller, relayed, asked).await,
            // In a box, so that what is nearly always asked for needs no room for all else.
            None => Box::pin(self.answer_itself(caller, asked)).await,
        }
    }

    /// Answers what is not about one thing of one server.
    async fn answer_itself(self: Arc<Self>, caller: Caller, asked: Asked) -> Answer {
        let (method, params) = (&*asked.method, &asked.params);
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.list_method() == method) {
            return self.list(&caller, kind, params).await.map(Reply::from);
        }
        let result = match (caller.era(), method) {
            (Era::Legacy, "ping") => Ok(Raw::empty_object()),
            (Era::Legacy, "logging/setLevel") => self.set_level(&caller, params),
            (Era::Legacy, "resources/subscribe") => self.subscribe(&caller, params).await,
            (Era::Legacy, "resources/unsubscribe") => unsubscribe(&caller, params),
            (Era::Modern, "server/discover") => {
                self.instructions(&caller).await.map(discover::discovered)
            }
            (Era::Modern, "subscriptions/listen") => self.listen(&caller, &asked).await,
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => {
                return self.relay_task(caller, method, params).await;
            }
            _ if is_mcp_method(method) => Err(unknown_method(method)),
            _ => return self.pass_on(caller, &asked).await,
        };
        result.map(Reply::from)
    }

    /// What a caller sees of what is known now.
    pub(crate) fn view(&self, caller: &Caller) -> Result<View, RpcError> {
        let view = caller.identity.view(&self.host);
        view.map_err(|unknown| invalid(&unknown.to_string()))
    }

    /// What the servers that a caller sees want said, as far as they have said it. Those that do not run
    /// are started; nobody waits for that (CON-15).
    pub(crate) async fn instructions(&self, caller: &Caller) -> Result<Option<String>, RpcError> {
        self.gather_with(&[Kind::Tool], Patience::NoWait).await;
        let view = self.view(caller)?;
        Ok(discover::instructions(&self.host, &view))
    }

    /// Lets a session hear of changes.
    pub(crate) fn announce_to(&self, session: &Session) {
        session.listen(|| {
            let standing = Arc::clone(&session.standing);
            let tell =
                move |notification| standing.tell(Message::Notification(notification).write());
            let addresses = Arc::clone(&session.addresses);
            let scope = &session.identity.scope;
            self.changes.begin(&self.host, scope).tell(Lists::ALL, addresses, tell)
        });
    }

    fn set_level(&self, caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
        let level = params.get("level");
        let level = level.as_ref().and_then(Raw::as_str).and_then(|it| LogLevel::parse(&it));
        let level = level.ok_or_else(|| invalid("`level` must be one of the levels of syslog"))?;
        if let Some(session) = &caller.session {
            session.set_level(level);
            for connection in self.host.own_connections(session.id.as_str()) {
                connection.want_log_level(level);
            }
        }
        // A server of which this caller can see nothing has nothing to log for it.
        let (view, requester) = (self.view(caller)?, caller.requester());
        for connection in self.host.servers().connections() {
            let server = &connection.server().name;
            if view.may_hold(server) {
                self.host.want_log_level(server, &requester, level);
            }
        }
        Ok(Raw::empty_object())
    }

    async fn subscribe(&self, caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
        let Some(session) = &caller.session else { return Err(invalid("there is no session")) };
        let address = text(params, "uri")?;
        if address.len() > 2 * MAX_ADDRESS_BYTES {
            return Err(invalid(&format!("`uri` is longer than {} bytes", 2 * MAX_ADDRESS_BYTES)));
        }
        let params = Raw::empty_object().with_new(&[("uri", &Raw::from_string(&address))]);
        let view = self.view_with(caller, (Relayed::Read, &params)).await?;
        self.add_address(caller, &view, &session.addresses, address).await?;
        self.announce_to(session);
        Ok(Raw::empty_object())
    }

    /// Has a server say when a resource changes.
    pub(crate) async fn add_address(
        &self,
        caller: &Caller,
        view: &View,
        addresses: &Addresses,
        address: String,
    ) -> Result<(), RpcError> {
        let found = view.route_resource(&address).map_err(|none| invalid(&none.to_string()))?;
        let server = &found.entry.server().name;
        // Nothing leads from a server of a client's own to a client without a session.
        let client = caller.session.as_ref().and_then(|_| self.client(caller, server));
        let connection = self.host.connection_for(server, client.as_ref());
        let connection = connection.map_err(|error| invalid(&error.to_string()))?;
        let teller = if client.is_some() { Teller::Own } else { Teller::Shared };
        addresses.add((&connection, teller), found.uri, address).await
    }

    /// Passes on what is not of the protocol, if there can be no doubt whom it is for.
    async fn pass_on(self: &Arc<Self>, caller: Caller, asked: &Asked) -> Answer {
        let (method, params) = (&*asked.method, &asked.params);
        let only_server =
            |view: &View| self.only_server(view).ok_or_else(|| unknown_method(method));
        only_server(&self.view(&caller)?)?;
        self.gather(&Kind::ALL).await;
        // The rules may be others by now.
        let view = self.view(&caller)?;
        let server = only_server(&view)?;
        let asking = Arc::clone(&caller.client);
        let sent = caller.introduced(params);
        let attending = self.attending(caller, asked.wants_progress(), None);
        let attending = attending.with_server(Some(&server));
        let engaged = self.engaged(&attending, &server);
        let requester = attending.caller.requester();
        let options = CallOptions {
            attendant: &attending,
            rounds: Rounds::Passed,
            client: engaged.client(),
            older_era: (asking.era == Era::Legacy).then_some(&asking.capabilities),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        match self.host.relay_to(&view, &server, (method, sent), options).await {
            Ok(outcome) => {
                Ok(translate::Looked::at_outcome(&outcome).for_client(asking.era, Relayed::Call))
            }
            Err(error) => match error.refusal() {
                Some(refusal) => {
                    translate::error(&asking, Relayed::Call, params, refusal).map(Reply::from)
                }
                None => Err(translate::failed(&error)),
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
        gateway.host.release_idle().await;
    }
}

/// Passes lines of logs on to whom they can only be about.
fn log_of(recent: &Arc<Recent>) -> Log {
    let recent = Arc::clone(recent);
    Arc::new(move |server, said| recent.pass_on(server, said))
}

fn unsubscribe(caller: &Caller, params: &Raw) -> Result<Raw, RpcError> {
    let address = text(params, "uri")?;
    if let Some(session) = &caller.session {
        session.addresses.remove(&address);
    }
    Ok(Raw::empty_object())
}

/// The request that its client does not wait for any more, in the plainest spelling of its id.
pub(crate) fn cancelled(notification: &Notification) -> Option<Id> {
    if &*notification.method != "notifications/cancelled" {
        return None;
    }
    Id::from_raw(&notification.params.as_ref()?.get("requestId")?).map(|id| id.plain())
}

fn text(params: &Raw, key: &str) -> Result<String, RpcError> {
    let value = params.get(key);
    let text = value.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
    text.ok_or_else(|| invalid(&format!("`{key}` must be a text")))
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, split};
    use tokio::runtime::Handle;
    use tokio::time::{sleep, timeout};
    use trunkline::config::{self, NoReferences};
    use trunkline::connection::{ChildOptions, HttpOptions, Options};
    use trunkline::host::HostOptions;

    use super::*;
    use crate::{Scope, serve};

    /// A host that serves one pair of streams after another kept a task and 100 KiB for each.
    #[tokio::test]
    async fn nothing_is_left_of_a_gateway_whose_streams_have_ended() {
        let loaded = config::parse("mcp.json", "{}");
        let child = ChildOptions::from_environment(std::iter::empty());
        let options = Options::new(Arc::new(NoReferences), child, HttpOptions::default());
        let host = HostOptions::new(options);
        let host = Arc::new(Host::start(loaded.config, Default::default(), host));
        let alive = || Handle::current().metrics().num_alive_tasks();
        let before = alive();
        for _ in 0..20 {
            let (near, far) = duplex(1024);
            drop(near);
            let (reader, writer) = split(far);
            serve(Arc::clone(&host), Scope::default(), reader, writer).await.unwrap();
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
