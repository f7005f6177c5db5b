//! Resources and tasks that somebody wants to hear of: who holds each, and what the server was asked.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use crate::connection::subscription::{Held, Hold, Holds, Subject};
use crate::error::{Error, ErrorKind};
use crate::message::RpcError;
use crate::name::MAX_ADDRESS_BYTES;
use crate::principal::{FairShare, Principal, Requester};
use crate::protocol::code;

/// Resources and tasks of one server that are watched. Each costs the server and us a little. One
/// principal gets half of them if it is alone, and less while others watch some.
const MAX_WATCHED: usize = 20_000;

/// What came of a wish to hear of something.
pub(in crate::connection) type Given = Result<Result<Held, RpcError>, Error>;

/// Something to ask a server of the older generation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Errand {
    Subscribe,
    Unsubscribe,
}

/// All resources and tasks of a server that somebody wants to hear of. It outlives conversations with
/// the server: what is held is asked for in each.
pub(in crate::connection) struct Watched {
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
    /// The client or clients that wanted it since it was watched.
    requester: Requester,
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
    fn new(requester: Requester) -> Self {
        let principal = requester.principal.clone();
        Self { principal, requester, holders: 0, waiting: Vec::new(), stage: Stage::Unasked }
    }

    fn is_wanted(&self) -> bool {
        self.holders > 0 || self.waiting.iter().any(|reply| !reply.is_closed())
    }
}

impl Watched {
    /// Nothing is watched. Whoever holds something says there when that is over.
    pub(in crate::connection) fn new(holds: Holds) -> Self {
        let (entries, open) = (BTreeMap::new(), BTreeSet::new());
        Self { entries, open, holds, share: FairShare::new(MAX_WATCHED) }
    }

    /// Whether nothing is held and nobody waits.
    pub(in crate::connection) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the server has to be asked something.
    pub(in crate::connection) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Somebody wants to hear of something: at once if that is so already.
    pub(in crate::connection) fn want(
        &mut self,
        subject: Subject,
        requester: &Requester,
        reply: oneshot::Sender<Given>,
    ) {
        if subject.name().len() > MAX_ADDRESS_BYTES {
            let error = RpcError::new(code::INVALID_PARAMS, "the name is longer than 8 KiB");
            let _ = reply.send(Ok(Err(error)));
            return;
        }
        if !self.entries.contains_key(&subject) && !self.share.admits(&requester.principal) {
            let _ = reply.send(Err(too_many()));
            return;
        }
        let entry = self.entry(&subject, requester);
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
    pub(in crate::connection) fn settle(&mut self, hold: Hold) {
        match hold {
            Hold::Begun(subject, requester) => self.hold(subject, &requester),
            Hold::Over(subject) => self.release(&subject),
        }
    }

    /// Somebody holds something that the server may not have been asked for. There is no bound: they
    /// held it before, and of another connection.
    fn hold(&mut self, subject: Subject, requester: &Requester) {
        let entry = self.entry(&subject, requester);
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

    fn entry(&mut self, subject: &Subject, requester: &Requester) -> &mut Entry {
        let entry = self.entries.entry(subject.clone()).or_insert_with(|| {
            self.share.add(&requester.principal);
            Entry::new(requester.clone())
        });
        entry.requester = entry.requester.joined(requester);
        entry
    }

    /// The requester on whose behalf the server is asked about something.
    pub(in crate::connection) fn requester(&self, subject: &Subject) -> Option<Requester> {
        self.entries.get(subject).map(|entry| entry.requester.clone())
    }

    /// The requester on whose behalf the server is asked about everything at once; `None` if nothing
    /// is watched.
    pub(in crate::connection) fn requester_of_all(&self) -> Option<Requester> {
        let mut requesters = self.entries.values().map(|entry| &entry.requester);
        let first = requesters.next()?.clone();
        Some(requesters.fold(first, |all, one| all.joined(one)))
    }

    fn forget_unwanted(&mut self) {
        for (_, unwanted) in self.entries.extract_if(.., |_, entry| !entry.is_wanted()) {
            self.share.remove(&unwanted.principal);
        }
    }

    /// A conversation begins, in which nothing has been asked.
    pub(in crate::connection) fn begin(&mut self) {
        self.forget_unwanted();
        self.entries.values_mut().for_each(|entry| entry.stage = Stage::Unasked);
        self.open = self.entries.keys().cloned().collect();
    }

    /// What the server is asked for next, if it is asked for one after the other.
    pub(in crate::connection) fn next_errand(&mut self) -> Option<(Subject, Errand)> {
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
    pub(in crate::connection) fn all(&mut self) -> Vec<Subject> {
        self.open.clear();
        self.forget_unwanted();
        for entry in self.entries.values_mut().filter(|entry| entry.stage == Stage::Unasked) {
            entry.stage = Stage::Asked;
        }
        let asked = self.entries.iter().filter(|(_, entry)| entry.stage != Stage::Refused);
        asked.map(|(subject, _)| subject.clone()).collect()
    }

    /// What was asked for got no answer, and has to be asked for again.
    pub(in crate::connection) fn ask_again(&mut self) {
        self.reopen(|stage| stage == Stage::Asked);
    }

    /// The server says nothing any more of all it was asked for.
    pub(in crate::connection) fn lost(&mut self) {
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
    pub(in crate::connection) fn unanswered(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| entry.stage == Stage::Asked);
    }

    /// The server says from now on what becomes of something.
    pub(in crate::connection) fn heard(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = Stage::Heard;
        self.give(subject);
    }

    /// The server does not say what becomes of something.
    pub(in crate::connection) fn refused(
        &mut self,
        subject: &Subject,
        why: &Result<RpcError, Error>,
    ) {
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
    pub(in crate::connection) fn left(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = Stage::Unasked;
        if entry.is_wanted() {
            self.open.insert(subject.clone());
        } else {
            self.forget(subject);
        }
    }

    /// Nothing can be asked: tells those who wait why.
    pub(in crate::connection) fn fail(&mut self, why: &Result<RpcError, Error>) {
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
mod tests;
