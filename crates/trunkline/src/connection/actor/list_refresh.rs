//! Asking for a list again, while requests go on: once, however many want it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Task;
use crate::config::Trust;
use crate::connection::pagination::{List, Next, Pages, page_params};
use crate::connection::session::{Answer, Asked, Ids, Session, gone};
use crate::error::{Error, ErrorKind};
use crate::item::Kind;
use crate::message::Raw;
use crate::principal::Requester;
use crate::protocol::code;

/// The shortest time between two lists that nobody waits for. A server that announces a change with
/// every list would otherwise be asked for ever.
const PACE: Duration = Duration::from_secs(1);

/// A list of a kind, perhaps being asked for again.
pub(super) struct Relisting {
    kind: Kind,
    listing: Option<Listing>,
    /// When it is asked for next, because it has changed.
    due: Option<Instant>,
    /// When it was asked for last.
    last: Option<Instant>,
    /// Those who wait for it.
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
}

struct Listing {
    pages: Pages,
    answer: oneshot::Receiver<Answer>,
}

/// How the task makes requests of its own.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    ids: &'a Ids,
    patience: Duration,
    trust: Trust,
}

impl Task {
    pub(super) fn asking(&self) -> Asking<'_> {
        let patience = self.behaviour().timeouts.list;
        Asking { trust: self.server.trust, ..Asking::new(&self.ids, patience) }
    }
}

impl<'a> Asking<'a> {
    pub(super) fn new(ids: &'a Ids, patience: Duration) -> Self {
        Self { ids, patience, trust: Trust::Trusted }
    }

    fn page(
        &self,
        session: &mut Session,
        kind: Kind,
        cursor: Option<&Raw>,
    ) -> oneshot::Receiver<Answer> {
        self.request_for(None, session, kind.list_method(), cursor.map(page_params))
    }

    /// Asks for something on behalf of a client, or for the connection itself.
    pub(super) fn request_for(
        &self,
        requester: Option<Requester>,
        session: &mut Session,
        method: &str,
        params: Option<Raw>,
    ) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        session.ask(Asked {
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

impl Relisting {
    /// A list that is not being asked for.
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, listing: None, due: None, last: None, waiting: Vec::new() }
    }

    pub(super) fn is_on(&self) -> bool {
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
    pub(super) fn start(&mut self, session: &mut Session, asking: Asking<'_>) {
        if self.is_on() {
            return;
        }
        self.due = None;
        self.last = Some(Instant::now());
        let pages = Pages::new(self.kind, session.mirrors()).of(asking.trust);
        let answer = asking.page(session, self.kind, None);
        self.listing = Some(Listing { pages, answer });
    }

    /// Tells those who wait what came of it.
    pub(super) fn tell(&mut self, result: &Result<(), Error>) {
        for done in self.waiting.drain(..) {
            let _ = done.send(result.clone());
        }
    }

    /// Whether the list has changed again since it was asked for.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The answer for the next page; never, if none was asked for.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        let Some(listing) = &mut self.listing else { return Poll::Pending };
        let answer = std::task::ready!(Pin::new(&mut listing.answer).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| Err(gone())))
    }

    /// Takes a page. Returns the list when it is complete, or why it cannot be had.
    pub(super) fn took(
        &mut self,
        session: &mut Session,
        asking: Asking<'_>,
        answer: Answer,
    ) -> Option<Result<List, Error>> {
        let mut listing = self.listing.take()?;
        let added = answer.and_then(|page| {
            match page {
                Ok(page) => listing.pages.add(&page),
                // A server that has none need not know how to list them.
                Err(error) if error.code() == code::METHOD_NOT_FOUND => Ok(Next::Done),
                Err(error) => {
                    let what = self.kind.as_str();
                    let said = session.wire().quoted(&error.message());
                    let message = format!("it did not list its {what}s: {said}");
                    Err(Error::new(ErrorKind::NotMcp, message))
                }
            }
        });
        let result = match added {
            Ok(Next::Page(cursor)) => {
                listing.answer = asking.page(session, self.kind, Some(&cursor));
                self.listing = Some(listing);
                return None;
            }
            Ok(Next::Done) => Ok(listing.pages.finish()),
            Err(error) => Err(error),
        };
        Some(result)
    }
}

/// The lists of all kinds.
pub(super) struct Relistings([Relisting; Kind::ALL.len()]);

impl Relistings {
    /// Lists of which none is being asked for.
    pub(super) fn new() -> Self {
        Self(Kind::ALL.map(Relisting::new))
    }

    pub(super) fn of(&mut self, kind: Kind) -> &mut Relisting {
        &mut self.0[kind as usize]
    }

    /// Tells all who wait for a list why there will be none.
    pub(super) fn fail(&mut self, error: &Error) {
        self.0.iter_mut().for_each(|relisting| relisting.tell(&Err(error.clone())));
    }

    pub(super) fn is_any_on(&self) -> bool {
        self.0.iter().any(Relisting::is_on)
    }

    /// When the next list is due that has changed, and whose list that is.
    pub(super) fn next_due(&self) -> Option<(Instant, Kind)> {
        let due = self.0.iter().filter(|relisting| !relisting.is_on());
        due.filter_map(|relisting| Some((relisting.due?, relisting.kind))).min()
    }

    /// The answer for the next page of any list; never, if none was asked for.
    pub(super) async fn answer(&mut self) -> (Kind, Answer) {
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
