//! Pending requests of a session, with their deadlines and the recipients of unattributed messages.
//!
//! This is the table of callers for all transports. The HTTP transport has another one beneath it, of
//! the exchanges that carry requests, because a stdio server has only one stream.

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

/// Maximum number of pending calls of one server. One principal gets half of them while it is
/// alone, and less while others call the server, so that another principal's first call is always
/// admitted.
pub(in crate::connection) const MAX_PENDING_CALLS: usize = 2048;

/// A request without a response yet.
pub(super) struct PendingRequest {
    pub(super) reply: oneshot::Sender<RequestOutcome>,
    pub(super) deadline: Deadline,
    /// Receives notifications and server requests that belong to this request.
    pub(super) updates: Option<Sender<CallEvent>>,
    /// The caller's own progress token.
    pub(super) token: Option<Raw>,
    /// Whether the request stays pending until the session ends.
    pub(super) is_standing: bool,
    /// Whether the server acknowledged the request and does no further work that could need its
    /// client.
    pub(super) is_settled: bool,
    /// Whether a truncated result is useful.
    pub(super) is_cuttable: bool,
    /// The client of the request; `None` for requests of the connection itself.
    pub(super) requester: Option<Requester>,
}

/// The recipient of a message from the server.
pub(super) enum Recipient<'p> {
    /// The caller of this request.
    Of(u64, &'p PendingRequest),
    /// No request.
    None,
    /// Any of several requests.
    Unclear,
    /// Either this request, the only one with a handler, or another client's request: a completed
    /// one, or one that the connection made on its behalf.
    Crossing(u64),
    /// A task of a client that has no request in flight, or several, to forward the message to.
    TaskOfOther,
}

impl PendingRequest {
    /// The requester on whose behalf the server may be working now.
    fn in_flight(&self) -> Option<&Requester> {
        self.requester.as_ref().filter(|_| !self.is_settled)
    }

    /// The principal whose share of the pending calls it uses. Standing requests are not calls.
    fn payer(&self) -> Option<&Principal> {
        let requester = self.requester.as_ref().filter(|_| !self.is_standing)?;
        Some(&requester.principal)
    }
}

/// All pending requests of a session.
pub(super) struct PendingRequests {
    waiting: HashMap<u64, PendingRequest, BuildHasherDefault<IdHasher>>,
    /// The requests by deadline.
    deadlines: BTreeSet<(Instant, u64)>,
    standing: usize,
    past: PastCalls,
    /// The pending calls of each principal.
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

/// Hashes our own request IDs. They are not chosen by others, so collision attacks are impossible.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        // The golden ratio spreads consecutive IDs.
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

    /// Whether the requester may have another pending call.
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

    /// Completes a pending request.
    pub(super) fn answer(&mut self, id: u64, answer: RequestOutcome, end: CallEnd) {
        if let Some(waiting) = self.end(id, end) {
            let _ = waiting.reply.send(answer);
        }
    }

    /// Removes a request, and remembers its client for messages that arrive later.
    pub(super) fn end(&mut self, id: u64, end: CallEnd) -> Option<PendingRequest> {
        let waiting = self.take(id)?;
        if let Some(requester) = waiting.in_flight() {
            self.past.record(id, requester, end, Instant::now());
        }
        Some(waiting)
    }

    /// Records that the server acknowledged a standing request.
    pub(super) fn settle(&mut self, id: u64) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        if let Some(requester) = waiting.in_flight() {
            self.past.record(id, requester, CallEnd::Answered, Instant::now());
        }
        waiting.is_settled = true;
    }

    /// Records a notification sent on behalf of a client, as if it were a request with an immediate
    /// response.
    pub(super) fn record_notification(&mut self, requester: &Requester) {
        self.past.record_answered(requester, Instant::now());
    }

    /// Records a response to a request that is no longer pending.
    pub(super) fn answered_late(&mut self, id: u64) {
        self.past.record_late_answer(id, Instant::now());
    }

    pub(super) fn fail_all(&mut self, error: &Error) {
        self.deadlines.clear();
        self.standing = 0;
        self.share = FairShare::new(MAX_PENDING_CALLS);
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.reply.send(Err(error.clone().into()));
        }
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.waiting.contains_key(&id)
    }

    pub(super) fn get(&self, id: u64) -> Option<&PendingRequest> {
        self.waiting.get(&id)
    }

    /// Whether a server request that belongs to this request is open.
    pub(super) fn has_open_input(&self, id: u64) -> bool {
        self.get(id).is_some_and(|waiting| waiting.deadline.paused_since().is_some())
    }

    /// Whether a truncated result of the request is useful.
    pub(super) fn is_cuttable(&self, id: u64) -> bool {
        self.get(id).is_some_and(|waiting| waiting.is_cuttable)
    }

    /// Number of pending requests without standing ones.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() - self.standing
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A request whose deadline has passed.
    pub(super) fn expired(&self, now: Instant) -> Option<u64> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, id)| *id)
    }

    /// The requests with a handler for server requests.
    pub(super) fn handler_events(&self) -> impl Iterator<Item = (u64, &PendingRequest)> {
        let all = self.waiting.iter().map(|(id, waiting)| (*id, waiting));
        all.filter(|(_, waiting)| waiting.updates.is_some())
    }

    /// Time since which a server request is open, if one is.
    pub(super) fn paused_since(&self) -> Option<Instant> {
        self.handler_events().filter_map(|(_, waiting)| waiting.deadline.paused_since()).min()
    }

    /// Stops the deadline of a request while a server request is open.
    pub(super) fn pause_deadline(&mut self, id: u64) {
        self.change_deadline(id, |deadline| deadline.pause(Instant::now()));
    }

    /// Resumes the deadline of a request after the response to a server request.
    pub(super) fn resume_deadline(&mut self, id: u64) {
        self.change_deadline(id, |deadline| deadline.resume(Instant::now()));
    }

    fn change_deadline(&mut self, id: u64, change: impl FnOnce(&mut Deadline)) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        self.deadlines.remove(&(waiting.deadline.time(), id));
        change(&mut waiting.deadline);
        self.deadlines.insert((waiting.deadline.time(), id));
    }

    /// The recipient of a message with these parameters: the request on whose stream it arrived, a
    /// request of the client whose task it names, or the only pending request.
    pub(super) fn recipient_of(&self, about: Option<u64>, params: Option<&Raw>) -> Recipient<'_> {
        if let Some(id) = about {
            return self.waiting.get(&id).map_or(Recipient::None, |it| Recipient::Of(id, it));
        }
        if let Some(owner) = self.task_owner(params) {
            return self.recipient_of_task(owner);
        }
        let mut calls = self.handler_events();
        match (calls.next(), calls.next()) {
            (None, _) => Recipient::None,
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

    /// The recipient of a message about a task: the only request that certainly belongs to the same
    /// client.
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

    /// Whether an unattributed message can be about another client's request. Requests in flight
    /// without a handler count, too: the connection subscribes on behalf of clients.
    fn may_be_of_other(&self, id: u64, requester: &Requester) -> bool {
        let is_other = |(other, waiting): (&u64, &PendingRequest)| {
            let in_flight = waiting.in_flight().filter(|_| *other != id);
            in_flight.is_some_and(|other| !requester.is_same_client(other))
        };
        self.waiting.iter().any(is_other) || self.past.has_other_than(requester, Instant::now())
    }

    /// The request that may receive an unattributed log message, although it can be about a
    /// completed call of another client.
    pub(super) fn listener_of_log(&self, id: u64) -> Option<&PendingRequest> {
        let waiting = self.get(id)?;
        let requester = waiting.requester.as_ref()?;
        let mut in_flight = self.waiting.values().filter_map(PendingRequest::in_flight);
        let is_of_other = in_flight.any(|other| other.client != requester.client)
            || self.past.keeps_log_from(requester, Instant::now());
        (!is_of_other).then_some(waiting)
    }

    /// The only client that a message with these parameters can be about, given the stream of a
    /// request on which it arrived, if any.
    pub(super) fn client(&self, about: Option<u64>, params: Option<&Raw>) -> Option<&ClientId> {
        if let Some(owner) = self.task_owner(params).filter(|_| about.is_none()) {
            return Some(&owner.client);
        }
        let in_flight = self.waiting.values().filter_map(PendingRequest::in_flight);
        match about.map(|id| (id, self.waiting.get(&id))) {
            Some((_, Some(PendingRequest { requester: Some(requester), .. }))) => {
                Some(&requester.client)
            }
            // The stream of a completed call.
            Some((id, None)) => self.past.client_of(id),
            // Requests of the connection itself are about no client.
            Some((_, Some(_))) | None => self.past.sole_client(in_flight, Instant::now()),
        }
    }
}
