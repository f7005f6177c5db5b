//! Shares list requests in flight between all callers that wait for them.
//!
//! The actor makes only one request for all waiters, too (`ListRefresh`). A request here also goes on
//! when all of its callers have reached their timeouts, and includes the start of the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, State};
use crate::error::Error;
use crate::item::ItemKind;

/// The list requests of a server in flight.
#[derive(Default)]
pub(in crate::connection) struct ListRequests([Mutex<Option<ListRequest>>; ItemKind::ALL.len()]);

/// A list request, in flight or completed.
#[derive(Clone)]
pub(crate) struct ListRequest {
    since: Instant,
    result: watch::Receiver<Option<Result<(), Error>>>,
}

impl Connection {
    /// Requests a list that is unknown or stale, unless a request is in flight. It runs to
    /// completion, whether or not a caller waits for it.
    pub(crate) fn refresh(self: &Arc<Self>, kind: ItemKind) -> ListRequest {
        let place = &self.refreshes.0[kind as usize];
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refresh) = place.as_ref().filter(|refresh| !refresh.is_finished()) {
            return refresh.clone();
        }
        let (sender, result) = watch::channel(None);
        // The wait for a server that has not been ready counts from its first start.
        let since = self.published.unready_since().unwrap_or_else(Instant::now);
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            let listed = connection.list_fresh(kind).await;
            sender.send_replace(Some(listed.map(|_| ())));
        });
        place.insert(ListRequest { since, result }).clone()
    }

    /// Whether a list is known although its server does not run: from its last session, or from
    /// disk.
    pub fn is_recorded(&self, kind: ItemKind) -> bool {
        self.is_loaded(kind) && self.published.state() != State::Ready
    }

    /// When the server sent a list that is known from an earlier run; `None` for a list of this run.
    pub fn cached_at(&self, kind: ItemKind) -> Option<SystemTime> {
        self.published.listed(kind).saved_at
    }
}

impl ListRequest {
    fn is_finished(&self) -> bool {
        self.result.borrow().is_some() || self.result.has_changed().is_err()
    }

    /// Start of the wait: the first start of a server that has not been ready since, or the list
    /// request.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// The result; `None` if it is not there by the deadline, or the request was dropped.
    pub(crate) async fn finish(&mut self, deadline: Option<Instant>) -> Option<Result<(), Error>> {
        let over = self.result.wait_for(Option::is_some);
        let over = match deadline {
            Some(deadline) => timeout_at(deadline, over).await.ok()?,
            None => over.await,
        };
        over.ok()?.clone()
    }
}
