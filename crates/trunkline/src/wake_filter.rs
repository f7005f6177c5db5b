//! Polls a part of a task only if that part was woken.
//!
//! A task that waits for many events polls the futures of all of them whenever one is ready. If most
//! of them are rare, nearly all of that work is in vain.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Limits the polls of the part of a task that waits for rare events.
///
/// What is polled has to wake the waker that it was polled with, also if the future was dropped
/// meanwhile. Channels and pipes of tokio do so; timers and `watch::Receiver::changed` do not.
#[derive(Debug)]
pub(crate) struct WakeFilter {
    state: Arc<FilterState>,
    /// Wakes the task through `state`.
    waker: Waker,
}

#[derive(Debug)]
struct FilterState {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for FilterState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Default for WakeFilter {
    /// A filter that lets the first poll through.
    fn default() -> Self {
        let state = FilterState { is_woken: AtomicBool::new(true), task: AtomicWaker::new() };
        let state = Arc::new(state);
        Self { waker: Waker::from(Arc::clone(&state)), state }
    }
}

impl WakeFilter {
    /// Polls the part with the waker of the filter if it was woken, and again after it was ready.
    pub(crate) fn poll<T>(
        &mut self,
        context: &Context<'_>,
        part: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before the look at the flag, so that no wake is lost between the two.
        self.state.task.register(context.waker());
        if !self.state.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = part(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            // Another event may be ready as well.
            self.state.is_woken.store(true, Ordering::Release);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_part_is_polled_only_after_it_was_woken() {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let (mut filter, mut polls) = (WakeFilter::default(), 0);
        let mut poll = |context: &mut Context<'_>| {
            filter.poll(context, |context| {
                polls += 1;
                receiver.poll_recv(context)
            })
        };
        let waker = Waker::noop();
        let mut context = Context::from_waker(waker);
        for _ in 0..5 {
            assert!(poll(&mut context).is_pending());
        }
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        assert_eq!(poll(&mut context), Poll::Ready(Some(1)));
        assert_eq!(poll(&mut context), Poll::Ready(Some(2)));
        assert!(poll(&mut context).is_pending());
        assert!(poll(&mut context).is_pending());
        assert_eq!(polls, 4);
    }

    /// The task may be moved to another one, as when a future is boxed and spawned.
    #[tokio::test]
    async fn a_wake_reaches_the_task_that_polled_last() {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut filter = WakeFilter::default();
        let mut poll = move |context: &mut Context<'_>| {
            filter.poll(context, |context| receiver.poll_recv(context))
        };
        assert!(poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let received = tokio::spawn(poll_fn(poll));
        tokio::task::yield_now().await;
        sender.send(7).unwrap();
        let received = timeout(PATIENCE, received).await.expect("a wake");
        assert_eq!(received.unwrap(), Some(7));
    }
}
