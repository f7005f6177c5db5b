//! Resources that somebody wants to hear of: who holds each, and what the server was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::lists::MAX_ADDRESS_BYTES;
use crate::error::{Error, ErrorKind};
use crate::message::{RpcError, code};

/// Resources of one server that are watched. Each costs the server and us a little.
const MAX_WATCHED: usize = 10_000;

/// While it is held, the server is asked to say when a resource changes, also after it has been
/// started again. What it says comes with
/// [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct ResourceSubscription {
    uri: Arc<str>,
    released: mpsc::UnboundedSender<Arc<str>>,
}

impl ResourceSubscription {
    /// The address of the resource.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        // A connection that is over has nothing to take back.
        let _ = self.released.send(Arc::clone(&self.uri));
    }
}

/// What came of a wish to hear of a resource.
pub(super) type Given = Result<Result<ResourceSubscription, RpcError>, Error>;

/// Something to ask a server of the older generation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    Subscribe,
    Unsubscribe,
}

/// All resources of a server that somebody wants to hear of. It outlives conversations with the
/// server: what is held is asked for in each.
pub(super) struct Watched {
    entries: BTreeMap<Arc<str>, Entry>,
    /// Those about which the server may have to be asked something.
    open: BTreeSet<Arc<str>>,
    released: mpsc::UnboundedSender<Arc<str>>,
}

struct Entry {
    holders: usize,
    waiting: Vec<oneshot::Sender<Given>>,
    stage: Stage,
}

/// What the server was asked, in this conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unasked,
    Asked,
    /// It says when it changes.
    Heard,
    /// It does not want to, although it did once.
    Refused,
    /// It has been asked to stop.
    Leaving,
}

impl Entry {
    fn is_wanted(&self) -> bool {
        self.holders > 0 || self.waiting.iter().any(|reply| !reply.is_closed())
    }
}

impl Watched {
    /// Nothing is watched. What is released is said there, by whoever held it.
    pub(super) fn new(released: mpsc::UnboundedSender<Arc<str>>) -> Self {
        Self { entries: BTreeMap::new(), open: BTreeSet::new(), released }
    }

    /// Whether nothing is held and nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the server has to be asked something.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Somebody wants to hear of a resource: at once if that is so already.
    pub(super) fn want(&mut self, uri: &str, reply: oneshot::Sender<Given>) {
        if uri.len() > MAX_ADDRESS_BYTES {
            let error = RpcError::new(code::INVALID_PARAMS, "the address is longer than 8 KiB");
            let _ = reply.send(Ok(Err(error)));
            return;
        }
        if !self.entries.contains_key(uri) {
            if self.entries.len() >= MAX_WATCHED {
                let _ = reply.send(Err(too_many()));
                return;
            }
            let entry = Entry { holders: 0, waiting: Vec::new(), stage: Stage::Unasked };
            self.entries.insert(uri.into(), entry);
        }
        let Some((uri, entry)) = self.entry(uri) else { return };
        entry.waiting.retain(|reply| !reply.is_closed());
        entry.waiting.push(reply);
        match entry.stage {
            Stage::Heard => self.give(&uri),
            Stage::Unasked | Stage::Refused => {
                entry.stage = Stage::Unasked;
                self.open.insert(uri);
            }
            Stage::Asked | Stage::Leaving => {}
        }
    }

    /// Somebody does not hold a resource any more.
    pub(super) fn release(&mut self, uri: &str) {
        let Some((uri, entry)) = self.entry(uri) else { return };
        entry.holders = entry.holders.saturating_sub(1);
        if entry.is_wanted() {
            return;
        }
        match entry.stage {
            Stage::Heard => {
                self.open.insert(uri);
            }
            // The answer is on its way, and finds nobody.
            Stage::Asked | Stage::Leaving => {}
            Stage::Unasked | Stage::Refused => self.forget(&uri),
        }
    }

    /// A conversation begins, in which nothing has been asked.
    pub(super) fn begin(&mut self) {
        self.entries.retain(|_, entry| entry.is_wanted());
        self.entries.values_mut().for_each(|entry| entry.stage = Stage::Unasked);
        self.open = self.entries.keys().cloned().collect();
    }

    /// What the server is asked for next, if it is asked for one after the other.
    pub(super) fn next_errand(&mut self) -> Option<(Arc<str>, Errand)> {
        while let Some(uri) = self.open.pop_first() {
            let Some((_, entry)) = self.entry(&uri) else { continue };
            match (entry.stage, entry.is_wanted()) {
                (Stage::Unasked, true) => {
                    entry.stage = Stage::Asked;
                    return Some((uri, Errand::Subscribe));
                }
                (Stage::Heard, false) => {
                    entry.stage = Stage::Leaving;
                    return Some((uri, Errand::Unsubscribe));
                }
                (Stage::Unasked, false) => self.forget(&uri),
                _ => {}
            }
        }
        None
    }

    /// Everything the server is to be asked for, if it is asked for all at once, in order.
    pub(super) fn all(&mut self) -> Vec<Arc<str>> {
        self.open.clear();
        self.entries.retain(|_, entry| entry.is_wanted());
        for entry in self.entries.values_mut().filter(|entry| entry.stage == Stage::Unasked) {
            entry.stage = Stage::Asked;
        }
        let asked = self.entries.iter().filter(|(_, entry)| entry.stage != Stage::Refused);
        asked.map(|(uri, _)| Arc::clone(uri)).collect()
    }

    /// What was asked for got no answer, and has to be asked for again.
    pub(super) fn ask_again(&mut self) {
        self.reopen(|stage| stage == Stage::Asked);
    }

    /// The server says nothing any more of all it was asked for.
    pub(super) fn lost(&mut self) {
        self.reopen(|stage| matches!(stage, Stage::Asked | Stage::Heard));
    }

    fn reopen(&mut self, is_lost: impl Fn(Stage) -> bool) {
        for (uri, entry) in &mut self.entries {
            if is_lost(entry.stage) {
                entry.stage = Stage::Unasked;
                self.open.insert(Arc::clone(uri));
            }
        }
    }

    /// The server does not do what it was asked last.
    pub(super) fn unanswered(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| entry.stage == Stage::Asked);
    }

    /// The server says from now on when a resource changes.
    pub(super) fn heard(&mut self, uri: &str) {
        let Some((uri, entry)) = self.entry(uri) else { return };
        entry.stage = Stage::Heard;
        self.give(&uri);
    }

    /// The server does not say when a resource changes.
    pub(super) fn refused(&mut self, uri: &str, why: &Result<RpcError, Error>) {
        let Some((uri, entry)) = self.entry(uri) else { return };
        for reply in entry.waiting.drain(..) {
            let _ = reply.send(why.clone().map(Err));
        }
        // Those who hold it keep it: it may be there again the next time.
        entry.stage = Stage::Refused;
        if entry.holders == 0 {
            self.forget(&uri);
        }
    }

    /// The server does not say any more when a resource changes.
    pub(super) fn left(&mut self, uri: &str) {
        let Some((uri, entry)) = self.entry(uri) else { return };
        entry.stage = Stage::Unasked;
        if entry.is_wanted() {
            self.open.insert(uri);
        } else {
            self.forget(&uri);
        }
    }

    /// Nothing can be asked: tells those who wait why.
    pub(super) fn fail(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| !entry.waiting.is_empty());
    }

    fn refuse_all(&mut self, why: &Result<RpcError, Error>, is_meant: impl Fn(&Entry) -> bool) {
        let meant = self.entries.iter().filter(|(_, entry)| is_meant(entry));
        let uris: Vec<_> = meant.map(|(uri, _)| Arc::clone(uri)).collect();
        uris.iter().for_each(|uri| self.refused(uri, why));
    }

    fn entry(&mut self, uri: &str) -> Option<(Arc<str>, &mut Entry)> {
        let (uri, _) = self.entries.get_key_value(uri)?;
        let uri = Arc::clone(uri);
        let entry = self.entries.get_mut(&uri)?;
        Some((uri, entry))
    }

    /// Gives a resource that is heard of to those who wait for it.
    fn give(&mut self, uri: &Arc<str>) {
        let Some(entry) = self.entries.get_mut(uri) else { return };
        for reply in entry.waiting.drain(..).filter(|reply| !reply.is_closed()) {
            entry.holders += 1;
            let (uri, released) = (Arc::clone(uri), self.released.clone());
            // If they are gone by now, it is released like any other.
            let _ = reply.send(Ok(Ok(ResourceSubscription { uri, released })));
        }
        if entry.holders == 0 {
            self.open.insert(Arc::clone(uri));
        }
    }

    fn forget(&mut self, uri: &str) {
        self.entries.remove(uri);
        self.open.remove(uri);
    }
}

fn too_many() -> Error {
    let message = format!("more than {MAX_WATCHED} of its resources are watched already");
    Error::new(ErrorKind::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table {
        watched: Watched,
        released: mpsc::UnboundedReceiver<Arc<str>>,
    }

    impl Table {
        fn new() -> Self {
            let (sender, released) = mpsc::unbounded_channel();
            Self { watched: Watched::new(sender), released }
        }

        fn want(&mut self, uri: &str) -> oneshot::Receiver<Given> {
            let (reply, given) = oneshot::channel();
            self.watched.want(uri, reply);
            given
        }

        fn settle(&mut self) {
            while let Ok(uri) = self.released.try_recv() {
                self.watched.release(&uri);
            }
        }

        fn errand(&mut self) -> Option<(String, Errand)> {
            self.settle();
            self.watched.next_errand().map(|(uri, errand)| (uri.to_string(), errand))
        }
    }

    fn held(mut given: oneshot::Receiver<Given>) -> ResourceSubscription {
        given.try_recv().unwrap().unwrap().unwrap()
    }

    fn subscribe(uri: &str) -> Option<(String, Errand)> {
        Some((uri.to_owned(), Errand::Subscribe))
    }

    fn unsubscribe(uri: &str) -> Option<(String, Errand)> {
        Some((uri.to_owned(), Errand::Unsubscribe))
    }

    #[test]
    fn the_first_asks_and_the_last_takes_it_back() {
        let mut table = Table::new();
        let (first, second) = (table.want("a"), table.want("a"));
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
        table.watched.heard("a");
        let (first, second, third) = (held(first), held(second), held(table.want("a")));
        drop((first, second));
        assert_eq!(table.errand(), None);
        assert_eq!(third.uri(), "a");
        drop(third);
        assert_eq!(table.errand(), unsubscribe("a"));
        table.watched.left("a");
        assert!(table.watched.is_empty() && !table.watched.is_open());
    }

    #[test]
    fn whoever_comes_while_it_is_taken_back_gets_it_anew() {
        let mut table = Table::new();
        let first = table.want("a");
        table.errand();
        table.watched.heard("a");
        drop(held(first));
        assert_eq!(table.errand(), unsubscribe("a"));
        let second = table.want("a");
        assert_eq!(table.errand(), None, "the server has not answered");
        table.watched.left("a");
        assert_eq!(table.errand(), subscribe("a"));
        table.watched.heard("a");
        held(second);
    }

    #[test]
    fn whoever_gave_up_holds_nothing() {
        let mut table = Table::new();
        drop(table.want("a"));
        assert_eq!(table.errand(), None, "nobody wants it");
        assert!(table.watched.is_empty());
        let given = table.want("a");
        assert_eq!(table.errand(), subscribe("a"));
        drop(given);
        table.watched.heard("a");
        assert_eq!(table.errand(), unsubscribe("a"));
        // Given, and dropped before it was looked at.
        let given = table.want("b");
        table.errand();
        table.watched.heard("b");
        drop(given);
        assert_eq!(table.errand(), unsubscribe("b"));
    }

    #[test]
    fn what_is_held_is_asked_for_in_every_conversation() {
        let mut table = Table::new();
        let (a, b) = (table.want("a"), table.want("b"));
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), subscribe("b")));
        table.watched.heard("a");
        let a = held(a);
        table.watched.begin();
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), subscribe("b")));
        drop(b);
        table.watched.begin();
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
        let no = RpcError::new(code::INVALID_PARAMS, "no");
        table.watched.refused("a", &Ok(no));
        assert!(!table.watched.is_empty(), "it is held");
        drop(a);
        assert_eq!(table.errand(), None);
        assert!(table.watched.is_empty());
    }

    #[test]
    fn a_refusal_goes_to_those_who_wait() {
        let mut table = Table::new();
        let mut given = table.want("a");
        table.errand();
        table.watched.refused("a", &Ok(RpcError::new(code::INVALID_PARAMS, "no")));
        assert_eq!(given.try_recv().unwrap().unwrap().unwrap_err().message(), "no");
        let mut given = table.want("b");
        table.watched.fail(&Err(too_many()));
        assert_eq!(given.try_recv().unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
        assert!(table.watched.is_empty());
    }

    #[test]
    fn all_at_once_is_what_is_wanted_now() {
        let mut table = Table::new();
        let (a, b, c) = (table.want("a"), table.want("b"), table.want("c"));
        drop(c);
        let all = |table: &mut Table| table.watched.all().join(" ");
        assert_eq!(all(&mut table), "a b");
        assert!(!table.watched.is_open());
        table.watched.heard("a");
        table.watched.heard("b");
        let (a, _b) = (held(a), held(b));
        drop(a);
        table.settle();
        assert!(table.watched.is_open());
        assert_eq!(all(&mut table), "b");
        table.watched.ask_again();
        assert!(!table.watched.is_open(), "nothing was asked for since");
        table.watched.lost();
        assert!(table.watched.is_open());
        assert_eq!(all(&mut table), "b");
        table.watched.unanswered(&Ok(RpcError::new(code::INVALID_PARAMS, "no")));
        assert_eq!(all(&mut table), "", "it is held, and not asked for again");
        let _again = table.want("b");
        assert_eq!(all(&mut table), "b");
    }

    #[test]
    fn only_so_many_are_watched() {
        let mut table = Table::new();
        let given: Vec<_> = (0..MAX_WATCHED).map(|at| table.want(&at.to_string())).collect();
        let mut too_long = table.want(&"x".repeat(MAX_ADDRESS_BYTES + 1));
        assert!(too_long.try_recv().unwrap().unwrap().is_err());
        let mut one_more = table.want("more");
        assert_eq!(one_more.try_recv().unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
        drop(given);
        while table.errand().is_some() {}
        table.want("more");
        assert_eq!(table.errand(), None);
    }
}
