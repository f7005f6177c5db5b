//! Parked calls: calls that wait for a modern client to retry with input responses.
//!
//! Their servers are legacy: they send a request during the call and wait. The call stays parked
//! until the client retries with the responses and the sealed ID of the call, or until its wait
//! limit, which cancels it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use trunkline::message::RpcError;
use trunkline::name::ServerName;
use trunkline::principal::{FairShare, Principal};

use super::input_queue::InputRequests;
use crate::request::errors::{call_lost, invalid, too_many_parked_calls};
use crate::request::response::{RpcFuture, RpcResult};

/// Wait limit of a call that blocks others: while it waits, the server requests of other calls
/// cannot be attributed. A user who sees the request responds within it.
const LONGEST_IN_THE_WAY: Duration = Duration::from_secs(120);

/// Maximum number of parked calls. At the limit, the oldest call of the principal that has most is
/// evicted; a new call of that principal itself is refused.
const MAX_PARKED: usize = 1000;

/// A call that waits for its client, with the state needed to resume it.
pub(crate) struct ParkedCall {
    call: RpcFuture,
    pub(crate) inputs: InputRequests,
    /// The stored result, if the call runs detached.
    left: Option<Arc<StoredResult>>,
}

/// The result of a call that completed while its client was away, and the time.
#[derive(Default)]
struct StoredResult(Mutex<Option<(Instant, RpcResult)>>);

impl StoredResult {
    fn put(&self, answer: RpcResult) {
        *self.lock() = Some((Instant::now(), answer));
    }

    fn respond(&self) -> Option<RpcResult> {
        self.lock().take().map(|(_, answer)| answer)
    }

    /// Time at which it was stored, and its size in bytes.
    fn age_and_bytes(&self) -> Option<(Instant, usize)> {
        let left = self.lock();
        let (since, answer) = left.as_ref()?;
        let bytes = match answer {
            Ok(reply) => reply.len(),
            Err(error) => error.raw().bytes().len(),
        };
        Some((*since, bytes))
    }

    /// Replaces the result by an error for the client that retries.
    fn discard(&self) {
        let text = "the call is over, and its answer was given up, because too much is kept for \
                    clients that did not come back; make the call again without the request state";
        if let Some((_, answer)) = &mut *self.lock() {
            *answer = Err(invalid(text));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, RpcResult)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParkedCall {
    /// A call to park, with the open server requests that it waits for.
    pub(crate) fn new(call: RpcFuture, inputs: InputRequests) -> Self {
        Self { call, inputs, left: None }
    }

    /// Continues the call. `None` if the server needs input of the client again.
    pub(crate) async fn resume(&mut self) -> Option<RpcResult> {
        self.inputs.run(&mut self.call).await
    }

    /// Runs the call in a task of its own while it waits for its client: its timeouts run, and its
    /// resources are released as soon as it completes. Dropping the parked call still cancels it.
    pub(crate) fn detach(&mut self, parked: &Arc<ParkedCalls>) {
        if self.left.is_some() {
            return;
        }
        let left = Arc::<StoredResult>::default();
        let mut going_on = JoinSet::new();
        let call = std::mem::replace(&mut self.call, Box::pin(std::future::pending()));
        let (leaving, parked) = (Arc::clone(&left), Arc::downgrade(parked));
        going_on.spawn(async move {
            leaving.put(call.await);
            if let Some(parked) = parked.upgrade() {
                parked.evict_results();
            }
        });
        self.left = Some(Arc::clone(&left));
        self.call = Box::pin(async move {
            going_on.join_next().await;
            left.respond().unwrap_or_else(|| Err(call_lost()))
        });
    }
}

/// All parked calls.
pub(crate) struct ParkedCalls {
    /// Wait limit of a call.
    longest: Duration,
    /// Maximum total size of stored results in bytes.
    most: usize,
    calls: Mutex<ParkedTable>,
}

#[derive(Default)]
struct ParkedTable {
    next: u64,
    waiting: HashMap<u64, ParkedEntry>,
}

impl ParkedTable {
    /// Removes the oldest call of the principal that has most, to admit a call of `newcomer`. Never
    /// removes calls of `newcomer`.
    fn evict_for(&mut self, newcomer: &Principal) -> Option<ParkedEntry> {
        let holders = self.waiting.values().map(|waiting| &waiting.principal);
        let share = FairShare::with_holders(MAX_PARKED, holders);
        if share.makes_room(newcomer, newcomer) {
            return None;
        }
        let of_most =
            self.waiting.iter().filter(|(_, it)| share.makes_room(&it.principal, newcomer));
        let oldest = of_most.min_by_key(|(_, it)| it.since).map(|(number, _)| *number)?;
        self.waiting.remove(&oldest)
    }
}

/// A parked call with its principal and the start of its wait.
struct ParkedEntry {
    call: ParkedCall,
    principal: Principal,
    since: Instant,
}

impl ParkedEntry {
    /// The wait limit, given that of calls that do not block others.
    fn longest(&self, longest: Duration) -> Duration {
        let is_in_the_way = self.call.inputs.queue.is_in_the_way.load(Ordering::Relaxed);
        if is_in_the_way { longest.min(LONGEST_IN_THE_WAY) } else { longest }
    }

    fn is_late(&self, longest: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.since) > self.longest(longest)
    }
}

/// Why a parked call cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResumeError {
    /// It was resumed already, or evicted.
    Gone,
    /// It exceeded this wait limit.
    Late(Duration),
}

impl ParkedCalls {
    /// Creates the table with a wait limit per call and a size limit for stored results.
    pub(crate) fn new(longest: Duration, most: usize) -> Self {
        Self { longest, most, calls: Mutex::default() }
    }

    /// The wait limit of a call that does not block others.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// A new ID for a call to park. Only a client that has it can resume the call.
    pub(crate) fn next_id(&self) -> u64 {
        let mut calls = self.lock();
        calls.next += 1;
        calls.next
    }

    /// Parks a call of a principal under its ID.
    pub(crate) fn put(
        &self,
        number: u64,
        principal: &Principal,
        call: ParkedCall,
    ) -> Result<(), RpcError> {
        let mut calls = self.lock();
        let is_full = calls.waiting.len() >= MAX_PARKED;
        let evicted = if is_full { calls.evict_for(principal) } else { None };
        if is_full && evicted.is_none() {
            return Err(too_many_parked_calls());
        }
        call.inputs.queue.is_in_the_way.store(false, Ordering::Relaxed);
        let (principal, since) = (principal.clone(), Instant::now());
        calls.waiting.insert(number, ParkedEntry { call, principal, since });
        // Dropping a call runs code that may lock the table.
        drop(calls);
        drop(evicted);
        // The call may have completed already.
        self.evict_results();
        Ok(())
    }

    /// Evicts the oldest stored results above the size limit.
    fn evict_results(&self) {
        let calls = self.lock();
        let left = calls.waiting.values().filter_map(|it| it.call.left.as_ref());
        let mut weighed: Vec<_> = left
            .filter_map(|left| left.age_and_bytes().map(|(since, bytes)| (since, bytes, left)))
            .collect();
        weighed.sort_by_key(|(since, ..)| *since);
        let mut bytes: usize = weighed.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, freed, left) in weighed {
            if bytes <= self.most {
                return;
            }
            left.discard();
            bytes -= freed;
        }
    }

    /// Removes and returns the call with this ID, which is valid once.
    pub(crate) fn take(&self, number: u64) -> Result<ParkedCall, ResumeError> {
        let waiting = self.lock().waiting.remove(&number).ok_or(ResumeError::Gone)?;
        // It may be late although no sweep has removed it.
        match waiting.is_late(self.longest, Instant::now()) {
            true => Err(ResumeError::Late(waiting.longest(self.longest))),
            false => Ok(waiting.call),
        }
    }

    /// Shortens the waits of calls that block server requests of a shared server.
    pub(crate) fn shorten_waits(&self, server: &ServerName) {
        let calls = self.lock();
        let queues = calls.waiting.values().map(|waiting| &waiting.call.inputs.queue);
        queues
            .filter(|inputs| inputs.server.get() == Some(server))
            .for_each(|inputs| inputs.shorten_wait());
    }

    /// Cancels calls whose clients did not retry in time, and so notifies their servers.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut calls = self.lock();
        let given_up: Vec<_> =
            calls.waiting.extract_if(|_, it| it.is_late(self.longest, now)).collect();
        // Dropping calls runs code that may lock the table.
        drop(calls);
        drop(given_up);
    }

    fn lock(&self) -> MutexGuard<'_, ParkedTable> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use trunkline::channel::bounded;
    use trunkline::message::Raw;
    use trunkline::protocol::code;

    use super::*;
    use crate::client::channel::{ClientChannel, OutboundChannel};
    use crate::client::input_queue::InputQueue;
    use crate::request::response::MAX_KEPT_OF_ALL;

    const LONGEST_WAIT: Duration = Duration::from_secs(600);

    fn parked() -> ParkedCalls {
        ParkedCalls::new(LONGEST_WAIT, MAX_KEPT_OF_ALL)
    }

    /// Signals its drop.
    struct DropSignal(oneshot::Sender<()>);

    fn waiting() -> (ParkedCall, oneshot::Receiver<()>) {
        let (outlet, _) = bounded(1);
        let (_, inputs) = InputQueue::new(ClientChannel::new(OutboundChannel::Request(outlet)));
        let (dropped, is_dropped) = oneshot::channel();
        let signal = DropSignal(dropped);
        let call: RpcFuture = Box::pin(async move {
            std::future::pending::<()>().await;
            drop(signal.0);
            Ok(Raw::empty_object().into())
        });
        (ParkedCall::new(call, inputs), is_dropped)
    }

    #[test]
    fn a_call_waits_for_its_client_for_its_time_and_is_given_up_then() {
        let parked = parked();
        let (early, mut is_early_dropped) = waiting();
        let number = parked.next_id();
        parked.put(number, &Principal::Anonymous, early).unwrap();
        parked.sweep(Instant::now() + LONGEST_WAIT.mul_f32(0.9));
        assert_eq!(is_early_dropped.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        parked.sweep(Instant::now() + LONGEST_WAIT.mul_f32(1.1));
        assert_eq!(is_early_dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(matches!(parked.take(number), Err(ResumeError::Gone)));
    }

    /// CON-8: stored results of abandoned calls are limited.
    #[tokio::test]
    async fn finished_parked_calls_are_bounded_and_the_oldest_are_evicted() {
        let parked = Arc::new(ParkedCalls::new(LONGEST_WAIT, 2500));
        let mut numbers = Vec::new();
        for _ in 0..4 {
            let (outlet, _) = bounded(1);
            let (_, inputs) = InputQueue::new(ClientChannel::new(OutboundChannel::Request(outlet)));
            let long = Raw::from_string(&"x".repeat(1000));
            let call = Box::pin(async move { Ok(Raw::empty_object().with("text", &long).into()) });
            let mut call = ParkedCall::new(call, inputs);
            call.detach(&parked);
            let left = call.left.clone().unwrap();
            let number = parked.next_id();
            parked.put(number, &Principal::Anonymous, call).unwrap();
            numbers.push(number);
            while left.age_and_bytes().is_none() {
                tokio::task::yield_now().await;
            }
        }
        let mut fetched = Vec::new();
        for number in numbers {
            let answer = parked.take(number).ok().unwrap().resume().await.expect("it is over");
            fetched.push(answer.map(|reply| reply.len()));
        }
        let [first, second, third, fourth] = <[_; 4]>::try_from(fetched).unwrap();
        for given_up in [first, second] {
            let error = given_up.unwrap_err();
            assert_eq!(error.code(), code::INVALID_PARAMS);
            assert!(error.message().contains("make the call again"), "{}", error.message());
        }
        assert!(third.unwrap() > 1000 && fourth.unwrap() > 1000);
    }

    #[test]
    fn a_call_that_is_in_the_way_of_others_is_given_up_earlier() {
        let parked = parked();
        let [one, other] = ["one", "other"].map(|name| ServerName::new(name).unwrap());
        let [mut first, mut second] = [&one, &other].map(|server| {
            let (call, is_dropped) = waiting();
            call.inputs.queue.set_server(server);
            parked.put(parked.next_id(), &Principal::Anonymous, call).unwrap();
            is_dropped
        });
        parked.shorten_waits(&one);
        let soon = Instant::now() + LONGEST_IN_THE_WAY.mul_f32(0.9);
        parked.sweep(soon);
        assert_eq!(first.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        parked.sweep(soon + LONGEST_IN_THE_WAY.mul_f32(0.2));
        assert_eq!(first.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn a_number_is_good_for_one_time_and_only_so_many_calls_wait() {
        let parked = parked();
        let numbers: Vec<_> = (0..MAX_PARKED).map(|_| parked.next_id()).collect();
        let [ann, bob] = ["ann", "bob"].map(|name| Principal::Token(name.into()));
        for number in &numbers {
            parked.put(*number, &ann, waiting().0).unwrap();
        }
        let refused = parked.put(parked.next_id(), &ann, waiting().0).unwrap_err();
        assert_eq!(refused.code(), code::INTERNAL_ERROR);
        assert_eq!(refused.raw().get("data").unwrap().text(), r#"{"retry":true}"#);
        assert!(parked.take(numbers[0]).is_ok() && parked.take(numbers[0]).is_err());
        parked.put(parked.next_id(), &ann, waiting().0).unwrap();
        // A call of another principal evicts the oldest call of the one that has most.
        let of_bob = parked.next_id();
        parked.put(of_bob, &bob, waiting().0).unwrap();
        assert!(matches!(parked.take(numbers[1]), Err(ResumeError::Gone)));
        assert!(parked.put(parked.next_id(), &ann, waiting().0).is_err(), "bob's stays");
        assert!(parked.take(of_bob).is_ok() && parked.take(numbers[2]).is_ok());
    }
}
