//! Calls of a connection that are over, to tell which clients an unattributed message can be about.
//!
//! Servers of the legacy era send log lines and requests of their own without saying which call they
//! belong to. Such a message can belong to a call that is over: its log line was written late, or the
//! server works on although the client has stopped waiting.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Answer, Generation};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;
use crate::principal::ClientId;

/// Time after the answer to a call in which the server may still send messages about it. Log lines
/// were measured up to 300 ms late; ten times that leaves room for a slow machine.
const UNATTRIBUTED_GRACE: Duration = Duration::from_secs(3);

/// Calls remembered one by one that were given up and not answered since. The clients of further ones
/// stay suspects until the connection ends.
const MAX_GIVEN_UP: usize = 1024;

/// Clients remembered of one connection. With more of them, nothing unattributed reaches any client
/// until the connection ends.
const MAX_PAST_CLIENTS: usize = 4096;

/// Clients after which those are looked for that need not be remembered any more.
const FIRST_PRUNE: usize = 64;

/// How a call came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// The server answered it.
    Answered,
    /// Nobody waits for it any more, and the server may still work on it.
    GivenUp,
    /// The server never received it.
    Unsent,
}

impl CallEnd {
    /// End of a call with this answer. A connection that broke leaves the server working on it, and so
    /// does an answer that says that the call has become a task.
    pub(super) fn with(answer: &Answer, generation: &Generation) -> Self {
        let is_task = |result: &Raw| {
            let kind = result.get("resultType");
            kind.as_ref().and_then(Raw::as_str).as_deref() == Some("task")
        };
        match answer.as_ref().map_err(Error::kind) {
            Err(ErrorKind::Broken | ErrorKind::TimedOut | ErrorKind::TooLarge) => Self::GivenUp,
            Ok(Ok(result)) if *generation == Generation::Modern && is_task(result) => Self::GivenUp,
            Ok(_) | Err(_) => Self::Answered,
        }
    }
}

/// The clients whose calls are over and may still be the subject of the server's messages.
pub(super) struct PastCalls {
    clients: HashMap<ClientId, PastClient>,
    /// The clients of calls that were given up, by the ids of their requests.
    given_up: HashMap<u64, ClientId>,
    /// Whether there were too many clients to remember.
    is_crowded: bool,
    /// Number of clients at which to prune next.
    prune_at: usize,
}

struct PastClient {
    last_end: Instant,
    /// Calls that were given up and not answered since.
    unanswered: usize,
    /// Whether a call was given up that is not remembered by its id.
    is_unforgettable: bool,
    /// Whether it shares its principal with all others: a gateway without tokens has only one.
    is_anonymous: bool,
}

impl PastClient {
    fn is_suspect(&self, now: Instant) -> bool {
        self.unanswered > 0
            || self.is_unforgettable
            || now.saturating_duration_since(self.last_end) < UNATTRIBUTED_GRACE
    }
}

impl Default for PastCalls {
    fn default() -> Self {
        Self {
            clients: HashMap::new(),
            given_up: HashMap::new(),
            is_crowded: false,
            prune_at: FIRST_PRUNE,
        }
    }
}

impl PastCalls {
    /// Notes the end of a client's call.
    pub(super) fn note(&mut self, id: u64, client: &ClientId, end: CallEnd, now: Instant) {
        if end == CallEnd::Unsent {
            return;
        }
        let is_remembered = self.given_up.len() < MAX_GIVEN_UP;
        let Some(past) = self.client(client, now) else { return };
        past.last_end = now;
        match end {
            CallEnd::GivenUp if is_remembered => {
                past.unanswered += 1;
                self.given_up.insert(id, client.clone());
            }
            CallEnd::GivenUp => past.is_unforgettable = true,
            CallEnd::Answered | CallEnd::Unsent => {}
        }
    }

    /// Notes that the server answered a call after it was given up.
    pub(super) fn note_late_answer(&mut self, id: u64, now: Instant) {
        let Some(client) = self.given_up.remove(&id) else { return };
        if let Some(past) = self.clients.get_mut(&client) {
            past.unanswered = past.unanswered.saturating_sub(1);
            past.last_end = now;
        }
    }

    /// The client of a call that was given up.
    pub(super) fn client_of(&self, id: u64) -> Option<&ClientId> {
        self.given_up.get(&id)
    }

    /// Whether an unattributed message can be about a call of another client than this.
    pub(super) fn has_other_than(&self, client: &ClientId, now: Instant) -> bool {
        // An answered call of the same principal is in nobody's way.
        let may_be_meant = |past: &PastClient| {
            past.is_suspect(now)
                && (!past.is_anonymous || past.unanswered > 0 || past.is_unforgettable)
        };
        self.is_crowded || self.clients.iter().any(|(id, past)| id != client && may_be_meant(past))
    }

    /// Notes that a client has no principal of its own.
    pub(super) fn note_anonymous(&mut self, client: &ClientId) {
        if let Some(past) = self.clients.get_mut(client) {
            past.is_anonymous = true;
        }
    }

    /// The only client that an unattributed message can be about, of the clients with calls in flight
    /// and those of past calls.
    pub(super) fn sole_client<'c>(
        &'c self,
        in_flight: impl Iterator<Item = &'c ClientId>,
        now: Instant,
    ) -> Option<&'c ClientId> {
        let mut suspects = in_flight.chain(self.suspects(now));
        let first = suspects.next().filter(|_| !self.is_crowded)?;
        suspects.all(|other| other == first).then_some(first)
    }

    fn suspects(&self, now: Instant) -> impl Iterator<Item = &ClientId> {
        self.clients.iter().filter(move |(_, past)| past.is_suspect(now)).map(|(id, _)| id)
    }

    /// The entry of a client, if there is room for it.
    fn client(&mut self, client: &ClientId, now: Instant) -> Option<&mut PastClient> {
        if self.clients.len() >= self.prune_at && !self.clients.contains_key(client) {
            self.clients.retain(|_, past| past.is_suspect(now));
            if self.clients.len() >= MAX_PAST_CLIENTS {
                self.is_crowded = true;
                return None;
            }
            self.prune_at = (self.clients.len() * 2).clamp(FIRST_PRUNE, MAX_PAST_CLIENTS);
        }
        let new = || PastClient {
            last_end: now,
            unanswered: 0,
            is_unforgettable: false,
            is_anonymous: false,
        };
        Some(self.clients.entry(client.clone()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    fn ids() -> [ClientId; 2] {
        ["ann", "bob"].map(ClientId::from)
    }

    fn after(now: Instant, milliseconds: u64) -> Instant {
        now + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_call_that_goes_on_after_its_answer_is_not_over() {
        let result =
            |kind: &str| Ok(Ok(Raw::empty_object().with("resultType", &Raw::from_string(kind))));
        let error = |kind| Err(Error::new(kind, "x"));
        let legacy = Generation::Legacy("2025-11-25".into());
        for (answer, generation, end) in [
            (result("complete"), &Generation::Modern, CallEnd::Answered),
            (result("task"), &Generation::Modern, CallEnd::GivenUp),
            (result("task"), &legacy, CallEnd::Answered),
            (error(ErrorKind::Broken), &legacy, CallEnd::GivenUp),
            (error(ErrorKind::TimedOut), &legacy, CallEnd::GivenUp),
            (error(ErrorKind::Refused(500)), &legacy, CallEnd::Answered),
        ] {
            assert_eq!(CallEnd::with(&answer, generation), end, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn an_answered_call_is_suspect_for_a_while() {
        let ([ann, bob], now) = (ids(), Instant::now());
        let mut past = PastCalls::default();
        past.note(1, &ann, CallEnd::Answered, now);
        assert!(!past.has_other_than(&ann, now));
        assert!(past.has_other_than(&bob, after(now, 2900)));
        assert_eq!(past.sole_client(iter::once(&bob), now), None);
        assert_eq!(past.sole_client(iter::empty(), now), Some(&ann));
        assert_eq!(past.sole_client(iter::once(&ann), now), Some(&ann));
        assert!(!past.has_other_than(&bob, after(now, 3100)));
        assert_eq!(past.sole_client(iter::once(&bob), after(now, 3100)), Some(&bob));
        assert_eq!(past.sole_client(iter::empty(), after(now, 3100)), None);
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_is_suspect_until_it_is_answered() {
        let ([ann, bob], now) = (ids(), Instant::now());
        let mut past = PastCalls::default();
        past.note(1, &ann, CallEnd::GivenUp, now);
        past.note(2, &ann, CallEnd::GivenUp, now);
        past.note(3, &bob, CallEnd::Unsent, now);
        let day = now + Duration::from_secs(86_400);
        assert!(past.has_other_than(&bob, day));
        assert_eq!(past.client_of(1), Some(&ann));
        past.note_late_answer(1, day);
        assert!(past.has_other_than(&bob, after(day, 3100)), "the other one is not answered");
        past.note_late_answer(2, day);
        past.note_late_answer(2, day);
        assert!(past.has_other_than(&bob, after(day, 2900)));
        assert!(!past.has_other_than(&bob, after(day, 3100)));
        assert!(!past.has_other_than(&ann, now), "bob's was never sent");
    }

    /// A client alone loses nothing, however many of its calls it gives up.
    #[tokio::test]
    async fn at_its_bounds_it_attributes_less_and_never_to_others() {
        let ([ann, bob], now) = (ids(), Instant::now());
        let mut past = PastCalls::default();
        for id in 0..2 * MAX_GIVEN_UP as u64 {
            past.note(id, &ann, CallEnd::GivenUp, now);
        }
        assert_eq!(past.given_up.len(), MAX_GIVEN_UP);
        for id in 0..2 * MAX_GIVEN_UP as u64 {
            past.note_late_answer(id, now);
        }
        let day = now + Duration::from_secs(86_400);
        assert!(past.has_other_than(&bob, day) && !past.has_other_than(&ann, day));
        for number in 0..=MAX_PAST_CLIENTS {
            let client = ClientId::from(number.to_string().as_str());
            past.note(0, &client, CallEnd::Answered, now);
        }
        assert!(past.clients.len() <= MAX_PAST_CLIENTS);
        assert!(past.has_other_than(&ann, day), "it lost count of its clients");
    }

    #[tokio::test]
    async fn clients_that_came_and_went_are_forgotten() {
        let mut now = Instant::now();
        let mut past = PastCalls::default();
        for number in 0..3 * MAX_PAST_CLIENTS {
            let client = ClientId::from(number.to_string().as_str());
            past.note(0, &client, CallEnd::Answered, now);
            now += Duration::from_millis(10);
        }
        assert!(!past.is_crowded && past.clients.len() < 1000, "{}", past.clients.len());
    }
}
