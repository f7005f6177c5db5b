//! Resources and tasks that somebody wants to hear of: who holds each, and what the server was asked.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use crate::connection::subscription::{
    HoldChange, HoldSender, SubscriptionGuard, SubscriptionSubject,
};
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, RpcError};
use crate::name::MAX_URI_BYTES;
use crate::principal::{FairShare, Principal, Requester};
use crate::protocol::code;

/// Resources and tasks of one server that are watched. Each costs the server and us a little. One
/// principal gets half of them if it is alone, and less while others watch some.
const MAX_WATCHED: usize = 20_000;

/// Bytes of their names, as a request writes them. A server of 2026-07-28 is asked for all of them in one
/// request, and repeats them in one notification, either of which may have 16 MiB.
const MAX_WATCHED_BYTES: usize = 12 * 1024 * 1024;

/// What came of a wish to hear of something.
pub(in crate::connection) type SubscribeResult = Result<Result<SubscriptionGuard, RpcError>, Error>;

/// Something to ask a server of the older generation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum SubscribeOp {
    Subscribe,
    Unsubscribe,
}

/// All resources and tasks of a server that somebody wants to hear of. It outlives conversations with
/// the server: what is held is asked for in each.
pub(in crate::connection) struct Subscriptions {
    entries: BTreeMap<SubscriptionSubject, SubscriptionEntry>,
    /// Those about which the server may have to be asked something.
    open: BTreeSet<SubscriptionSubject>,
    holds: HoldSender,
    /// The entries of each principal.
    share: FairShare,
    /// The bytes of their names.
    share_of_bytes: FairShare,
}

struct SubscriptionEntry {
    /// The principal that wanted it first, whose share it uses.
    principal: Principal,
    /// The client or clients that wanted it since it was watched.
    requester: Requester,
    holders: usize,
    waiting: Vec<oneshot::Sender<SubscribeResult>>,
    stage: SubscriptionState,
}

/// What the server was asked, in this conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubscriptionState {
    Unasked,
    Asked,
    /// It says when it changes.
    Heard,
    /// It does not want to, although it did once.
    Refused,
    /// It has been asked to stop.
    Leaving,
}

impl SubscriptionEntry {
    fn new(requester: Requester) -> Self {
        let principal = requester.principal.clone();
        Self {
            principal,
            requester,
            holders: 0,
            waiting: Vec::new(),
            stage: SubscriptionState::Unasked,
        }
    }

    fn is_wanted(&self) -> bool {
        self.holders > 0 || self.waiting.iter().any(|reply| !reply.is_closed())
    }
}

impl Subscriptions {
    /// Nothing is watched. Whoever holds something says there when that is over.
    pub(in crate::connection) fn new(holds: HoldSender) -> Self {
        let (entries, open) = (BTreeMap::new(), BTreeSet::new());
        let share = FairShare::new(MAX_WATCHED);
        let share_of_bytes = FairShare::new(MAX_WATCHED_BYTES);
        Self { entries, open, holds, share, share_of_bytes }
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
    pub(in crate::connection) fn subscribe(
        &mut self,
        subject: SubscriptionSubject,
        requester: &Requester,
        reply: oneshot::Sender<SubscribeResult>,
    ) {
        if subject.name().len() > MAX_URI_BYTES {
            let error = RpcError::new(code::INVALID_PARAMS, "the name is longer than 8 KiB");
            let _ = reply.send(Ok(Err(error)));
            return;
        }
        if !self.entries.contains_key(&subject) && !self.admits(&subject, &requester.principal) {
            let _ = reply.send(Err(too_many()));
            return;
        }
        let entry = self.entry(&subject, requester);
        entry.waiting.retain(|reply| !reply.is_closed());
        entry.waiting.push(reply);
        match entry.stage {
            SubscriptionState::Heard => self.respond(&subject),
            SubscriptionState::Unasked | SubscriptionState::Refused => {
                entry.stage = SubscriptionState::Unasked;
                self.open.insert(subject);
            }
            SubscriptionState::Asked | SubscriptionState::Leaving => {}
        }
    }

    /// Whether a principal may watch something more.
    fn admits(&self, subject: &SubscriptionSubject, principal: &Principal) -> bool {
        self.share.admits(principal)
            && self.share_of_bytes.admits_many(principal, written_bytes(subject))
    }

    /// Somebody says what becomes of something that they hold.
    pub(in crate::connection) fn settle(&mut self, hold: HoldChange) {
        match hold {
            HoldChange::Begun(subject, requester) => self.hold(subject, &requester),
            HoldChange::Over(subject) => self.release(&subject),
        }
    }

    /// Somebody holds something that the server may not have been asked for. There is no bound: they
    /// held it before, and of another connection.
    fn hold(&mut self, subject: SubscriptionSubject, requester: &Requester) {
        let entry = self.entry(&subject, requester);
        entry.holders += 1;
        if matches!(entry.stage, SubscriptionState::Unasked | SubscriptionState::Refused) {
            entry.stage = SubscriptionState::Unasked;
            self.open.insert(subject);
        }
    }

    /// Somebody does not hold something any more.
    fn release(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.holders = entry.holders.saturating_sub(1);
        if entry.is_wanted() {
            return;
        }
        match entry.stage {
            SubscriptionState::Heard => {
                self.open.insert(subject.clone());
            }
            // The answer is on its way, and finds nobody.
            SubscriptionState::Asked | SubscriptionState::Leaving => {}
            SubscriptionState::Unasked | SubscriptionState::Refused => self.remove(subject),
        }
    }

    fn entry(
        &mut self,
        subject: &SubscriptionSubject,
        requester: &Requester,
    ) -> &mut SubscriptionEntry {
        let entry = self.entries.entry(subject.clone()).or_insert_with(|| {
            self.share.add(&requester.principal);
            self.share_of_bytes.add_many(&requester.principal, written_bytes(subject));
            SubscriptionEntry::new(requester.clone())
        });
        entry.requester = entry.requester.joined(requester);
        entry
    }

    /// The requester on whose behalf the server is asked about something.
    pub(in crate::connection) fn requester(
        &self,
        subject: &SubscriptionSubject,
    ) -> Option<Requester> {
        self.entries.get(subject).map(|entry| entry.requester.clone())
    }

    /// The requester on whose behalf the server is asked about everything at once; `None` if nothing
    /// is watched.
    pub(in crate::connection) fn requester_of_all(&self) -> Option<Requester> {
        let mut requesters = self.entries.values().map(|entry| &entry.requester);
        let first = requesters.next()?.clone();
        Some(requesters.fold(first, |all, one| all.joined(one)))
    }

    fn remove_unwanted(&mut self) {
        for (subject, unwanted) in self.entries.extract_if(.., |_, entry| !entry.is_wanted()) {
            self.share.remove(&unwanted.principal);
            self.share_of_bytes.remove_many(&unwanted.principal, written_bytes(&subject));
        }
    }

    /// A conversation begins, in which nothing has been asked.
    pub(in crate::connection) fn begin(&mut self) {
        self.remove_unwanted();
        self.entries.values_mut().for_each(|entry| entry.stage = SubscriptionState::Unasked);
        self.open = self.entries.keys().cloned().collect();
    }

    /// What the server is asked for next, if it is asked for one after the other.
    pub(in crate::connection) fn next_op(&mut self) -> Option<(SubscriptionSubject, SubscribeOp)> {
        while let Some(subject) = self.open.pop_first() {
            let Some(entry) = self.entries.get_mut(&subject) else { continue };
            match (entry.stage, entry.is_wanted()) {
                (SubscriptionState::Unasked, true) => {
                    entry.stage = SubscriptionState::Asked;
                    return Some((subject, SubscribeOp::Subscribe));
                }
                (SubscriptionState::Heard, false) => {
                    entry.stage = SubscriptionState::Leaving;
                    return Some((subject, SubscribeOp::Unsubscribe));
                }
                (SubscriptionState::Unasked, false) => self.remove(&subject),
                _ => {}
            }
        }
        None
    }

    /// Everything the server is to be asked for, if it is asked for all at once, in order.
    pub(in crate::connection) fn all(&mut self) -> Vec<SubscriptionSubject> {
        self.open.clear();
        self.remove_unwanted();
        self.refuse_excess();
        for entry in
            self.entries.values_mut().filter(|entry| entry.stage == SubscriptionState::Unasked)
        {
            entry.stage = SubscriptionState::Asked;
        }
        let asked =
            self.entries.iter().filter(|(_, entry)| entry.stage != SubscriptionState::Refused);
        asked.map(|(subject, _)| subject.clone()).collect()
    }

    /// Refuses the names that do not fit into one request. Holds of an earlier connection are not bounded
    /// before.
    fn refuse_excess(&mut self) {
        let mut bytes = 0;
        let asked = self.entries.iter();
        let asked = asked.filter(|(_, entry)| entry.stage != SubscriptionState::Refused);
        let excess = asked.filter(|(subject, _)| {
            bytes += written_bytes(subject);
            bytes > MAX_WATCHED_BYTES
        });
        let excess: Vec<_> = excess.map(|(subject, _)| subject.clone()).collect();
        excess.iter().for_each(|subject| self.on_refused(subject, &Err(too_many())));
    }

    /// What was asked for got no answer, and has to be asked for again.
    pub(in crate::connection) fn request_again(&mut self) {
        self.reopen(|stage| stage == SubscriptionState::Asked);
    }

    /// The server says nothing any more of all it was asked for.
    pub(in crate::connection) fn on_session_lost(&mut self) {
        self.reopen(|stage| matches!(stage, SubscriptionState::Asked | SubscriptionState::Heard));
    }

    fn reopen(&mut self, is_lost: impl Fn(SubscriptionState) -> bool) {
        for (subject, entry) in &mut self.entries {
            if is_lost(entry.stage) {
                entry.stage = SubscriptionState::Unasked;
                self.open.insert(subject.clone());
            }
        }
    }

    /// The server does not do what it was asked last.
    pub(in crate::connection) fn on_timeout(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| entry.stage == SubscriptionState::Asked);
    }

    /// The server says from now on what becomes of something.
    pub(in crate::connection) fn on_subscribed(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = SubscriptionState::Heard;
        self.respond(subject);
    }

    /// The server does not say what becomes of something.
    pub(in crate::connection) fn on_refused(
        &mut self,
        subject: &SubscriptionSubject,
        why: &Result<RpcError, Error>,
    ) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for reply in entry.waiting.drain(..) {
            let _ = reply.send(why.clone().map(Err));
        }
        // Those who hold it keep it: it may be there again the next time.
        entry.stage = SubscriptionState::Refused;
        if entry.holders == 0 {
            self.remove(subject);
        }
    }

    /// The server does not say any more what becomes of something.
    pub(in crate::connection) fn on_unsubscribed(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = SubscriptionState::Unasked;
        if entry.is_wanted() {
            self.open.insert(subject.clone());
        } else {
            self.remove(subject);
        }
    }

    /// Nothing can be asked: tells those who wait why.
    pub(in crate::connection) fn fail(&mut self, why: &Result<RpcError, Error>) {
        self.refuse_all(why, |entry| !entry.waiting.is_empty());
    }

    fn refuse_all(
        &mut self,
        why: &Result<RpcError, Error>,
        is_meant: impl Fn(&SubscriptionEntry) -> bool,
    ) {
        let meant = self.entries.iter().filter(|(_, entry)| is_meant(entry));
        let subjects: Vec<_> = meant.map(|(subject, _)| subject.clone()).collect();
        subjects.iter().for_each(|subject| self.on_refused(subject, why));
    }

    /// Gives what is heard of to those who wait for it.
    fn respond(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for reply in entry.waiting.drain(..).filter(|reply| !reply.is_closed()) {
            entry.holders += 1;
            let (subject, holds) = (subject.clone(), self.holds.clone());
            // If they are gone by now, it is released like any other.
            let _ = reply.send(Ok(Ok(SubscriptionGuard { subject, holds })));
        }
        if entry.holders == 0 {
            self.open.insert(subject.clone());
        }
    }

    fn remove(&mut self, subject: &SubscriptionSubject) {
        if let Some(forgotten) = self.entries.remove(subject) {
            self.share.remove(&forgotten.principal);
            self.share_of_bytes.remove_many(&forgotten.principal, written_bytes(subject));
        }
        self.open.remove(subject);
    }
}

/// Bytes of the name of something, as a request writes it among others.
fn written_bytes(subject: &SubscriptionSubject) -> usize {
    Raw::from_string(subject.name()).bytes().len() + 1
}

fn too_many() -> Error {
    let message = format!(
        "too many of its resources and tasks are watched already: one token or client may watch \
         half of {MAX_WATCHED}, or of {MAX_WATCHED_BYTES} bytes, and less while others watch some"
    );
    Error::new(ErrorKind::Busy, message).with_hint("unsubscribe from some, or try again later")
}

#[cfg(test)]
mod tests;
