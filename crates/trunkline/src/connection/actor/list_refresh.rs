//! Asking for a list again, while requests go on: once, however many want it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ServerActor;
use crate::config::Trust;
use crate::connection::pagination::{ItemList, NextPage, PageReader, page_params};
use crate::connection::session::{
    RequestIds, RequestOutcome, Session, SessionRequest, closed_error,
};
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::Raw;
use crate::principal::Requester;
use crate::protocol::code;

/// The shortest time between two lists that nobody waits for. A server that announces a change with
/// every list would otherwise be asked for ever.
const PACE: Duration = Duration::from_secs(1);

/// A list of a kind, perhaps being asked for again.
pub(super) struct ListRefresh {
    kind: ItemKind,
    listing: Option<InFlightPage>,
    /// When it is asked for next, because it has changed.
    due: Option<Instant>,
    /// When it was asked for last.
    last: Option<Instant>,
    /// Those who wait for it.
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
}

struct InFlightPage {
    pages: PageReader,
    answer: oneshot::Receiver<RequestOutcome>,
}

/// How the task makes requests of its own.
#[derive(Clone, Copy)]
pub(super) struct InternalRequests<'a> {
    ids: &'a RequestIds,
    patience: Duration,
    trust: Trust,
}

impl ServerActor {
    pub(super) fn request_page(&self) -> InternalRequests<'_> {
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

    /// Asks for something on behalf of a client, or for the connection itself.
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
        });
        answer
    }
}

impl ListRefresh {
    /// A list that is not being asked for.
    pub(super) fn new(kind: ItemKind) -> Self {
        Self { kind, listing: None, due: None, last: None, waiting: Vec::new() }
    }

    pub(super) fn is_running(&self) -> bool {
        self.listing.is_some()
    }

    /// Tells somebody when the list is there.
    pub(super) fn wait(&mut self, done: oneshot::Sender<Result<(), Error>>) {
        self.waiting.retain(|done| !done.is_closed());
        self.waiting.push(done);
    }

    /// Takes note that the list has changed: it is asked for again, though not as often as a server
    /// may say so.
    pub(super) fn changed(&mut self) {
        let soonest = self.last.map_or_else(Instant::now, |last| last + PACE);
        self.due.get_or_insert(soonest);
    }

    /// Asks for the list, unless that goes on already.
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

    /// Tells those who wait what came of it.
    pub(super) fn notify_waiters(&mut self, result: &Result<(), Error>) {
        for done in self.waiting.drain(..) {
            let _ = done.send(result.clone());
        }
    }

    /// Whether the list has changed again since it was asked for.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The answer for the next page; never, if none was asked for.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<RequestOutcome> {
        let Some(listing) = &mut self.listing else { return Poll::Pending };
        let answer = std::task::ready!(Pin::new(&mut listing.answer).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| Err(closed_error())))
    }

    /// Takes a page. Returns the list when it is complete, or why it cannot be had.
    pub(super) fn on_page(
        &mut self,
        session: &mut Session,
        asking: InternalRequests<'_>,
        answer: RequestOutcome,
    ) -> Option<Result<ItemList, Error>> {
        let mut listing = self.listing.take()?;
        let added = answer.and_then(|page| {
            match page {
                Ok(page) => listing.pages.add(&page),
                // A server that has none need not know how to list them.
                Err(error) if error.code() == code::METHOD_NOT_FOUND => Ok(NextPage::Done),
                Err(error) => {
                    let what = self.kind.as_str();
                    let said = session.transport().quoted(&error.message());
                    let message = format!("it did not list its {what}s: {said}");
                    Err(Error::new(ErrorKind::ProtocolViolation, message))
                }
            }
        });
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
    /// Lists of which none is being asked for.
    pub(super) fn new() -> Self {
        Self(ItemKind::ALL.map(ListRefresh::new))
    }

    pub(super) fn of(&mut self, kind: ItemKind) -> &mut ListRefresh {
        &mut self.0[kind as usize]
    }

    /// Tells all who wait for a list why there will be none.
    pub(super) fn fail(&mut self, error: &Error) {
        self.0.iter_mut().for_each(|relisting| relisting.notify_waiters(&Err(error.clone())));
    }

    pub(super) fn any_running(&self) -> bool {
        self.0.iter().any(ListRefresh::is_running)
    }

    /// When the next list is due that has changed, and whose list that is.
    pub(super) fn next_due(&self) -> Option<(Instant, ItemKind)> {
        let due = self.0.iter().filter(|relisting| !relisting.is_running());
        due.filter_map(|relisting| Some((relisting.due?, relisting.kind))).min()
    }

    /// The answer for the next page of any list; never, if none was asked for.
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
