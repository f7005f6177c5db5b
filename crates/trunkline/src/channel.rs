//! Bounded channels that allocate nothing until the first message. Every call has several of them,
//! and most calls never use any.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let (sender, mut receiver) = trunkline::channel::bounded(1);
//! assert!(sender.send("one").is_ok());
//! assert!(sender.send("too many").is_err());
//! assert_eq!(receiver.recv().await, "one");
//! # });
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A channel that holds at most `most` messages.
pub fn bounded<T>(most: usize) -> (Sender<T>, Receiver<T>) {
    bounded_bytes(most, usize::MAX)
}

/// A channel that holds at most `most` messages, and refuses further messages with a weight once
/// the waiting ones weigh `weight` together.
pub fn bounded_bytes<T>(most: usize, weight: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(ChannelShared { most, weight, state: Mutex::default() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct ChannelShared<T> {
    most: usize,
    weight: usize,
    state: Mutex<ChannelState<T>>,
}

struct ChannelState<T> {
    /// Messages with their weights.
    waiting: VecDeque<(T, usize)>,
    weight: usize,
    /// Waker of the receiver, while it waits.
    reader: Option<Waker>,
    /// Whether the receiver was dropped.
    is_closed: bool,
}

impl<T> Default for ChannelState<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), weight: 0, reader: None, is_closed: false }
    }
}

impl<T> ChannelState<T> {
    fn pop(&mut self) -> Option<T> {
        let (message, weight) = self.waiting.pop_front()?;
        self.weight -= weight;
        Some(message)
    }
}

impl<T> ChannelShared<T> {
    fn lock(&self) -> MutexGuard<'_, ChannelState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The channel is full, or its receiver was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrySendError;

/// The sending half of a channel. Clones send to the same channel.
pub struct Sender<T>(Arc<ChannelShared<T>>);

impl<T> Sender<T> {
    /// Sends a message of weight zero, without waiting.
    ///
    /// # Errors
    ///
    /// When the channel is full or its receiver was dropped.
    pub fn send(&self, message: T) -> Result<(), TrySendError> {
        self.try_send_sized(message, 0)
    }

    /// Sends a message of the given weight, without waiting.
    ///
    /// # Errors
    ///
    /// When the channel is full or its receiver was dropped.
    pub fn try_send_sized(&self, message: T, weight: usize) -> Result<(), TrySendError> {
        let mut state = self.0.lock();
        let is_heavy = weight > 0 && state.weight >= self.0.weight;
        let is_full = state.waiting.len() >= self.0.most || is_heavy;
        if state.is_closed || is_full {
            return Err(TrySendError);
        }
        state.weight += weight;
        state.waiting.push_back((message, weight));
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }
}

/// The receiving half of a channel. Dropping it closes the channel.
pub struct Receiver<T>(Arc<ChannelShared<T>>);

impl<T> Receiver<T> {
    /// Waits for the next message, for ever if every sender was dropped. Cancel safe.
    pub async fn recv(&mut self) -> T {
        poll_fn(|context| self.poll(context)).await
    }

    /// The next message, if one is waiting.
    pub fn try_recv(&mut self) -> Option<T> {
        self.0.lock().pop()
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<T> {
        let mut state = self.0.lock();
        if let Some(message) = state.pop() {
            return Poll::Ready(message);
        }
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(context.waker())) {
            state.reader = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let unread = std::mem::take(&mut state.waiting);
        // Dropping a message may run any code, so the lock is released first.
        drop(state);
        drop(unread);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_received_in_order() {
        let (sender, mut receiver) = bounded(10);
        let sending = sender.clone();
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            while all.len() < 4 {
                all.push(receiver.recv().await);
            }
            all
        });
        for number in 0..4 {
            tokio::task::yield_now().await;
            sending.send(number).unwrap();
        }
        assert_eq!(reading.await.unwrap(), [0, 1, 2, 3]);
        assert_eq!(sender.send(4), Err(TrySendError), "there is no receiver");
    }

    #[tokio::test]
    async fn queue_is_bounded_and_unread_messages_are_dropped() {
        let (sender, mut receiver) = bounded(2);
        let message = Arc::new(());
        for is_room in [true, true, false] {
            assert_eq!(sender.send(Arc::clone(&message)).is_ok(), is_room);
        }
        assert!(receiver.try_recv().is_some());
        drop(receiver);
        assert_eq!(Arc::strong_count(&message), 1);
    }

    #[tokio::test]
    async fn byte_limit_bounds_the_queue() {
        let (sender, mut receiver) = bounded_bytes(10, 5);
        for (weight, is_room) in [(4, true), (4, true), (1, false)] {
            assert_eq!(sender.try_send_sized(weight, weight).is_ok(), is_room);
        }
        assert!(sender.send(0).is_ok(), "what weighs nothing has room");
        assert_eq!(receiver.recv().await, 4);
        assert!(sender.try_send_sized(1, 1).is_ok());
    }
}
