//! Who waits for an answer, and until when.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::RequestOutcome;
use super::deadline::Deadline;
use super::past_calls::{CallEnd, PastCalls, related_task};
use crate::channel::Sender;
use crate::connection::handler::CallEvent;
use crate::error::Error;
use crate::message::Raw;
use crate::principal::{ClientId, FairShare, Principal, Requester};

/// Calls that may wait for one server. One principal gets half of them if it is alone, and less while
/// others call the server, so that there is always room for another principal's first call.
pub(in crate::connection) const MAX_PENDING_CALLS: usize = 2048;

/// Somebody who waits for an answer.
pub(super) struct PendingRequest {
    pub(super) reply: oneshot::Sender<RequestOutcome>,
    pub(super) deadline: Deadline,
    /// Where to say what the server says in the meantime.
    pub(super) updates: Option<Sender<CallEvent>>,
    /// The caller's own token for its progress.
    pub(super) token: Option<Raw>,
    /// Whether it waits for as long as the server lives.
    pub(super) is_standing: bool,
    /// Whether the server has acknowledged it and does nothing more for it that could need its client.
    pub(super) is_settled: bool,
    /// Whether a part of its result is of use without the rest.
    pub(super) is_cuttable: bool,
    /// The client it is made for; `None` if the connection makes it for itself.
    pub(super) requester: Option<Requester>,
}

/// Whom something is for that the server said.
pub(super) enum Recipient<'p> {
    /// For the one who made this request.
    Of(u64, &'p PendingRequest),
    Nobody,
    /// It could be for any of several.
    Unclear,
    /// It could be for this request, the only one that can be asked, or about another client's: one that
    /// is over, or one that the connection made on its behalf.
    Crossing(u64),
    /// It is about a task of a client that has no request, or several, in which it could be asked.
    TaskOfOther,
}

impl PendingRequest {
    /// The requester on whose behalf the server may be working now.
    fn in_flight(&self) -> Option<&Requester> {
        self.requester.as_ref().filter(|_| !self.is_settled)
    }

    /// The principal whose share of the calls that may wait it uses. What waits for as long as the
    /// server lives is no call.
    fn payer(&self) -> Option<&Principal> {
        let requester = self.requester.as_ref().filter(|_| !self.is_standing)?;
        Some(&requester.principal)
    }
}

/// All who wait.
pub(super) struct PendingRequests {
    waiting: HashMap<u64, PendingRequest, BuildHasherDefault<IdHasher>>,
    /// The requests by when they are over.
    deadlines: BTreeSet<(Instant, u64)>,
    standing: usize,
    past: PastCalls,
    /// What each principal has of the calls that may wait.
    share: FairShare,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self {
            waiting: HashMap::default(),
            deadlines: BTreeSet::new(),
            standing: 0,
            past: PastCalls::default(),
            share: FairShare::new(MAX_PENDING_CALLS),
        }
    }
}

/// Spreads ids of our own. Nobody else chooses them, so that nothing has to be hidden.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        // The golden ratio: neighbours go far from each other.
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl PendingRequests {
    pub(super) fn insert(&mut self, id: u64, waiting: PendingRequest) {
        self.standing += usize::from(waiting.is_standing);
        self.deadlines.insert((waiting.deadline.time(), id));
        if let Some(payer) = waiting.payer() {
            self.share.add(payer);
        }
        self.waiting.insert(id, waiting);
    }

    /// Whether another call of this requester may wait.
    pub(super) fn admits(&self, requester: &Requester) -> bool {
        self.share.admits(&requester.principal)
    }

    fn take(&mut self, id: u64) -> Option<PendingRequest> {
        let waiting = self.waiting.remove(&id)?;
        self.standing -= usize::from(waiting.is_standing);
        if let Some(payer) = waiting.payer() {
            self.share.remove(payer);
        }
        self.deadlines.remove(&(waiting.deadline.time(), id));
        Some(waiting)
    }

    /// Answers a request, if somebody waits for it, which is its end.
    pub(super) fn answer(&mut self, id: u64, answer: RequestOutcome, end: CallEnd) {
        if let Some(waiting) = self.end(id, end) {
            let _ = waiting.reply.send(answer);
        }
    }

    /// Forgets a request, but remembers its client for messages that come after its end.
    pub(super) fn end(&mut self, id: u64, end: CallEnd) -> Option<PendingRequest> {
        let waiting = self.take(id)?;
        if let Some(requester) = waiting.in_flight() {
            self.past.record(id, requester, end, Instant::now());
        }
        Some(waiting)
    }

    /// Notes that the server has acknowledged a standing request.
    pub(super) fn settle(&mut self, id: u64) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        if let Some(requester) = waiting.in_flight() {
            self.past.record(id, requester, CallEnd::Answered, Instant::now());
        }
        waiting.is_settled = true;
    }

    /// Notes that the server was told something on behalf of a client. It is handled like a request that
    /// is answered at once.
    pub(super) fn record_notification(&mut self, requester: &Requester) {
        self.past.record_answered(requester, Instant::now());
    }

    /// Notes an answer to a request that nobody waits for any more.
    pub(super) fn answered_late(&mut self, id: u64) {
        self.past.record_late_answer(id, Instant::now());
    }

    pub(super) fn fail_all(&mut self, error: &Error) {
        self.deadlines.clear();
        self.standing = 0;
        self.share = FairShare::new(MAX_PENDING_CALLS);
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.reply.send(Err(error.clone()));
        }
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.waiting.contains_key(&id)
    }

    pub(super) fn get(&self, id: u64) -> Option<&PendingRequest> {
        self.waiting.get(&id)
    }

    /// Whether a question of the server about a request waits for its answer.
    pub(super) fn has_open_input(&self, id: u64) -> bool {
        self.get(id).is_some_and(|waiting| waiting.deadline.paused_since().is_some())
    }

    /// Whether a part of the result of a request is of use without the rest.
    pub(super) fn is_cuttable(&self, id: u64) -> bool {
        self.get(id).is_some_and(|waiting| waiting.is_cuttable)
    }

    /// How many wait, without those who wait for as long as the server lives.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() - self.standing
    }

    /// When the next one is over.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A request that is over by now.
    pub(super) fn expired(&self, now: Instant) -> Option<u64> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, id)| *id)
    }

    /// The requests for which somebody is there who could answer a question.
    pub(super) fn handler_events(&self) -> impl Iterator<Item = (u64, &PendingRequest)> {
        let all = self.waiting.iter().map(|(id, waiting)| (*id, waiting));
        all.filter(|(_, waiting)| waiting.updates.is_some())
    }

    /// Since when a request waits for somebody to answer a question, if one does.
    pub(super) fn paused_since(&self) -> Option<Instant> {
        self.handler_events().filter_map(|(_, waiting)| waiting.deadline.paused_since()).min()
    }

    /// The server asks something for the sake of a request, whose time stands still meanwhile.
    pub(super) fn pause_deadline(&mut self, id: u64) {
        self.change_deadline(id, |deadline| deadline.pause(Instant::now()));
    }

    /// What the server asked for the sake of a request has been answered.
    pub(super) fn resume_deadline(&mut self, id: u64) {
        self.change_deadline(id, |deadline| deadline.resume(Instant::now()));
    }

    fn change_deadline(&mut self, id: u64, change: impl FnOnce(&mut Deadline)) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        self.deadlines.remove(&(waiting.deadline.time(), id));
        change(&mut waiting.deadline);
        self.deadlines.insert((waiting.deadline.time(), id));
    }

    /// The recipient of a message with these parameters: the request on whose stream it came, one of the
    /// client whose task it names, or the only request there is.
    pub(super) fn recipient_of(&self, about: Option<u64>, params: Option<&Raw>) -> Recipient<'_> {
        if let Some(id) = about {
            return self.waiting.get(&id).map_or(Recipient::Nobody, |it| Recipient::Of(id, it));
        }
        if let Some(owner) = self.task_owner(params) {
            return self.recipient_of_task(owner);
        }
        let mut calls = self.handler_events();
        match (calls.next(), calls.next()) {
            (None, _) => Recipient::Nobody,
            (Some((id, waiting)), None) => match &waiting.requester {
                Some(requester) if self.may_be_of_other(id, requester) => Recipient::Crossing(id),
                _ => Recipient::Of(id, waiting),
            },
            (Some(_), Some(_)) => Recipient::Unclear,
        }
    }

    /// The requester of the task that a message with these parameters names.
    fn task_owner(&self, params: Option<&Raw>) -> Option<&Requester> {
        related_task(params).and_then(|task| self.past.task_owner(&task))
    }

    /// The recipient of a message about a task: the only request that is of the same client for certain.
    fn recipient_of_task(&self, owner: &Requester) -> Recipient<'_> {
        let is_own = |waiting: &PendingRequest| {
            waiting.requester.as_ref().is_some_and(|requester| owner.is_same_client(requester))
        };
        let mut own = self.handler_events().filter(|(_, waiting)| is_own(waiting));
        match (own.next(), own.next()) {
            (Some((id, waiting)), None) => Recipient::Of(id, waiting),
            _ => Recipient::TaskOfOther,
        }
    }

    /// Whether an unattributed message can be about another client's request than this one. Requests
    /// in flight count also where their client cannot be asked anything: the connection subscribes on
    /// behalf of clients.
    fn may_be_of_other(&self, id: u64, requester: &Requester) -> bool {
        let is_other = |(other, waiting): (&u64, &PendingRequest)| {
            let in_flight = waiting.in_flight().filter(|_| *other != id);
            in_flight.is_some_and(|other| !requester.is_same_client(other))
        };
        self.waiting.iter().any(is_other) || self.past.has_other_than(requester, Instant::now())
    }

    /// The request that an unattributed log line may be shown to, although it can be about a call of
    /// another client that is over.
    pub(super) fn listener_of_log(&self, id: u64) -> Option<&PendingRequest> {
        let waiting = self.get(id)?;
        let requester = waiting.requester.as_ref()?;
        let mut in_flight = self.waiting.values().filter_map(PendingRequest::in_flight);
        let is_of_other = in_flight.any(|other| other.client != requester.client)
            || self.past.keeps_log_from(requester, Instant::now());
        (!is_of_other).then_some(waiting)
    }

    /// The only client that a message with these parameters can be about, which came on the stream of a
    /// request or on none.
    pub(super) fn client(&self, about: Option<u64>, params: Option<&Raw>) -> Option<&ClientId> {
        if let Some(owner) = self.task_owner(params).filter(|_| about.is_none()) {
            return Some(&owner.client);
        }
        let in_flight = self.waiting.values().filter_map(PendingRequest::in_flight);
        match about.map(|id| (id, self.waiting.get(&id))) {
            Some((_, Some(PendingRequest { requester: Some(requester), .. }))) => {
                Some(&requester.client)
            }
            // The stream of a call that is over.
            Some((id, None)) => self.past.client_of(id),
            // Requests of the connection itself are about no client.
            Some((_, Some(_))) | None => self.past.sole_client(in_flight, Instant::now()),
        }
    }
}
