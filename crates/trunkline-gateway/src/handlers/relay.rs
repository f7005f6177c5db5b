//! Relays calls, prompts, resource reads and completions to the servers that own them.

use std::sync::Arc;

use trunkline::call::{CallError, CallErrorKind, CallOptions, Outcome};
use trunkline::connection::InputRequired;
use trunkline::host::{RelayMethod, ResolvedRequest, TaskOrigin};
use trunkline::item::ItemKind;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::Era;
use trunkline::view::View;

use super::call_guard::CallGuard;
use super::error_codes::{FailedRequest, Failure};
use super::gateway::Gateway;
use super::parking::own_state;
use super::route_fallback::owners;
use super::{observe, request_log};
use crate::client::call_handler::RelayHandler;
use crate::client::caller::Caller;
use crate::client::input_queue::InputQueue;
use crate::client::parked::ParkedCall;
use crate::request::incoming::IncomingRequest;
use crate::request::mcp_headers;
use crate::request::response::{RpcFuture, RpcResult};
use crate::request::translate::{self, ParsedResult};

impl Gateway {
    /// Relays a request, as the era of the client requires. Boxed, because the future is large and
    /// is moved several times.
    pub(crate) fn relay(
        self: &Arc<Self>,
        caller: Caller,
        relay_method: RelayMethod,
        incoming: Box<IncomingRequest>,
    ) -> RpcFuture {
        let gateway = Arc::clone(self);
        if caller.era() == Era::Legacy || relay_method == RelayMethod::Completion {
            let handler = self.handler_for(caller, incoming.wants_progress(), None);
            return Box::pin(gateway.relay_with(handler, relay_method, incoming));
        }
        Box::pin(gateway.relay_modern(caller, relay_method, incoming))
    }

    /// Relays a request of a modern client: a call that needs input is parked.
    async fn relay_modern(
        self: Arc<Self>,
        caller: Caller,
        relay_method: RelayMethod,
        incoming: Box<IncomingRequest>,
    ) -> RpcResult {
        let follows = incoming.wants_progress();
        let incoming = match incoming.state.as_ref().and_then(own_state) {
            Some(state) => match self.relayed_state(&caller, &incoming.params, &state).await {
                Some(theirs) => incoming.with_state(&theirs),
                None => {
                    let view = self.view(&caller)?;
                    let found = self.host.find(&view, relay_method, &incoming.params);
                    require_param_headers(&incoming, &found)?;
                    let request = (relay_method, &*incoming);
                    return self.resume(&caller, request, &state, found.err()).await;
                }
            },
            None => incoming,
        };
        let (queue, mut inputs) = InputQueue::new(caller.channel.clone());
        let handler = self.handler_for(caller.clone(), follows, Some(queue));
        let params = incoming.params.clone();
        let mut call: RpcFuture =
            Box::pin(Arc::clone(&self).relay_with(handler, relay_method, incoming));
        match inputs.run(&mut call).await {
            Some(outcome) => outcome,
            None => self.park(&caller, &params, ParkedCall::new(call, inputs)).await,
        }
    }

    /// Relays a request and waits for its result.
    async fn relay_with(
        self: Arc<Self>,
        handler: Box<RelayHandler>,
        relay_method: RelayMethod,
        incoming: Box<IncomingRequest>,
    ) -> RpcResult {
        let sent = without_legacy_task(relay_method, &incoming.params);
        let sent = observe::with_trace_context(sent);
        let view = self.view(&handler.caller)?;
        let request = (relay_method, &incoming.params);
        match self.host.find(&view, relay_method, &sent) {
            found if may_exist_after_refresh(&found) => {}
            found => {
                let shown = (&view, incoming.is_meta);
                let found = found.and_then(|it| self.require_unchanged(&handler.caller, shown, it));
                require_param_headers(&incoming, &found)?;
                return self
                    .relay_resolved(handler, &view, (relay_method, &*incoming), found)
                    .await;
            }
        }
        // Boxed: this path is rare, and its futures are as large again.
        let look = self.view_after_refresh(&handler.caller, &view, request);
        let view = Box::pin(look).await?;
        let found = self.host.find(&view, relay_method, &sent);
        let shown = (&view, incoming.is_meta);
        let found = found.and_then(|it| self.require_unchanged(&handler.caller, shown, it));
        require_param_headers(&incoming, &found)?;
        Box::pin(self.relay_resolved(handler, &view, (relay_method, &*incoming), found)).await
    }

    /// Relays a request to the server that it was resolved to, if any.
    async fn relay_resolved(
        &self,
        handler: Box<RelayHandler>,
        view: &View,
        (relay_method, incoming): (RelayMethod, &IncomingRequest),
        found: Result<ResolvedRequest<'_>, CallError>,
    ) -> RpcResult {
        let params = &incoming.params;
        let subject = found
            .as_ref()
            .ok()
            .map(|found| (found.entry().server().name.clone(), found.entry().name().to_owned()));
        let server = subject.as_ref().map(|(server, _)| server);
        request_log::record_server(server);
        let handler = handler.with_server(server);
        let caller = &handler.caller;
        let rounds = match caller.era() {
            Era::Legacy => InputRequired::Resolve,
            Era::Modern => InputRequired::Return,
        };
        let engaged = server.map(|server| self.register_call(&handler, server));
        let (requester, client_meta) = (caller.requester(), caller.client_meta());
        let options = CallOptions {
            handler: &*handler,
            rounds,
            client: engaged.as_ref().and_then(CallGuard::client),
            older_era: Some(caller.older_era()),
            requester: Some(&requester),
            client_meta: client_meta.as_ref(),
            ..CallOptions::default()
        };
        let outcome = match found {
            Ok(found) => {
                let started = observe::upstream_start();
                let outcome = self.host.relay(found, options).await;
                observe::add_upstream(started);
                outcome.inspect_err(|error| handler.on_error(error))
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => {
                let name = subject.as_ref().map(|(_, name)| &**name).unwrap_or_default();
                let request = (relay_method, name, params);
                // The result of a tool that reads a resource has the form of any tool's.
                let (request, outcome) = match incoming.is_item_tool {
                    true => ((RelayMethod::Call, name, params), outcome.into_tool_result()),
                    false => (request, outcome),
                };
                self.translate_outcome(caller, request, &outcome.for_model()).await
            }
            Err(error) => {
                let request = (relay_method, incoming);
                // Boxed: this path is rare, and its future is large.
                Box::pin(self.failed_response(&handler, view, request, (server, &error))).await
            }
        }
    }

    /// The response to a request that failed.
    async fn failed_response(
        &self,
        handler: &RelayHandler,
        view: &View,
        (relay_method, incoming): (RelayMethod, &IncomingRequest),
        (server, error): (Option<&ServerName>, &CallError),
    ) -> RpcResult {
        observe::add_failure(error);
        let (caller, request) = (&handler.caller, (relay_method, &incoming.params));
        let down = self.owner_failure(caller, view, request, error).await;
        let declined = || Some(Failure::declined(server, handler.declined()?));
        let failure = down.or_else(declined).unwrap_or_else(|| Failure::from(error));
        let failed = FailedRequest::item(&caller.client, request);
        failed.by_item_tool(incoming.is_item_tool).response(&failure)
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
        if looked.is_task()
            && relay_method == RelayMethod::Call
            && let Some(server) = outcome.server()
        {
            let origin = TaskOrigin { server, tool: name };
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
}

/// Rejects a call whose `Mcp-Param-*` headers do not match the tool's `x-mcp-header` arguments.
fn require_param_headers(
    incoming: &IncomingRequest,
    found: &Result<ResolvedRequest<'_>, CallError>,
) -> Result<(), RpcError> {
    match found {
        Ok(found) if found.entry().kind() == ItemKind::Tool => {
            mcp_headers::check_param_headers(incoming, found.entry().definition())
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
