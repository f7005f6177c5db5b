//! Hearing of resources in the older generation: each is asked for on its own, and taken back.

use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::list_refresh::Asking;
use super::subscriptions::{Errand, Watched};
use crate::connection::session::{Answer, Session, gone};
use crate::connection::state::status::Described;
use crate::connection::subscription::Subject;
use crate::error::ErrorKind;
use crate::message::{Raw, RpcError};
use crate::protocol::code;

/// Requests of this kind that are on their way at once. A server that is started again may have
/// thousands to come.
const MAX_RUNNING: usize = 16;

/// What was asked for, and what came of it.
pub(super) struct Done {
    subject: Subject,
    errand: Errand,
    answer: Answer,
}

/// Requests to hear of resources, and not to hear of them any more.
pub(super) struct Errands {
    /// Whether the server says that it knows how.
    is_offered: bool,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + Send>>>,
}

impl Errands {
    pub(super) fn of(described: &Described) -> Self {
        let capabilities = described.capabilities.as_ref();
        let resources = capabilities.and_then(|capabilities| capabilities.get("resources"));
        let subscribe = resources.and_then(|resources| resources.get("subscribe"));
        let is_offered = subscribe.and_then(|flag| flag.as_bool()) == Some(true);
        Self { is_offered, running: FuturesUnordered::new() }
    }

    /// Asks for what has to be asked for, as far as there is room.
    pub(super) fn run(&mut self, session: &mut Session, watched: &mut Watched, asking: Asking<'_>) {
        if !self.is_offered {
            return watched.fail(&Ok(not_offered()));
        }
        while self.running.len() < MAX_RUNNING
            && let Some((subject, errand)) = watched.next_errand()
        {
            let Subject::Resource(uri) = &subject else {
                watched.refused(&subject, &Ok(without_tasks()));
                continue;
            };
            let method = match errand {
                Errand::Subscribe => "resources/subscribe",
                Errand::Unsubscribe => "resources/unsubscribe",
            };
            let params = Raw::from_value(&json!({ "uri": &**uri }));
            let requester = watched.requester(&subject);
            let answer = asking.request_for(requester, session, method, Some(params));
            self.running.push(Box::pin(async move {
                let answer = answer.await.unwrap_or_else(|_| Err(gone()));
                Done { subject, errand, answer }
            }));
        }
    }

    /// The next one that is done; waits for ever if none is on its way.
    pub(super) async fn next(&mut self) -> Done {
        match self.running.next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }
}

impl Done {
    /// Takes note of what came of it.
    pub(super) fn settle(self, watched: &mut Watched) {
        let Self { subject, errand, answer } = self;
        match (errand, answer) {
            (Errand::Subscribe, Ok(Ok(_))) => watched.heard(&subject),
            (Errand::Subscribe, Ok(Err(error))) => watched.refused(&subject, &Ok(error)),
            // It is asked for again in the next conversation.
            (Errand::Subscribe, Err(error)) if error.kind() == ErrorKind::SessionExpired => {}
            (Errand::Subscribe, Err(error)) => watched.refused(&subject, &Err(error)),
            (Errand::Unsubscribe, _) => watched.left(&subject),
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
