//! Resource subscriptions of the legacy era: `resources/subscribe` and `resources/unsubscribe`.

use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::list_refresh::InternalRequests;
use super::subscriptions::{SubscribeOp, Subscriptions};
use crate::connection::request_error::RequestError;
use crate::connection::session::{RequestOutcome, Session, closed_error};
use crate::connection::state::status::ServerDescription;
use crate::connection::subscription::SubscriptionSubject;
use crate::error::ErrorKind;
use crate::message::{Raw, RpcError};
use crate::protocol::code;

/// Concurrent requests of this kind. A restarted server may have thousands of subscriptions.
const MAX_RUNNING: usize = 16;

/// A request, and its outcome.
pub(super) struct CompletedOp {
    subject: SubscriptionSubject,
    errand: SubscribeOp,
    answer: RequestOutcome,
}

/// Subscribe and unsubscribe requests in flight.
pub(super) struct LegacySubscriptions {
    /// Whether the server declares `resources.subscribe`.
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

    /// Sends the requests that are due, up to the limit.
    pub(super) fn run(
        &mut self,
        session: &mut Session,
        watched: &mut Subscriptions,
        asking: InternalRequests<'_>,
    ) {
        if !self.is_offered {
            return watched.fail(&not_offered().into());
        }
        while self.running.len() < MAX_RUNNING
            && let Some((subject, errand)) = watched.next_op()
        {
            let SubscriptionSubject::Resource(uri) = &subject else {
                watched.on_refused(&subject, &without_tasks().into());
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
                let answer = answer.await.unwrap_or_else(|_| Err(closed_error().into()));
                CompletedOp { subject, errand, answer }
            }));
        }
    }

    /// The next completed request; waits for ever if none is in flight.
    pub(super) async fn next(&mut self) -> CompletedOp {
        match self.running.next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }
}

impl CompletedOp {
    /// Records the outcome.
    pub(super) fn settle(self, watched: &mut Subscriptions) {
        let Self { subject, errand, answer } = self;
        match (errand, answer) {
            (SubscribeOp::Subscribe, Ok(_)) => watched.on_subscribed(&subject),
            // The next session subscribes again.
            (SubscribeOp::Subscribe, Err(RequestError::Failed(error)))
                if error.kind() == ErrorKind::SessionExpired => {}
            (SubscribeOp::Subscribe, Err(error)) => watched.on_refused(&subject, &error),
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
