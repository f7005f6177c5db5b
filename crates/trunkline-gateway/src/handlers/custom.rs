//! Relays methods that are not part of MCP.

use std::sync::Arc;

use trunkline::call::CallOptions;
use trunkline::connection::InputRequired;
use trunkline::host::RelayMethod;
use trunkline::item::ItemKind;
use trunkline::name::ServerName;
use trunkline::view::View;

use super::error_codes::{FailedRequest, Failure};
use super::gateway::Gateway;
use super::request_log;
use crate::client::caller::Caller;
use crate::request::errors::unknown_method;
use crate::request::incoming::IncomingRequest;
use crate::request::response::RpcResult;
use crate::request::translate;

impl Gateway {
    /// Forwards a method that is not part of MCP, if exactly one server can be its recipient.
    pub(crate) async fn relay_custom(
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
        let handler = self.handler_for(caller, incoming.wants_progress(), None);
        request_log::record_server(Some(&server));
        let handler = handler.with_server(Some(&server));
        let engaged = self.register_call(&handler, &server);
        let caller = &handler.caller;
        let (requester, client_meta) = (caller.requester(), caller.client_meta());
        let options = CallOptions {
            handler: &*handler,
            rounds: InputRequired::Return,
            client: engaged.client(),
            older_era: Some(caller.older_era()),
            requester: Some(&requester),
            client_meta: client_meta.as_ref(),
            ..CallOptions::default()
        };
        match self.host.relay_to(&view, &server, (method, params.clone()), options).await {
            Ok(outcome) => Ok(translate::ParsedResult::from_outcome(&outcome)
                .for_client(caller.era(), RelayMethod::Call)),
            Err(error) => {
                FailedRequest::custom(&caller.client, params).response(&Failure::from(&error))
            }
        }
    }

    /// The single server that receives non-MCP requests and notifications. Only set if no other
    /// server is configured, whether up, down or broken, and the caller is unrestricted. The effect
    /// of an unknown method is unknown, so that any rule must be assumed to forbid it: lists of the
    /// server, its access, its trust, the limits of the caller.
    pub(crate) fn only_server(&self, view: &View) -> Option<ServerName> {
        let config = self.host.config();
        let mut enabled = config.servers().filter(|server| server.enabled);
        let (only, None) = (enabled.next()?, enabled.next()) else { return None };
        let is_free = config.broken().is_empty() && view.is_unlimited(&only.name);
        is_free.then(|| only.name.clone())
    }
}
