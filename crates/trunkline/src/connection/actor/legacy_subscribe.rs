//! Hearing of resources in the older generation: each is asked for on its own, and taken back.

use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::list_refresh::InternalRequests;
use super::subscriptions::{SubscribeOp, Subscriptions};
use crate::connection::session::{RequestOutcome, Session, closed_error};
use crate::connection::state::status::ServerDescription;
use crate::connection::subscription::SubscriptionSubject;
use crate::error::ErrorKind;
use crate::message::{Raw, RpcError};
use crate::protocol::code;

/// Requests of this kind that are on their way at once. A server that is started again may have
/// thousands to come.
const MAX_RUNNING: usize = 16;

/// What was asked for, and what came of it.
pub(super) struct CompletedOp {
    subject: SubscriptionSubject,
    errand: SubscribeOp,
    answer: RequestOutcome,
}

/// Requests to hear of resources, and not to hear of them any more.
pub(super) struct LegacySubscriptions {
    /// Whether the server says that it knows how.
    is_offered: bool,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = CompletedOp> + Send>>>,
}

impl LegacySubscriptions {
    pub(super) fn of(described: &ServerDescription) -> Self {
        let capabilities = described.capabilities.as_ref();
        let resources = capabilities.and_then(|capabilities| capabilities.get("resources"));
        let subscribe = resources.and_then(|resources| resources.get("subscribe"));
        let is_offered = subscribe.and_then(|flag| flag.as_bool()) == Some(true);
        Self { is_offered, running: FuturesUnordered::new() }
    }

    /// Asks for what has to be asked for, as far as there is room.
    pub(super) fn run(
        &mut self,
        session: &mut Session,
        watched: &mut Subscriptions,
        asking: InternalRequests<'_>,
    ) {
        if !self.is_offered {
            return watched.fail(&Ok(not_offered()));
        }
        while self.running.len() < MAX_RUNNING
            && let Some((subject, errand)) = watched.next_op()
        {
            let SubscriptionSubject::Resource(uri) = &subject else {
                watched.on_refused(&subject, &Ok(without_tasks()));
                continue;
            };
            let method = match errand {
                SubscribeOp::Subscribe => "resources/subscribe",
                SubscribeOp::Unsubscribe => "resources/unsubscribe",
            };
            let params = Raw::from_value(&json!({ "uri": &**uri }));
            let requester = watched.requester(&subject);
            let answer = asking.request_for(requester, session, method, Some(params));
            self.running.push(Box::pin(async move {
                let answer = answer.await.unwrap_or_else(|_| Err(closed_error()));
                CompletedOp { subject, errand, answer }
            }));
        }
    }

    /// The next one that is done; waits for ever if none is on its way.
    pub(super) async fn next(&mut self) -> CompletedOp {
        match self.running.next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }
}

impl CompletedOp {
    /// Takes note of what came of it.
    pub(super) fn settle(self, watched: &mut Subscriptions) {
        let Self { subject, errand, answer } = self;
        match (errand, answer) {
            (SubscribeOp::Subscribe, Ok(Ok(_))) => watched.on_subscribed(&subject),
            (SubscribeOp::Subscribe, Ok(Err(error))) => watched.on_refused(&subject, &Ok(error)),
            // It is asked for again in the next conversation.
            (SubscribeOp::Subscribe, Err(error)) if error.kind() == ErrorKind::SessionExpired => {}
            (SubscribeOp::Subscribe, Err(error)) => watched.on_refused(&subject, &Err(error)),
            (SubscribeOp::Unsubscribe, _) => watched.on_unsubscribed(&subject),
        }
    }
}

fn not_offered() -> RpcError {
    let message = "the server does not say when its resources change: it does not declare \
                   `resources.subscribe`";
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

fn without_tasks() -> RpcError {
    let message = "servers of the older generation do not say what becomes of tasks";
    RpcError::new(code::METHOD_NOT_FOUND, message)
}
