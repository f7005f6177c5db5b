//! Resources and tasks that somebody wants to hear of: who holds each, and what the server was asked.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use super::subscription::{Held, Hold, Holds, Subject};
use crate::error::{Error, ErrorKind};
use crate::message::{RpcError, code};
use crate::name::MAX_ADDRESS_BYTES;
use crate::principal::{FairShare, Principal};

/// Resources and tasks of one server that are watched. Each costs the server and us a little. One
/// principal gets half of them if it is alone, and less while others watch some.
const MAX_WATCHED: usize = 20_000;

/// What came of a wish to hear of something.
pub(super) type Given = Result<Result<Held, RpcError>, Error>;

/// Something to ask a server of the older generation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    Subscribe,
    Unsubscribe,
}

/// All resources and tasks of a server that somebody wants to hear of. It outlives conversations with
/// the server: what is held is asked for in each.
pub(super) struct Watched {
    entries: BTreeMap<Subject, Entry>,
    /// Those about which the server may have to be asked something.
    open: BTreeSet<Subject>,
    holds: Holds,
    /// The entries of each principal.
    share: FairShare,
}

struct Entry {
    /// The principal that wanted it first, whose share it uses.
    principal: Principal,
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
    fn new(principal: Principal) -> Self {
        Self { principal, holders: 0, waiting: Vec::new(), stage: Stage::Unasked }
    }

    fn is_wanted(&self) -> bool {
        self.holders > 0 || self.waiting.iter().any(|reply| !reply.is_closed())
    }
}

impl Watched {
    /// Nothing is watched. Whoever holds something says there when that is over.
    pub(super) fn new(holds: Holds) -> Self {
        let (entries, open) = (BTreeMap::new(), BTreeSet::new());
        Self { entries, open, holds, share: FairShare::new(MAX_WATCHED) }
    }

    /// Whether nothing is held and nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the server has to be asked something.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Somebody wants to hear of something: at once if that is so already.
    pub(super) fn want(
        &mut self,
        subject: Subject,
        principal: &Principal,
        reply: oneshot::Sender<Given>,
    ) {
        if subject.name().len() > MAX_ADDRESS_BYTES {
            let error = RpcError::new(code::INVALID_PARAMS, "the name is longer than 8 KiB");
            let _ = reply.send(Ok(Err(error)));
            return;
        }
        if !self.entries.contains_key(&subject) && !self.share.admits(principal) {
            let _ = reply.send(Err(too_many()));
            return;
        }
        let entry = self.entry(&subject, principal);
        entry.waiting.retain(|reply| !reply.is_closed());
        entry.waiting.push(reply);
        match entry.stage {
            Stage::Heard => self.give(&subject),
            Stage::Unasked | Stage::Refused => {
                entry.stage = Stage::Unasked;
                self.open.insert(subject);
            }
            Stage::Asked | Stage::Leaving => {}
        }
    }

    /// Somebody says what becomes of something that they hold.
    pub(super) fn settle(&mut self, hold: Hold) {
        match hold {
            Hold::Begun(subject, principal) => self.hold(subject, &principal),
            Hold::Over(subject) => self.release(&subject),
        }
    }

    /// Somebody holds something that the server may not have been asked for. There is no bound: they
    /// held it before, and of another connection.
    fn hold(&mut self, subject: Subject, principal: &Principal) {
        let entry = self.entry(&subject, principal);
        entry.holders += 1;
        if matches!(entry.stage, Stage::Unasked | Stage::Refused) {
            entry.stage = Stage::Unasked;
            self.open.insert(subject);
        }
    }

    /// Somebody does not hold something any more.
    fn release(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.holders = entry.holders.saturating_sub(1);
        if entry.is_wanted() {
            return;
        }
        match entry.stage {
            Stage::Heard => {
                self.open.insert(subject.clone());
            }
            // The answer is on its way, and finds nobody.
            Stage::Asked | Stage::Leaving => {}
            Stage::Unasked | Stage::Refused => self.forget(subject),
        }
    }

    fn entry(&mut self, subject: &Subject, principal: &Principal) -> &mut Entry {
        self.entries.entry(subject.clone()).or_insert_with(|| {
            self.share.add(principal);
            Entry::new(principal.clone())
        })
    }

    fn forget_unwanted(&mut self) {
        for (_, unwanted) in self.entries.extract_if(.., |_, entry| !entry.is_wanted()) {
            self.share.remove(&unwanted.principal);
        }
    }

    /// A conversation begins, in which nothing has been asked.
    pub(super) fn begin(&mut self) {
        self.forget_unwanted();
        self.entries.values_mut().for_each(|entry| entry.stage = Stage::Unasked);
        self.open = self.entries.keys().cloned().collect();
    }

    /// What the server is asked for next, if it is asked for one after the other.
    pub(super) fn next_errand(&mut self) -> Option<(Subject, Errand)> {
        while let Some(subject) = self.open.pop_first() {
            let Some(entry) = self.entries.get_mut(&subject) else { continue };
            match (entry.stage, entry.is_wanted()) {
                (Stage::Unasked, true) => {
                    entry.stage = Stage::Asked;
                    return Some((subject, Errand::Subscribe));
                }
                (Stage::Heard, false) => {
                    entry.stage = Stage::Leaving;
                    return Some((subject, Errand::Unsubscribe));
                }
                (Stage::Unasked, false) => self.forget(&subject),
                _ => {}
            }
        }
        None
    }

    /// Everything the server is to be asked for, if it is asked for all at once, in order.
    pub(super) fn all(&mut self) -> Vec<Subject> {
        self.open.clear();
        self.forget_unwanted();
        for entry in self.entries.values_mut().filter(|entry| entry.stage == Stage::Unasked) {
            entry.stage = Stage::Asked;
        }
        let asked = self.entries.iter().filter(|(_, entry)| entry.stage != Stage::Refused);
        asked.map(|(subject, _)| subject.clone()).collect()
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
        for (subject, entry) in &mut self.entries {
            if is_lost(entry.stage) {
                entry.stage = Stage::Unasked;
                self.open.insert(subject.clone());
            }
        }
    }

    /// The server does not do what it was asked last.
    pub(super) fn unanswered(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| entry.stage == Stage::Asked);
    }

    /// The server says from now on what becomes of something.
    pub(super) fn heard(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = Stage::Heard;
        self.give(subject);
    }

    /// The server does not say what becomes of something.
    pub(super) fn refused(&mut self, subject: &Subject, why: &Result<RpcError, Error>) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for reply in entry.waiting.drain(..) {
            let _ = reply.send(why.clone().map(Err));
        }
        // Those who hold it keep it: it may be there again the next time.
        entry.stage = Stage::Refused;
        if entry.holders == 0 {
            self.forget(subject);
        }
    }

    /// The server does not say any more what becomes of something.
    pub(super) fn left(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = Stage::Unasked;
        if entry.is_wanted() {
            self.open.insert(subject.clone());
        } else {
            self.forget(subject);
        }
    }

    /// Nothing can be asked: tells those who wait why.
    pub(super) fn fail(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| !entry.waiting.is_empty());
    }

    fn refuse_all(&mut self, why: &Result<RpcError, Error>, is_meant: impl Fn(&Entry) -> bool) {
        let meant = self.entries.iter().filter(|(_, entry)| is_meant(entry));
        let subjects: Vec<_> = meant.map(|(subject, _)| subject.clone()).collect();
        subjects.iter().for_each(|subject| self.refused(subject, why));
    }

    /// Gives what is heard of to those who wait for it.
    fn give(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for reply in entry.waiting.drain(..).filter(|reply| !reply.is_closed()) {
            entry.holders += 1;
            let (subject, holds) = (subject.clone(), self.holds.clone());
            // If they are gone by now, it is released like any other.
            let _ = reply.send(Ok(Ok(Held { subject, holds })));
        }
        if entry.holders == 0 {
            self.open.insert(subject.clone());
        }
    }

    fn forget(&mut self, subject: &Subject) {
        if let Some(forgotten) = self.entries.remove(subject) {
            self.share.remove(&forgotten.principal);
        }
        self.open.remove(subject);
    }
}

fn too_many() -> Error {
    let message = format!(
        "too many of its resources and tasks are watched already: one token or client may watch \
         half of {MAX_WATCHED}, and less while others watch some"
    );
    Error::new(ErrorKind::Busy, message).with_hint("unsubscribe from some, or try again later")
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::connection::subscription::ResourceSubscription;

    struct Table {
        watched: Watched,
        holds: mpsc::UnboundedReceiver<Hold>,
    }

    impl Table {
        fn new() -> Self {
            let (sender, holds) = mpsc::unbounded_channel();
            Self { watched: Watched::new(sender), holds }
        }

        fn want(&mut self, uri: &str) -> oneshot::Receiver<Given> {
            self.want_for(&Principal::Anonymous, uri)
        }

        fn want_for(&mut self, principal: &Principal, uri: &str) -> oneshot::Receiver<Given> {
            let (reply, given) = oneshot::channel();
            self.watched.want(Subject::resource(uri), principal, reply);
            given
        }

        fn settle(&mut self) {
            while let Ok(hold) = self.holds.try_recv() {
                self.watched.settle(hold);
            }
        }

        fn errand(&mut self) -> Option<(String, Errand)> {
            self.settle();
            self.watched.next_errand().map(|(subject, errand)| (subject.name().to_owned(), errand))
        }
    }

    fn held(mut given: oneshot::Receiver<Given>) -> ResourceSubscription {
        ResourceSubscription(given.try_recv().unwrap().unwrap().unwrap())
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
        table.watched.heard(&Subject::resource("a"));
        let (first, second, third) = (held(first), held(second), held(table.want("a")));
        drop((first, second));
        assert_eq!(table.errand(), None);
        assert_eq!(third.uri(), "a");
        drop(third);
        assert_eq!(table.errand(), unsubscribe("a"));
        table.watched.left(&Subject::resource("a"));
        assert!(table.watched.is_empty() && !table.watched.is_open());
    }

    #[test]
    fn whoever_comes_while_it_is_taken_back_gets_it_anew() {
        let mut table = Table::new();
        let first = table.want("a");
        table.errand();
        table.watched.heard(&Subject::resource("a"));
        drop(held(first));
        assert_eq!(table.errand(), unsubscribe("a"));
        let second = table.want("a");
        assert_eq!(table.errand(), None, "the server has not answered");
        table.watched.left(&Subject::resource("a"));
        assert_eq!(table.errand(), subscribe("a"));
        table.watched.heard(&Subject::resource("a"));
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
        table.watched.heard(&Subject::resource("a"));
        assert_eq!(table.errand(), unsubscribe("a"));
        // Given, and dropped before it was looked at.
        let given = table.want("b");
        table.errand();
        table.watched.heard(&Subject::resource("b"));
        drop(given);
        assert_eq!(table.errand(), unsubscribe("b"));
    }

    #[test]
    fn what_is_held_is_asked_for_in_every_conversation() {
        let mut table = Table::new();
        let (a, b) = (table.want("a"), table.want("b"));
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), subscribe("b")));
        table.watched.heard(&Subject::resource("a"));
        let a = held(a);
        table.watched.begin();
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), subscribe("b")));
        drop(b);
        table.watched.begin();
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
        let no = RpcError::new(code::INVALID_PARAMS, "no");
        table.watched.refused(&Subject::resource("a"), &Ok(no));
        assert!(!table.watched.is_empty(), "it is held");
        drop(a);
        assert_eq!(table.errand(), None);
        assert!(table.watched.is_empty());
    }

    #[test]
    fn what_is_held_is_asked_for_once_the_server_is_there() {
        let mut table = Table::new();
        let holds = table.watched.holds.clone();
        let held =
            [1, 2].map(|_| Held::begin(Subject::resource("a"), Principal::Anonymous, &holds));
        table.settle();
        table.watched.fail(&Err(too_many()));
        table.watched.begin();
        assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
        table.watched.heard(&Subject::resource("a"));
        drop(held);
        assert_eq!((table.errand(), table.errand()), (unsubscribe("a"), None));
    }

    #[test]
    fn a_refusal_goes_to_those_who_wait() {
        let mut table = Table::new();
        let mut given = table.want("a");
        table.errand();
        table
            .watched
            .refused(&Subject::resource("a"), &Ok(RpcError::new(code::INVALID_PARAMS, "no")));
        assert_eq!(given.try_recv().unwrap().unwrap().unwrap_err().message(), "no");
        let mut given = table.want("b");
        table.watched.fail(&Err(too_many()));
        assert_eq!(given.try_recv().unwrap().unwrap_err().kind(), ErrorKind::Busy);
        assert!(table.watched.is_empty());
    }

    #[test]
    fn all_at_once_is_what_is_wanted_now() {
        let mut table = Table::new();
        let (a, b, c) = (table.want("a"), table.want("b"), table.want("c"));
        drop(c);
        let all = |table: &mut Table| {
            let all = table.watched.all();
            all.iter().map(Subject::name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(all(&mut table), "a b");
        assert!(!table.watched.is_open());
        table.watched.heard(&Subject::resource("a"));
        table.watched.heard(&Subject::resource("b"));
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
        let given: Vec<_> = (0..MAX_WATCHED / 2).map(|at| table.want(&at.to_string())).collect();
        let mut too_long = table.want(&"x".repeat(MAX_ADDRESS_BYTES + 1));
        assert!(too_long.try_recv().unwrap().unwrap().is_err());
        let mut one_more = table.want("more");
        let busy = one_more.try_recv().unwrap().unwrap_err();
        assert!(busy.kind() == ErrorKind::Busy && busy.kind().is_retryable(), "{busy}");
        let other = Principal::Token("bob".into());
        let mut of_other = table.want_for(&other, "others");
        assert!(of_other.try_recv().is_err(), "another principal gets in");
        drop(of_other);
        assert!(table.want("7").try_recv().is_err(), "what is watched already costs nothing");
        drop(given);
        while table.errand().is_some() {}
        table.want("more");
        assert_eq!(table.errand(), None);
    }
}
