//! The table of resource and task subscriptions of one server: their holders, and the state of each
//! on the server.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use crate::connection::request_error::RequestError;
use crate::connection::subscription::{
    HoldChange, HoldSender, SubscriptionGuard, SubscriptionSubject,
};
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, RpcError};
use crate::name::MAX_URI_BYTES;
use crate::principal::{FairShare, Principal, Requester};
use crate::protocol::code;

/// Limit of resources and tasks with a subscription on one server: each takes memory here and on
/// the server. One principal gets half of them if it is alone, and less while others hold some.
const MAX_WATCHED: usize = 20_000;

/// Limit of the bytes of their names as JSON. A modern server receives all of them in one request
/// and repeats them in one notification, each limited to 16 MiB.
const MAX_WATCHED_BYTES: usize = 12 * 1024 * 1024;

/// The result of a subscription request.
pub(in crate::connection) type SubscribeResult = Result<SubscriptionGuard, RequestError>;

/// A subscription request to a legacy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum SubscribeOp {
    Subscribe,
    Unsubscribe,
}

/// All resource and task subscriptions of a server. The table outlives sessions: held subscriptions
/// are renewed in each.
pub(in crate::connection) struct Subscriptions {
    entries: BTreeMap<SubscriptionSubject, SubscriptionEntry>,
    /// Entries that may need a request to the server.
    open: BTreeSet<SubscriptionSubject>,
    holds: HoldSender,
    /// Entries per principal.
    share: FairShare,
    /// Bytes of names per principal.
    share_of_bytes: FairShare,
}

struct SubscriptionEntry {
    /// The principal of the first subscriber, whose share the entry uses.
    principal: Principal,
    /// All clients that have subscribed to it.
    requester: Requester,
    holders: usize,
    waiting: Vec<oneshot::Sender<SubscribeResult>>,
    stage: SubscriptionState,
}

/// The state of a subscription in the current session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubscriptionState {
    Unasked,
    Asked,
    /// Subscribed: the server sends updates.
    Heard,
    /// Rejected by the server, although it is held from before.
    Refused,
    /// An unsubscribe request is in flight.
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
    /// Creates an empty table. Guards report their end through `holds`.
    pub(in crate::connection) fn new(holds: HoldSender) -> Self {
        let (entries, open) = (BTreeMap::new(), BTreeSet::new());
        let share = FairShare::new(MAX_WATCHED);
        let share_of_bytes = FairShare::new(MAX_WATCHED_BYTES);
        Self { entries, open, holds, share, share_of_bytes }
    }

    /// Whether there are no subscriptions, held or pending.
    pub(in crate::connection) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the server may need a request.
    pub(in crate::connection) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Adds a subscriber. It gets its guard at once if the server is subscribed to already.
    pub(in crate::connection) fn subscribe(
        &mut self,
        subject: SubscriptionSubject,
        requester: &Requester,
        reply: oneshot::Sender<SubscribeResult>,
    ) {
        if subject.name().len() > MAX_URI_BYTES {
            let error = RpcError::new(code::INVALID_PARAMS, "the name is longer than 8 KiB");
            let _ = reply.send(Err(error.into()));
            return;
        }
        if !self.entries.contains_key(&subject) && !self.admits(&subject, &requester.principal) {
            let _ = reply.send(Err(too_many().into()));
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

    /// Whether a principal may add a subscription.
    fn admits(&self, subject: &SubscriptionSubject, principal: &Principal) -> bool {
        self.share.admits(principal)
            && self.share_of_bytes.admits_many(principal, written_bytes(subject))
    }

    /// Handles the begin or end of a hold.
    pub(in crate::connection) fn settle(&mut self, hold: HoldChange) {
        match hold {
            HoldChange::Begun(subject, requester) => self.hold(subject, &requester),
            HoldChange::Over(subject) => self.release(&subject),
        }
    }

    /// Adds a holder without a limit check: the subscription existed on a previous connection.
    fn hold(&mut self, subject: SubscriptionSubject, requester: &Requester) {
        let entry = self.entry(&subject, requester);
        entry.holders += 1;
        if matches!(entry.stage, SubscriptionState::Unasked | SubscriptionState::Refused) {
            entry.stage = SubscriptionState::Unasked;
            self.open.insert(subject);
        }
    }

    /// Removes a holder.
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
            // The response in flight settles the entry.
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

    /// The requester on whose behalf a subscription is requested.
    pub(in crate::connection) fn requester(
        &self,
        subject: &SubscriptionSubject,
    ) -> Option<Requester> {
        self.entries.get(subject).map(|entry| entry.requester.clone())
    }

    /// The requester on whose behalf all subscriptions are requested in one request; `None` if
    /// there are none.
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

    /// Starts a new session, in which nothing is subscribed to yet.
    pub(in crate::connection) fn begin(&mut self) {
        self.remove_unwanted();
        self.entries.values_mut().for_each(|entry| entry.stage = SubscriptionState::Unasked);
        self.open = self.entries.keys().cloned().collect();
    }

    /// The next request to a legacy server, which has one request per subscription.
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

    /// All subjects for the one request to a modern server, in order.
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

    /// Rejects the names that do not fit into one request: holds of a previous connection were
    /// added without a limit check.
    fn refuse_excess(&mut self) {
        let mut bytes = 0;
        let asked = self.entries.iter();
        let asked = asked.filter(|(_, entry)| entry.stage != SubscriptionState::Refused);
        let excess = asked.filter(|(subject, _)| {
            bytes += written_bytes(subject);
            bytes > MAX_WATCHED_BYTES
        });
        let excess: Vec<_> = excess.map(|(subject, _)| subject.clone()).collect();
        excess.iter().for_each(|subject| self.on_refused(subject, &too_many().into()));
    }

    /// Marks subscriptions as not requested after a request that got no response.
    pub(in crate::connection) fn request_again(&mut self) {
        self.reopen(|stage| stage == SubscriptionState::Asked);
    }

    /// Marks all subscriptions as not requested, because the server sends no more updates.
    pub(in crate::connection) fn on_listen_ended(&mut self) {
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

    /// Rejects the subscriptions of the last request, with the reason.
    pub(in crate::connection) fn on_timeout(&mut self, why: &RequestError) {
        self.refuse_all(why, |entry| entry.stage == SubscriptionState::Asked);
    }

    /// Handles the confirmation of a subscription.
    pub(in crate::connection) fn on_subscribed(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = SubscriptionState::Heard;
        self.respond(subject);
    }

    /// Handles the rejection of a subscription.
    pub(in crate::connection) fn on_refused(
        &mut self,
        subject: &SubscriptionSubject,
        why: &RequestError,
    ) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for reply in entry.waiting.drain(..) {
            let _ = reply.send(Err(why.clone()));
        }
        // Holders keep it: the next session requests it again.
        entry.stage = SubscriptionState::Refused;
        if entry.holders == 0 {
            self.remove(subject);
        }
    }

    /// Handles the response to an unsubscribe request.
    pub(in crate::connection) fn on_unsubscribed(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.stage = SubscriptionState::Unasked;
        if entry.is_wanted() {
            self.open.insert(subject.clone());
        } else {
            self.remove(subject);
        }
    }

    /// Fails all pending subscribers: the server does not support subscriptions.
    pub(in crate::connection) fn fail(&mut self, why: &RequestError) {
        self.refuse_all(why, |entry| !entry.waiting.is_empty());
    }

    fn refuse_all(&mut self, why: &RequestError, is_meant: impl Fn(&SubscriptionEntry) -> bool) {
        let meant = self.entries.iter().filter(|(_, entry)| is_meant(entry));
        let subjects: Vec<_> = meant.map(|(subject, _)| subject.clone()).collect();
        subjects.iter().for_each(|subject| self.on_refused(subject, why));
    }

    /// Gives guards to the pending subscribers.
    fn respond(&mut self, subject: &SubscriptionSubject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for reply in entry.waiting.drain(..).filter(|reply| !reply.is_closed()) {
            entry.holders += 1;
            let (subject, holds) = (subject.clone(), self.holds.clone());
            // If the subscriber is gone, the dropped guard releases the hold.
            let _ = reply.send(Ok(SubscriptionGuard { subject, holds }));
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

/// Bytes of a name as JSON, with its separator.
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
