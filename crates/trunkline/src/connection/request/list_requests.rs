//! Lists that are being asked for: once, however many wait for them, and since when.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, State};
use crate::error::Error;
use crate::item::ItemKind;

/// The lists of a server that are being asked for.
#[derive(Default)]
pub(in crate::connection) struct ListRequests([Mutex<Option<ListRequest>>; ItemKind::ALL.len()]);

/// A list that is being asked for, or was.
#[derive(Clone)]
pub(crate) struct ListRequest {
    since: Instant,
    result: watch::Receiver<Option<Result<(), Error>>>,
}

impl Connection {
    /// Asks for a list that is not known or not fresh, unless that goes on already. It goes on by itself,
    /// whether or not somebody waits for it.
    pub(crate) fn refresh(self: &Arc<Self>, kind: ItemKind) -> ListRequest {
        let place = &self.refreshes.0[kind as usize];
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refresh) = place.as_ref().filter(|refresh| !refresh.is_finished()) {
            return refresh.clone();
        }
        let (sender, result) = watch::channel(None);
        // A server that has not been ready is waited for since its first start.
        let since = self.published.unready_since().unwrap_or_else(Instant::now);
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            let listed = connection.list_fresh(kind).await;
            sender.send_replace(Some(listed.map(|_| ())));
        });
        place.insert(ListRequest { since, result }).clone()
    }

    /// Whether a list is known and its server does not run: from the last time, or from disk.
    pub fn is_recorded(&self, kind: ItemKind) -> bool {
        self.is_loaded(kind) && self.published.state() != State::Ready
    }
}

impl ListRequest {
    fn is_finished(&self) -> bool {
        self.result.borrow().is_some() || self.result.has_changed().is_err()
    }

    /// Since when it is waited for: since the first start of a server that has not been ready since, or
    /// since the list is asked for.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// What came of it: nothing, if that is not known by then, or nobody asks any more.
    pub(crate) async fn finish(&mut self, deadline: Option<Instant>) -> Option<Result<(), Error>> {
        let over = self.result.wait_for(Option::is_some);
        let over = match deadline {
            Some(deadline) => timeout_at(deadline, over).await.ok()?,
            None => over.await,
        };
        over.ok()?.clone()
    }
}
