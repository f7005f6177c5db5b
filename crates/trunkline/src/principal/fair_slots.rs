//! Concurrency slots that waiting principals acquire in turns.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Principal;

/// A limited number of slots, such as the concurrent calls of a server. Waiting principals take
/// turns, and the waiters of one principal are served in order: a principal with a thousand waiting
/// calls delays a call of another principal by one turn.
#[derive(Debug)]
pub struct FairSlots {
    state: Mutex<SlotWaiter>,
}

#[derive(Debug)]
struct SlotWaiter {
    free: usize,
    queues: HashMap<Principal, VecDeque<oneshot::Sender<Slot>>>,
    /// Principals with waiters, the next one first.
    turns: VecDeque<Principal>,
}

/// An acquired slot. Dropping it releases the slot.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<FairSlots>,
}

impl FairSlots {
    /// Creates `count` free slots.
    pub fn new(count: usize) -> Arc<Self> {
        let waiting = SlotWaiter { free: count, queues: HashMap::new(), turns: VecDeque::new() };
        Arc::new(Self { state: Mutex::new(waiting) })
    }

    /// Acquires a slot if one is free and no principal is waiting.
    pub fn try_acquire(self: &Arc<Self>) -> Option<Slot> {
        let mut state = self.lock();
        if state.free == 0 || !state.turns.is_empty() {
            return None;
        }
        state.free -= 1;
        Some(Slot { slots: Arc::clone(self) })
    }

    /// Waits for a slot in the turn of a principal. Dropping the future gives up the place in the
    /// queue.
    pub async fn acquire(self: &Arc<Self>, principal: &Principal) -> Slot {
        let turn = {
            let mut state = self.lock();
            if state.free > 0 && state.turns.is_empty() {
                state.free -= 1;
                return Slot { slots: Arc::clone(self) };
            }
            state.enqueue(principal)
        };
        turn.await.expect("invariant: a queue keeps its senders until they are served")
    }

    /// The number of waiters.
    pub fn waiting(&self) -> usize {
        let state = self.lock();
        let waits = |it: &&oneshot::Sender<Slot>| !it.is_closed();
        state.queues.values().map(|queue| queue.iter().filter(waits).count()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, SlotWaiter> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotWaiter {
    fn enqueue(&mut self, principal: &Principal) -> oneshot::Receiver<Slot> {
        let (sender, turn) = oneshot::channel();
        match self.queues.get_mut(principal) {
            Some(queue) => {
                // Cancelled waiters must not accumulate behind one that still waits.
                while queue.back().is_some_and(oneshot::Sender::is_closed) {
                    queue.pop_back();
                }
                queue.push_back(sender);
            }
            None => {
                self.queues.insert(principal.clone(), VecDeque::from([sender]));
                self.turns.push_back(principal.clone());
            }
        }
        turn
    }

    /// The next waiter. Its principal moves to the end of the queue.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        while let Some(principal) = self.turns.pop_front() {
            let Some(queue) = self.queues.get_mut(&principal) else { continue };
            let waiter = std::iter::from_fn(|| queue.pop_front()).find(|it| !it.is_closed());
            match queue.is_empty() {
                true => drop(self.queues.remove(&principal)),
                false => self.turns.push_back(principal),
            }
            if waiter.is_some() {
                return waiter;
            }
        }
        None
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        let Some(waiter) = state.next() else {
            state.free += 1;
            return;
        };
        drop(state);
        // If the waiter was cancelled meanwhile, the slot is dropped again and goes to the next
        // one.
        let _ = waiter.send(Self { slots: Arc::clone(&self.slots) });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn principals_take_turns() {
        let [ann, bob] = ["ann", "bob"].map(|name| Principal::Token(name.into()));
        let slots = FairSlots::new(1);
        let first = slots.try_acquire().unwrap();
        assert!(slots.try_acquire().is_none());
        let mut anns: Vec<_> = (0..5).map(|_| Box::pin(slots.acquire(&ann))).collect();
        assert!(anns.iter_mut().all(|it| it.now_or_never().is_none()));
        let mut bobs = Box::pin(slots.acquire(&bob));
        assert!((&mut bobs).now_or_never().is_none());
        assert_eq!(slots.waiting(), 6);
        drop(first);
        let of_ann = (&mut anns[0]).now_or_never().expect("ann was first");
        assert!((&mut bobs).now_or_never().is_none());
        drop(of_ann);
        assert!((&mut anns[1]).now_or_never().is_none(), "it is bob's turn");
        let of_bob = (&mut bobs).now_or_never().expect("after one call of ann");
        // A cancelled waiter is skipped, and no slot is lost.
        drop(anns.remove(1));
        assert_eq!(slots.waiting(), 3, "three of ann: one has run, one is cancelled");
        drop(of_bob);
        let of_ann = (&mut anns[1]).now_or_never().expect("the next of ann");
        drop(anns);
        drop(of_ann);
        assert!(slots.try_acquire().is_some(), "no caller waits");
    }

    #[tokio::test]
    async fn a_slot_given_to_a_waiter_that_is_gone_is_not_lost() {
        let ann = Principal::Token("ann".into());
        let slots = FairSlots::new(1);
        let first = slots.try_acquire().unwrap();
        let mut second = Box::pin(slots.acquire(&ann));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        // The slot was assigned, and the waiter is dropped before it receives it.
        drop(second);
        assert!(slots.try_acquire().is_some());
    }
}
