//! Asking for the list of tools again, while requests go on: once, however many want it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Task;
use crate::connection::lists::{Next, ToolList, ToolPages, page_params};
use crate::connection::session::{Answer, Asked, Ids, Session, gone};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;

/// The list of tools, perhaps being asked for again.
#[derive(Default)]
pub(super) struct Relisting {
    listing: Option<Listing>,
    /// Whether the list has changed again in the meantime.
    again: bool,
    /// Those who wait for it.
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
}

struct Listing {
    pages: ToolPages,
    answer: oneshot::Receiver<Answer>,
}

/// How pages are asked for.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    ids: &'a Ids,
    patience: Duration,
}

impl Task {
    pub(super) fn asking(&self) -> Asking<'_> {
        Asking { ids: &self.ids, patience: self.server.behaviour.timeouts.list }
    }
}

impl Asking<'_> {
    fn page(&self, session: &mut Session, cursor: Option<&Raw>) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        session.ask(Asked {
            id: self.ids.next(),
            method: "tools/list".into(),
            params: cursor.map(page_params),
            deadline: Instant::now() + self.patience,
            patience: self.patience,
            reply,
            updates: None,
            is_standing: false,
        });
        answer
    }
}

impl Relisting {
    pub(super) fn is_on(&self) -> bool {
        self.listing.is_some()
    }

    /// Tells somebody when the list is there.
    pub(super) fn wait(&mut self, done: oneshot::Sender<Result<(), Error>>) {
        self.waiting.push(done);
    }

    /// Asks for the list; if that goes on already, once more after it.
    pub(super) fn start(&mut self, session: &mut Session, asking: Asking<'_>) {
        if self.is_on() {
            self.again = true;
            return;
        }
        let pages = ToolPages::new(session.mirrors());
        self.listing = Some(Listing { pages, answer: asking.page(session, None) });
    }

    /// The answer for the next page; never, if none was asked for.
    pub(super) async fn answer(&mut self) -> Answer {
        match &mut self.listing {
            Some(listing) => (&mut listing.answer).await.unwrap_or_else(|_| Err(gone())),
            None => std::future::pending().await,
        }
    }

    /// Takes a page. Returns the list when it is complete, or why it cannot be had.
    pub(super) fn took(
        &mut self,
        session: &mut Session,
        asking: Asking<'_>,
        answer: Answer,
    ) -> Option<Result<ToolList, Error>> {
        let mut listing = self.listing.take()?;
        let added = answer.and_then(|page| {
            let page = page.map_err(|error| {
                let message = format!("it did not list its tools: {}", error.message());
                Error::new(ErrorKind::NotMcp, message)
            })?;
            listing.pages.add(&page)
        });
        let result = match added {
            Ok(Next::Page(cursor)) => {
                listing.answer = asking.page(session, Some(&cursor));
                self.listing = Some(listing);
                return None;
            }
            Ok(Next::Done) => Ok(listing.pages.finish()),
            Err(error) => Err(error),
        };
        if std::mem::take(&mut self.again) && result.is_ok() {
            // Those who wait, wait for the newest.
            self.start(session, asking);
        } else {
            for done in self.waiting.drain(..) {
                let _ = done.send(result.as_ref().map(|_| ()).map_err(Clone::clone));
            }
        }
        Some(result)
    }
}
