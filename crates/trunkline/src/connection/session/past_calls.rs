//! Tracks completed calls of a connection, to find the clients that an unattributed message can be
//! about.
//!
//! Legacy servers send log messages and requests without the ID of the call they belong to. The
//! call may be completed: its log message was late, or the server still works on a call that the
//! client cancelled.

use std::time::Duration;

use foldhash::HashMap;
use tokio::time::Instant;

use super::RequestOutcome;
use crate::error::{Error, ErrorKind};
use crate::message::{MAX_ID_BYTES, Raw};
use crate::principal::{ClientId, Principal, Requester};
use crate::protocol::Era;
use crate::protocol::meta::RELATED_TASK;

/// Time after the response to a call in which the server may still send messages about it. Log
/// messages were measured up to 300 ms late; ten times that allows for a slow machine.
const UNATTRIBUTED_GRACE: Duration = Duration::from_secs(3);

/// Cancelled calls without a response that are tracked by request ID. The clients of further ones
/// stay suspects until the connection ends.
const MAX_GIVEN_UP: usize = 1024;

/// Clients tracked per connection. Above this, no unattributed message reaches any client until the
/// connection ends.
const MAX_PAST_CLIENTS: usize = 4096;

/// Number of clients at which stale ones are pruned first.
const FIRST_PRUNE: usize = 64;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// The server responded.
    Answered,
    /// The server created a task with this ID, and works on it.
    Task(Box<str>),
    /// The caller stopped waiting, and the server may still work on it.
    GivenUp,
    /// The server never received it.
    Unsent,
}

impl CallEnd {
    /// The end of a call with this outcome. After a broken connection, or a result that creates a
    /// task, the server still works on the call.
    pub(super) fn with(answer: &RequestOutcome, era: Era) -> Self {
        let error = match answer {
            Ok(result) => match created_task(result, era) {
                Some(task) => return task_id(&task).map_or(Self::GivenUp, Self::Task),
                None => return Self::Answered,
            },
            Err(error) => error,
        };
        match error.failure().map(Error::kind) {
            Some(ErrorKind::Broken | ErrorKind::TimedOut | ErrorKind::TooLarge) => Self::GivenUp,
            _ => Self::Answered,
        }
    }
}

/// The task that a result creates.
fn created_task(result: &Raw, era: Era) -> Option<Raw> {
    match era {
        Era::Legacy => result.get("task").filter(|task| task.get("taskId").is_some()),
        Era::Modern => {
            let kind = result.get("resultType")?;
            (kind.as_str().as_deref() == Some("task")).then(|| result.clone())
        }
    }
}

/// The ID of a task, or of the task that `_meta` names, unless it is too long to be stored.
fn task_id(task: &Raw) -> Option<Box<str>> {
    let id = task.get("taskId")?;
    let id = id.as_str().filter(|id| id.len() <= MAX_ID_BYTES)?;
    Some(id.into())
}

/// The task that the `_meta` of a server message names.
pub(super) fn related_task(params: Option<&Raw>) -> Option<Box<str>> {
    task_id(&params?.get("_meta")?.get(RELATED_TASK)?)
}

/// Clients of completed calls that later messages of the server may be about.
pub(super) struct PastCalls {
    clients: HashMap<ClientId, PastClient>,
    /// Clients of cancelled calls, by request ID.
    given_up: HashMap<u64, ClientId>,
    /// Requesters of calls that created tasks, by task ID.
    tasks: HashMap<Box<str>, Requester>,
    /// Whether there were too many clients to track.
    is_crowded: bool,
    /// Number of clients at which to prune next.
    prune_at: usize,
}

struct PastClient {
    principal: Principal,
    last_end: Instant,
    /// Cancelled calls without a response.
    unanswered: usize,
    /// Whether a call was cancelled that is not tracked by its ID.
    is_unforgettable: bool,
}

impl PastClient {
    fn is_suspect(&self, now: Instant) -> bool {
        self.is_unanswered() || now.saturating_duration_since(self.last_end) < UNATTRIBUTED_GRACE
    }

    /// Whether the server may still work on one of the client's calls.
    fn is_unanswered(&self) -> bool {
        self.unanswered > 0 || self.is_unforgettable
    }
}

impl Default for PastCalls {
    fn default() -> Self {
        Self {
            clients: HashMap::default(),
            given_up: HashMap::default(),
            tasks: HashMap::default(),
            is_crowded: false,
            prune_at: FIRST_PRUNE,
        }
    }
}

impl PastCalls {
    /// Records the end of a client's call.
    pub(super) fn record(&mut self, id: u64, requester: &Requester, end: CallEnd, now: Instant) {
        let is_unanswered = match end {
            CallEnd::Unsent => return,
            CallEnd::Answered => false,
            CallEnd::GivenUp => true,
            CallEnd::Task(task) => {
                self.record_task(task, requester);
                true
            }
        };
        let is_remembered = self.given_up.len() < MAX_GIVEN_UP;
        let Some(past) = self.client(requester, now) else { return };
        past.last_end = now;
        if is_unanswered && is_remembered {
            past.unanswered += 1;
            self.given_up.insert(id, requester.client.clone());
        } else if is_unanswered {
            past.is_unforgettable = true;
        }
    }

    /// Updates the time of the last completed exchange of a client.
    pub(super) fn record_answered(&mut self, requester: &Requester, now: Instant) {
        if let Some(past) = self.client(requester, now) {
            past.last_end = now;
        }
    }

    /// Notes whose a task is. One that two calls have become is of neither of their clients.
    fn record_task(&mut self, task: Box<str>, requester: &Requester) {
        if let Some(known) = self.tasks.get_mut(&task) {
            *known = known.joined(requester);
        } else if self.tasks.len() < MAX_GIVEN_UP {
            self.tasks.insert(task, requester.clone());
        }
    }

    /// The requester of the call that created a task.
    pub(super) fn task_owner(&self, task: &str) -> Option<&Requester> {
        self.tasks.get(task)
    }

    /// Records a response to a cancelled call.
    pub(super) fn record_late_answer(&mut self, id: u64, now: Instant) {
        let Some(client) = self.given_up.remove(&id) else { return };
        if let Some(past) = self.clients.get_mut(&client) {
            past.unanswered = past.unanswered.saturating_sub(1);
            past.last_end = now;
        }
    }

    /// The client of a cancelled call.
    pub(super) fn client_of(&self, id: u64) -> Option<&ClientId> {
        self.given_up.get(&id)
    }

    /// Whether an unattributed message can be about a call of another client. Without sessions,
    /// each completed call may belong to another client.
    pub(super) fn has_other_than(&self, requester: &Requester, now: Instant) -> bool {
        let is_other = |client: &ClientId| requester.is_sessionless || *client != requester.client;
        self.is_crowded || self.suspects(now).any(|(suspect, _)| is_other(suspect))
    }

    /// Whether a log message during a call of this client must be withheld, because it can be about
    /// a call of another client. Clients without tokens belong to one user: a late message of one
    /// may be shown to another.
    pub(super) fn keeps_log_from(&self, requester: &Requester, now: Instant) -> bool {
        let mut suspects = self.suspects(now).filter(|(client, _)| **client != requester.client);
        let is_kept = |past: &PastClient| {
            past.is_unanswered() || !past.principal.has_same_token(&requester.principal)
        };
        self.is_crowded || suspects.any(|(_, past)| is_kept(past))
    }

    /// The only client that an unattributed message can be about, among clients with calls in
    /// flight and of completed calls. Among clients without tokens and without calls in flight, it
    /// is the last that received a response.
    pub(super) fn sole_client<'c>(
        &'c self,
        mut in_flight: impl Iterator<Item = &'c Requester>,
        now: Instant,
    ) -> Option<&'c ClientId> {
        if self.is_crowded {
            return None;
        }
        if let Some(first) = in_flight.next() {
            let is_alone = in_flight.all(|other| other.client == first.client);
            return (is_alone && !self.keeps_log_from(first, now)).then_some(&first.client);
        }
        let (client, last) = self.suspects(now).max_by_key(|(_, past)| past.last_end)?;
        let last = Requester {
            client: client.clone(),
            principal: last.principal.clone(),
            ..Requester::default()
        };
        (!self.keeps_log_from(&last, now)).then_some(client)
    }

    fn suspects(&self, now: Instant) -> impl Iterator<Item = (&ClientId, &PastClient)> {
        self.clients.iter().filter(move |(_, past)| past.is_suspect(now))
    }

    /// The entry of a client, if the limit allows one.
    fn client(&mut self, requester: &Requester, now: Instant) -> Option<&mut PastClient> {
        let Requester { client, principal, .. } = requester;
        if self.clients.len() >= self.prune_at && !self.clients.contains_key(client) {
            self.clients.retain(|_, past| past.is_suspect(now));
            if self.clients.len() >= MAX_PAST_CLIENTS {
                self.is_crowded = true;
                return None;
            }
            self.prune_at = (self.clients.len() * 2).clamp(FIRST_PRUNE, MAX_PAST_CLIENTS);
        }
        let new = || PastClient {
            principal: principal.clone(),
            last_end: now,
            unanswered: 0,
            is_unforgettable: false,
        };
        Some(self.clients.entry(client.clone()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    /// The only client with its own token.
    fn bearer(name: &str) -> Requester {
        let principal = Principal::Token(name.into());
        Requester { client: name.into(), principal, ..Requester::default() }
    }

    fn bearers() -> [Requester; 2] {
        ["ann", "bob"].map(bearer)
    }

    fn after(now: Instant, milliseconds: u64) -> Instant {
        now + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_call_that_goes_on_after_its_answer_is_not_over() {
        let result =
            |kind: &str| Ok(Raw::empty_object().with("resultType", &Raw::from_string(kind)));
        let error = |kind| Err(Error::new(kind, "x").into());
        let raw = |text: &str| Ok(Raw::from_text(text).unwrap());
        let task = || CallEnd::Task("7".into());
        for (answer, era, end) in [
            (result("complete"), Era::Modern, CallEnd::Answered),
            (result("task"), Era::Modern, CallEnd::GivenUp),
            (result("task"), Era::Legacy, CallEnd::Answered),
            (raw(r#"{"resultType":"task","taskId":"7"}"#), Era::Modern, task()),
            (raw(r#"{"task":{"taskId":"7"}}"#), Era::Legacy, task()),
            (raw(r#"{"task":{"taskId":7}}"#), Era::Legacy, CallEnd::GivenUp),
            (raw(r#"{"task":"7"}"#), Era::Legacy, CallEnd::Answered),
            (raw(r#"{"task":{"taskId":"7"}}"#), Era::Modern, CallEnd::Answered),
            (error(ErrorKind::Broken), Era::Legacy, CallEnd::GivenUp),
            (error(ErrorKind::TimedOut), Era::Legacy, CallEnd::GivenUp),
            (error(ErrorKind::HttpStatus(500)), Era::Legacy, CallEnd::Answered),
        ] {
            assert_eq!(CallEnd::with(&answer, era), end, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn an_answered_call_is_suspect_for_a_while() {
        let ([ann, bob], now) = (bearers(), Instant::now());
        let mut past = PastCalls::default();
        past.record(1, &ann, CallEnd::Answered, now);
        assert!(!past.has_other_than(&ann, now));
        assert!(past.has_other_than(&bob, after(now, 2900)));
        assert_eq!(past.sole_client(iter::once(&bob), now), None);
        assert_eq!(past.sole_client(iter::empty(), now), Some(&ann.client));
        assert_eq!(past.sole_client(iter::once(&ann), now), Some(&ann.client));
        assert!(!past.has_other_than(&bob, after(now, 3100)));
        assert_eq!(past.sole_client(iter::once(&bob), after(now, 3100)), Some(&bob.client));
        assert_eq!(past.sole_client(iter::empty(), after(now, 3100)), None);
    }

    /// Each scenario of the conformance suite is a new session, seconds after the one before.
    #[tokio::test]
    async fn late_log_lines_of_clients_with_one_token_or_none_are_not_lost() {
        let now = Instant::now();
        let client = |name: &str, principal: &Principal| {
            let client = ClientId::from(name);
            let principal = principal.of_client(&client);
            Requester { principal, client, ..Requester::default() }
        };
        for principal in [Principal::Anonymous, Principal::Token("team".into())] {
            let [ann, bob] = ["ann", "bob"].map(|name| client(name, &principal));
            let mut past = PastCalls::default();
            past.record(1, &ann, CallEnd::Answered, now);
            past.record(2, &bob, CallEnd::Answered, after(now, 10));
            let later = after(now, 20);
            assert!(past.has_other_than(&bob, later), "a question is refused");
            assert!(!past.keeps_log_from(&bob, later));
            assert_eq!(past.sole_client(iter::once(&ann), later), Some(&ann.client));
            assert_eq!(past.sole_client(iter::empty(), later), Some(&bob.client));
            let carol = bearer("carol");
            assert!(past.keeps_log_from(&carol, later), "another token");
            assert_eq!(past.sole_client(iter::once(&carol), later), None);
            past.record(3, &ann, CallEnd::GivenUp, later);
            assert!(past.keeps_log_from(&bob, later), "the server still works for ann");
            assert_eq!(past.sole_client(iter::empty(), later), Some(&ann.client));
            past.record(4, &carol, CallEnd::Answered, later);
            assert_eq!(past.sole_client(iter::empty(), later), None);
        }
    }

    /// Clients without sessions that declare the same capabilities cannot be distinguished.
    #[tokio::test]
    async fn every_past_call_may_be_of_another_client_without_a_session() {
        let now = Instant::now();
        let caller = Requester { is_sessionless: true, ..bearer("ann") };
        let mut past = PastCalls::default();
        assert!(!past.has_other_than(&caller, now));
        past.record(1, &caller, CallEnd::Answered, now);
        assert!(past.has_other_than(&caller, after(now, 2900)));
        assert!(!past.keeps_log_from(&caller, now), "a log line is less strict");
        assert!(!past.has_other_than(&caller, after(now, 3100)));
        past.record(2, &caller, CallEnd::GivenUp, now);
        assert!(past.has_other_than(&caller, now + Duration::from_secs(86_400)));
        past.record_late_answer(2, now);
        assert!(!past.has_other_than(&caller, after(now, 3100)));
    }

    #[tokio::test]
    async fn task_belongs_to_the_client_of_its_call() {
        let ([ann, bob], now) = (bearers(), Instant::now());
        let mut past = PastCalls::default();
        past.record(1, &ann, CallEnd::Task("7".into()), now);
        assert_eq!(past.task_owner("7"), Some(&ann));
        assert!(past.has_other_than(&bob, now + Duration::from_secs(86_400)));
        past.record(2, &bob, CallEnd::Task("7".into()), now);
        let owner = past.task_owner("7").unwrap();
        assert!(!owner.is_same_client(&ann) && !owner.is_same_client(&bob));
        for id in 3..3 * MAX_GIVEN_UP as u64 {
            past.record(id, &ann, CallEnd::Task(id.to_string().into()), now);
            past.record_late_answer(id, now);
        }
        assert_eq!(past.tasks.len(), MAX_GIVEN_UP);
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_is_suspect_until_it_is_answered() {
        let ([ann, bob], now) = (bearers(), Instant::now());
        let mut past = PastCalls::default();
        past.record(1, &ann, CallEnd::GivenUp, now);
        past.record(2, &ann, CallEnd::GivenUp, now);
        past.record(3, &bob, CallEnd::Unsent, now);
        let day = now + Duration::from_secs(86_400);
        assert!(past.has_other_than(&bob, day));
        assert_eq!(past.client_of(1), Some(&ann.client));
        past.record_late_answer(1, day);
        assert!(past.has_other_than(&bob, after(day, 3100)), "the other one is not answered");
        past.record_late_answer(2, day);
        past.record_late_answer(2, day);
        assert!(past.has_other_than(&bob, after(day, 2900)));
        assert!(!past.has_other_than(&bob, after(day, 3100)));
        assert!(!past.has_other_than(&ann, now), "bob's was never sent");
    }

    /// A single client loses no messages, however many calls it cancels.
    #[tokio::test]
    async fn at_its_bounds_it_attributes_less_and_never_to_others() {
        let ([ann, bob], now) = (bearers(), Instant::now());
        let mut past = PastCalls::default();
        for id in 0..2 * MAX_GIVEN_UP as u64 {
            past.record(id, &ann, CallEnd::GivenUp, now);
        }
        assert_eq!(past.given_up.len(), MAX_GIVEN_UP);
        for id in 0..2 * MAX_GIVEN_UP as u64 {
            past.record_late_answer(id, now);
        }
        let day = now + Duration::from_secs(86_400);
        assert!(past.has_other_than(&bob, day) && !past.has_other_than(&ann, day));
        for number in 0..=MAX_PAST_CLIENTS {
            past.record(0, &bearer(&number.to_string()), CallEnd::Answered, now);
        }
        assert!(past.clients.len() <= MAX_PAST_CLIENTS);
        assert!(past.has_other_than(&ann, day), "it lost count of its clients");
    }

    #[tokio::test]
    async fn clients_that_came_and_went_are_forgotten() {
        let mut now = Instant::now();
        let mut past = PastCalls::default();
        for number in 0..3 * MAX_PAST_CLIENTS {
            past.record(0, &bearer(&number.to_string()), CallEnd::Answered, now);
            now += Duration::from_millis(10);
        }
        assert!(!past.is_crowded && past.clients.len() < 1000, "{}", past.clients.len());
    }
}
