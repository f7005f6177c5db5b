//! Registers calls in flight by their server, to route server requests and notifications to them.
//!
//! Cancellation needs them by the ID of the client's request, as `InFlightRequests` has them.

use std::sync::Arc;

use trunkline::call;
use trunkline::config::Share;
use trunkline::name::ServerName;

use super::gateway::Gateway;
use crate::changes::{NotificationSource, resubscribe};
use crate::client::call_handler::RelayHandler;
use crate::client::caller::Caller;
use crate::client::input_queue::InputQueue;
use crate::routing::dedicated::{DedicatedCall, begin_call};

/// Registers a call in flight, to route server requests and notifications to it.
pub(crate) enum CallGuard {
    /// A call of a shared server.
    Shared,
    /// A call of a dedicated server.
    Dedicated(
        call::ClientContext,
        #[expect(dead_code, reason = "held for as long as the call is made")] DedicatedCall,
    ),
}

impl CallGuard {
    /// The client of the call, if its server is dedicated.
    pub(crate) fn client(&self) -> Option<&call::ClientContext> {
        match self {
            Self::Shared => None,
            Self::Dedicated(client, _) => Some(client),
        }
    }
}

impl Gateway {
    /// The handler of a call.
    pub(crate) fn handler_for(
        &self,
        caller: Caller,
        follows: bool,
        inputs: Option<Arc<InputQueue>>,
    ) -> Box<RelayHandler> {
        Box::new(RelayHandler::new(caller, follows, inputs, Arc::clone(&self.parked)))
    }

    /// Registers a call of a server for as long as the guard is held.
    pub(crate) fn register_call(&self, handler: &RelayHandler, server: &ServerName) -> CallGuard {
        let config = self.host.config();
        let share = config.server(server.as_str()).map(|server| server.behaviour.share);
        match share {
            Some(Share::PerClient) => {
                let (client, call) = begin_call(handler, server, &self.dedicated_calls);
                self.resubscribe_dedicated(&handler.caller, server, &client);
                CallGuard::Dedicated(client, call)
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
                (&connection, NotificationSource::Dedicated),
                &NotificationSource::ALL,
            );
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
            CallGuard::Dedicated(client, _) => Some(client),
            CallGuard::Shared => None,
        }
    }
}
