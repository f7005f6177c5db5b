//! Refreshes a list while other requests continue: once, for any number of waiters.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ServerActor;
use crate::config::Trust;
use crate::connection::pagination::{ItemList, NextPage, PageReader, page_params};
use crate::connection::request_error::RequestError;
use crate::connection::session::{
    RequestIds, RequestOutcome, Session, SessionRequest, closed_error,
};
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::Raw;
use crate::principal::Requester;
use crate::protocol::code;

/// Minimum interval between refreshes without a waiter. A server that reports a change with every
/// list would otherwise be queried for ever.
const PACE: Duration = Duration::from_secs(1);

/// The list of a kind, perhaps being refreshed.
pub(super) struct ListRefresh {
    kind: ItemKind,
    listing: Option<InFlightPage>,
    /// Time of the next refresh, because the list has changed.
    due: Option<Instant>,
    /// Time of the last refresh.
    last: Option<Instant>,
    /// Callers that wait for the list.
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
}

struct InFlightPage {
    pages: PageReader,
    answer: oneshot::Receiver<RequestOutcome>,
}

/// Sends requests of the actor itself.
#[derive(Clone, Copy)]
pub(super) struct InternalRequests<'a> {
    ids: &'a RequestIds,
    patience: Duration,
    trust: Trust,
}

impl ServerActor {
    pub(super) fn internal_requests(&self) -> InternalRequests<'_> {
        let patience = self.behaviour().timeouts.list;
        InternalRequests { trust: self.server.trust, ..InternalRequests::new(&self.ids, patience) }
    }
}

impl<'a> InternalRequests<'a> {
    pub(super) fn new(ids: &'a RequestIds, patience: Duration) -> Self {
        Self { ids, patience, trust: Trust::Trusted }
    }

    fn page(
        &self,
        session: &mut Session,
        kind: ItemKind,
        cursor: Option<&Raw>,
    ) -> oneshot::Receiver<RequestOutcome> {
        self.request_for(None, session, kind.list_method(), cursor.map(page_params))
    }

    /// Sends a request on behalf of a client, or for the connection itself.
    pub(super) fn request_for(
        &self,
        requester: Option<Requester>,
        session: &mut Session,
        method: &str,
        params: Option<Raw>,
    ) -> oneshot::Receiver<RequestOutcome> {
        let (reply, answer) = oneshot::channel();
        session.send_request(SessionRequest {
            id: self.ids.next(),
            method: method.into(),
            params,
            within: None,
            deadline: Instant::now() + self.patience,
            patience: self.patience,
            reply,
            updates: None,
            wants_progress: false,
            is_standing: false,
            requester,
            client_meta: None,
        });
        answer
    }
}

impl ListRefresh {
    /// A list that is not being refreshed.
    pub(super) fn new(kind: ItemKind) -> Self {
        Self { kind, listing: None, due: None, last: None, waiting: Vec::new() }
    }

    pub(super) fn is_running(&self) -> bool {
        self.listing.is_some()
    }

    /// Adds a waiter.
    pub(super) fn wait(&mut self, done: oneshot::Sender<Result<(), Error>>) {
        self.waiting.retain(|done| !done.is_closed());
        self.waiting.push(done);
    }

    /// Schedules a refresh because the list has changed, after the minimum interval.
    pub(super) fn changed(&mut self) {
        let soonest = self.last.map_or_else(Instant::now, |last| last + PACE);
        self.due.get_or_insert(soonest);
    }

    /// Starts a refresh, unless one is running.
    pub(super) fn start(&mut self, session: &mut Session, asking: InternalRequests<'_>) {
        if self.is_running() {
            return;
        }
        self.due = None;
        self.last = Some(Instant::now());
        let pages = PageReader::new(self.kind, session.sends_param_headers()).of(asking.trust);
        let answer = asking.page(session, self.kind, None);
        self.listing = Some(InFlightPage { pages, answer });
    }

    /// Reports the result to the waiters.
    pub(super) fn notify_waiters(&mut self, result: &Result<(), Error>) {
        for done in self.waiting.drain(..) {
            let _ = done.send(result.clone());
        }
    }

    /// Whether the list has changed again since the refresh started.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The response to the request for the next page; pending for ever, if there is none.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<RequestOutcome> {
        let Some(listing) = &mut self.listing else { return Poll::Pending };
        let answer = std::task::ready!(Pin::new(&mut listing.answer).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| Err(closed_error().into())))
    }

    /// Handles a page. Returns the list when it is complete, or the error.
    pub(super) fn on_page(
        &mut self,
        session: &mut Session,
        asking: InternalRequests<'_>,
        answer: RequestOutcome,
    ) -> Option<Result<ItemList, Error>> {
        let mut listing = self.listing.take()?;
        let added = match answer {
            Ok(page) => listing.pages.add(&page),
            // A server without such items need not implement the list method.
            Err(RequestError::Refused(error)) if error.code() == code::METHOD_NOT_FOUND => {
                Ok(NextPage::Done)
            }
            Err(RequestError::Refused(error)) => {
                let what = self.kind.as_str();
                let said = session.transport().quoted(&error.message());
                let message = format!("it did not list its {what}s: {said}");
                Err(Error::new(ErrorKind::ProtocolViolation, message))
            }
            Err(RequestError::Failed(error)) => Err(error),
        };
        let result = match added {
            Ok(NextPage::Page(cursor)) => {
                listing.answer = asking.page(session, self.kind, Some(&cursor));
                self.listing = Some(listing);
                return None;
            }
            Ok(NextPage::Done) => Ok(listing.pages.finish()),
            Err(error) => Err(error),
        };
        Some(result)
    }
}

/// The lists of all kinds.
pub(super) struct ListRefreshes([ListRefresh; ItemKind::ALL.len()]);

impl ListRefreshes {
    /// Lists that are not being refreshed.
    pub(super) fn new() -> Self {
        Self(ItemKind::ALL.map(ListRefresh::new))
    }

    pub(super) fn of(&mut self, kind: ItemKind) -> &mut ListRefresh {
        &mut self.0[kind as usize]
    }

    /// Fails all waiters.
    pub(super) fn fail(&mut self, error: &Error) {
        self.0.iter_mut().for_each(|relisting| relisting.notify_waiters(&Err(error.clone())));
    }

    pub(super) fn any_running(&self) -> bool {
        self.0.iter().any(ListRefresh::is_running)
    }

    /// The next refresh that is due because of a change, with its kind.
    pub(super) fn next_due(&self) -> Option<(Instant, ItemKind)> {
        let due = self.0.iter().filter(|relisting| !relisting.is_running());
        due.filter_map(|relisting| Some((relisting.due?, relisting.kind))).min()
    }

    /// The next response to a page request of any list; pending for ever, if there is none.
    pub(super) async fn answer(&mut self) -> (ItemKind, RequestOutcome) {
        std::future::poll_fn(|context| {
            for relisting in &mut self.0 {
                if let Poll::Ready(answer) = relisting.poll_answer(context) {
                    return Poll::Ready((relisting.kind, answer));
                }
            }
            Poll::Pending
        })
        .await
    }
}
