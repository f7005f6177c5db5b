//! Relays calls, prompts, resource reads and completions to the servers that own them.

use std::sync::Arc;

use trunkline::call::{self, CallError, CallErrorKind, CallOptions, Outcome};
use trunkline::config::Share;
use trunkline::connection::InputRequired;
use trunkline::host::{RelayMethod, ResolvedRequest, TaskOrigin};
use trunkline::item::ItemKind;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::{Era, meta};
use trunkline::view::View;

use super::errors::{FailedRequest, Failure};
use super::gateway::Gateway;
use super::mrtr::own_state;
use super::route_fallback::owners;
use super::tasks::TaskCodec;
use crate::changes::{NotificationSource, resubscribe};
use crate::client::call_handler::RelayHandler;
use crate::client::caller::Caller;
use crate::client::input_queue::InputQueue;
use crate::client::parked::ParkedCall;
use crate::request::errors::missing_capability;
use crate::request::incoming::IncomingRequest;
use crate::request::param_headers;
use crate::request::response::RpcResult;
use crate::request::translate::{self, ParsedResult};
use crate::routing::dedicated::{DedicatedCall, begin_call};

/// Registers a call in flight, to route server requests and notifications to it.
pub(crate) enum CallGuard {
    /// A call of a shared server.
    Shared,
    /// A call of a dedicated server.
    Own(
        call::ClientContext,
        #[expect(dead_code, reason = "held for as long as the call is made")] DedicatedCall,
    ),
}

impl CallGuard {
    /// The client of the call, if its server is dedicated.
    pub(crate) fn client(&self) -> Option<&call::ClientContext> {
        match self {
            Self::Shared => None,
            Self::Own(client, _) => Some(client),
        }
    }
}

impl Gateway {
    /// Relays a request, as the era of the client requires.
    pub(crate) async fn relay(
        self: &Arc<Self>,
        caller: Caller,
        relay_method: RelayMethod,
        incoming: IncomingRequest,
    ) -> RpcResult {
        let follows = incoming.wants_progress();
        if caller.era() == Era::Legacy || relay_method == RelayMethod::Completion {
            let handler = self.handler_for(caller, follows, None);
            // Boxed, as below, to keep the future that is moved small.
            return Box::pin(Arc::clone(self).relay_with(handler, relay_method, incoming)).await;
        }
        let incoming = match incoming.state.as_ref().and_then(own_state) {
            Some(state) => match self.relayed_state(&caller, &incoming.params, &state).await {
                Some(theirs) => incoming.with_state(&theirs),
                None => {
                    let view = self.view(&caller)?;
                    let found = self.host.find(&view, relay_method, &incoming.params);
                    require_param_headers(&incoming, &found)?;
                    let request = (relay_method, &incoming.params);
                    return self.resume(&caller, request, &state, found.err()).await;
                }
            },
            None => incoming,
        };
        let (inputs, questions) = InputQueue::new(caller.channel.clone());
        let handler = self.handler_for(caller.clone(), follows, Some(inputs.clone()));
        let params = incoming.params.clone();
        let call = Box::pin(Arc::clone(self).relay_with(handler, relay_method, incoming));
        self.drive(&caller, &params, ParkedCall::new(call, inputs, questions)).await
    }

    /// The handler of a call.
    pub(crate) fn handler_for(
        &self,
        caller: Caller,
        follows: bool,
        inputs: Option<Arc<InputQueue>>,
    ) -> RelayHandler {
        RelayHandler::new(caller, follows, inputs, Arc::clone(&self.parked))
    }

    /// Relays a request and waits for its result.
    async fn relay_with(
        self: Arc<Self>,
        handler: RelayHandler,
        relay_method: RelayMethod,
        incoming: IncomingRequest,
    ) -> RpcResult {
        let sent = without_legacy_task(relay_method, &incoming.params);
        let sent = handler.caller.with_client_meta(&sent);
        let view = self.view(&handler.caller)?;
        let request = (relay_method, &incoming.params);
        match self.host.find(&view, relay_method, &sent) {
            found if may_exist_after_refresh(&found) => {}
            found => {
                let found = found.and_then(|it| self.require_unchanged(&handler.caller, it));
                require_param_headers(&incoming, &found)?;
                return self.relay_resolved(handler, &view, request, found).await;
            }
        }
        // Boxed: this path is rare, and its futures are as large again.
        let look = self.view_after_refresh(&handler.caller, &view, request);
        let view = Box::pin(look).await?;
        let found = self.host.find(&view, relay_method, &sent);
        let found = found.and_then(|it| self.require_unchanged(&handler.caller, it));
        require_param_headers(&incoming, &found)?;
        Box::pin(self.relay_resolved(handler, &view, request, found)).await
    }

    /// Relays a request to the server that it was resolved to, if any.
    async fn relay_resolved(
        &self,
        handler: RelayHandler,
        view: &View,
        (relay_method, params): (RelayMethod, &Raw),
        found: Result<ResolvedRequest<'_>, CallError>,
    ) -> RpcResult {
        let subject = found
            .as_ref()
            .ok()
            .map(|found| (found.entry().server().name.clone(), found.entry().name().to_owned()));
        let server = subject.as_ref().map(|(server, _)| server);
        let handler = handler.with_server(server);
        let caller = &handler.caller;
        let rounds = match caller.era() {
            Era::Legacy => InputRequired::Resolve,
            Era::Modern => InputRequired::Return,
        };
        let engaged = server.map(|server| self.register_call(&handler, server));
        let client = engaged.as_ref().and_then(CallGuard::client);
        let requester = caller.requester();
        let options = CallOptions {
            handler: &handler,
            rounds,
            client,
            older_era: Some(caller.older_era()),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        let outcome = match found {
            Ok(found) => {
                let outcome = self.host.relay(view, found, options).await;
                outcome.inspect_err(|error| handler.on_error(error))
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => {
                let name = subject.as_ref().map(|(_, name)| &**name).unwrap_or_default();
                let request = (relay_method, name, params);
                self.translate_outcome(caller, request, &outcome.for_model()).await
            }
            Err(error) => {
                let request = (relay_method, params);
                let down = self.down_owner(view, request, &error);
                let declined = || Some(Failure::declined(server, handler.declined()?));
                let failure = down.or_else(declined).unwrap_or_else(|| Failure::from(&error));
                FailedRequest::item(&caller.client, request).response(&failure)
            }
        }
    }

    /// Translates a result for the client.
    async fn translate_outcome(
        &self,
        caller: &Caller,
        (relay_method, name, params): (RelayMethod, &str, &Raw),
        outcome: &Outcome,
    ) -> RpcResult {
        let looked = ParsedResult::from_outcome(outcome);
        if looked.is_input_required()
            && let Some(sealed) = self.seal_state(caller, params, &outcome.result).await?
        {
            return Ok(translate::result(caller.era(), relay_method, &sealed));
        }
        if looked.is_task() && relay_method == RelayMethod::Call {
            let origin = TaskOrigin { server: outcome.server(), tool: name };
            let named = self.tasks(caller).with_sealed_id(origin, &outcome.result);
            return Ok(translate::result(caller.era(), relay_method, &named));
        }
        Ok(looked.for_client(caller.era(), relay_method))
    }

    /// The caller's view, refreshed if it does not contain the item of the request.
    pub(crate) async fn view_with(
        &self,
        caller: &Caller,
        request: (RelayMethod, &Raw),
    ) -> Result<View, RpcError> {
        let view = self.view(caller)?;
        if !may_exist_after_refresh(&self.host.find(&view, request.0, request.1)) {
            return Ok(view);
        }
        self.view_after_refresh(caller, &view, request).await
    }

    /// The caller's view after unknown lists were requested, and a server that is down was retried.
    async fn view_after_refresh(
        &self,
        caller: &Caller,
        view: &View,
        (relay_method, params): (RelayMethod, &Raw),
    ) -> Result<View, RpcError> {
        let (kinds, owners) = (kinds(relay_method), owners(view, relay_method, params));
        // If the owner is known, waits only for that server.
        if !self.wait_for(owners, kinds).await {
            self.refresh_lists(kinds).await;
        }
        self.view(caller)
    }

    /// Registers a call of a server for as long as the guard is held.
    pub(crate) fn register_call(&self, handler: &RelayHandler, server: &ServerName) -> CallGuard {
        let config = self.host.config();
        let share = config.server(server.as_str()).map(|server| server.behaviour.share);
        match share {
            Some(Share::PerClient) => {
                let (client, call) = begin_call(handler, server, &self.dedicated_calls);
                self.resubscribe_dedicated(&handler.caller, server, &client);
                CallGuard::Own(client, call)
            }
            _ => {
                self.recent.note(server, handler.caller.session.as_ref());
                CallGuard::Shared
            }
        }
    }

    /// Moves the session's resource subscriptions to a new dedicated process, which replaces
    /// another one or the shared one.
    fn resubscribe_dedicated(
        &self,
        caller: &Caller,
        server: &ServerName,
        client: &call::ClientContext,
    ) {
        let Some(session) = &caller.session else { return };
        if session.subscriptions.has_server(server)
            && let Ok(connection) = self.host.connection_for(server, Some(client))
        {
            resubscribe(
                &session.subscriptions,
                (&connection, NotificationSource::Own),
                &NotificationSource::ALL,
            );
        }
    }

    /// Relays a request about a task.
    pub(crate) async fn relay_task(
        self: &Arc<Self>,
        caller: Caller,
        incoming: &IncomingRequest,
    ) -> RpcResult {
        if !caller.client.declares(&["extensions", meta::TASKS_EXTENSION]) {
            let needed = serde_json::json!({ "extensions": { meta::TASKS_EXTENSION: {} } });
            return Err(missing_capability(&needed, "this needs tasks"));
        }
        let tasks = self.tasks(&caller);
        let (method, params) = (&*incoming.method, &incoming.params);
        let task = tasks.find(params)?;
        let sent = tasks.upstream_params(params, &task);
        let handler = self.handler_for(caller.clone(), incoming.wants_progress(), None);
        let handler = handler.with_server(Some(&task.server));
        let engaged = self.register_call(&handler, &task.server);
        let requester = caller.requester();
        let options = CallOptions {
            handler: &handler,
            rounds: InputRequired::Return,
            client: engaged.client(),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        let view = self.view(&caller)?;
        match self.host.relay_task(&view, task.origin(), (method, sent), options).await {
            Ok(outcome) => {
                let result = tasks.with_sealed_id(task.origin(), &outcome.result);
                Ok(translate::result(Era::Modern, RelayMethod::Call, &result))
            }
            Err(error) => {
                FailedRequest::task(&caller.client, params).response(&Failure::from(&error))
            }
        }
    }

    /// The client context, if the server is dedicated.
    pub(crate) fn client(
        &self,
        caller: &Caller,
        server: &ServerName,
    ) -> Option<call::ClientContext> {
        let handler = self.handler_for(caller.clone(), false, None);
        match self.register_call(&handler, server) {
            CallGuard::Own(client, _) => Some(client),
            CallGuard::Shared => None,
        }
    }

    pub(crate) fn tasks<'g>(&'g self, caller: &'g Caller) -> TaskCodec<'g> {
        TaskCodec { codec: &self.codec, owner: caller.identity.as_owner() }
    }
}

/// Rejects a call whose `Mcp-Param-*` headers do not match the tool's `x-mcp-header` arguments.
fn require_param_headers(
    incoming: &IncomingRequest,
    found: &Result<ResolvedRequest<'_>, CallError>,
) -> Result<(), RpcError> {
    match found {
        Ok(found) if found.entry().kind() == ItemKind::Tool => {
            param_headers::check_param_headers(incoming, found.entry().definition())
        }
        _ => Ok(()),
    }
}

/// Removes the task request of revision 2025-11-25 from parameters. The gateway does not declare
/// that capability, and without it a receiver ignores the request.
fn without_legacy_task(relay_method: RelayMethod, params: &Raw) -> Raw {
    match relay_method == RelayMethod::Call && params.get("task").is_some() {
        true => params.without("task"),
        false => params.clone(),
    }
}

/// Whether a refresh of the lists may find the item. A resource that is in no list may be in one
/// that is not known yet.
fn may_exist_after_refresh(found: &Result<ResolvedRequest<'_>, CallError>) -> bool {
    match found {
        Ok(found) => !found.entry().is_listed(),
        Err(error) => {
            matches!(error.kind(), CallErrorKind::Unknown | CallErrorKind::Unavailable)
        }
    }
}

/// The lists that may contain the item of a request.
fn kinds(relay_method: RelayMethod) -> &'static [ItemKind] {
    match relay_method {
        RelayMethod::Call => &[ItemKind::Tool],
        RelayMethod::Prompt => &[ItemKind::Prompt],
        RelayMethod::Read => &[ItemKind::Resource, ItemKind::ResourceTemplate],
        RelayMethod::Completion => &[ItemKind::Prompt, ItemKind::ResourceTemplate],
    }
}
