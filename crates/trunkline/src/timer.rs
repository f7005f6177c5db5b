//! A timer for many short waits, most of which end before their time.
//!
//! Setting a timer of the runtime takes a lock, and wakes the thread that waits for the earliest one if the new one
//! is earlier. A [`LazyTimer`] stays set when a wait ends before its time, and the next wait sets it again only when
//! it has fired. So a thousand calls within a second cost one timer and not a thousand.
//!
//! ```
//! # use std::time::Duration;
//! # use tokio::time::Instant;
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! let mut timer = trunkline::timer::LazyTimer::default();
//! let due = Instant::now() + Duration::from_secs(5);
//! timer.wait_until(Some(due)).await;
//! assert!(Instant::now() >= due);
//! # });
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for waits of one task, one after another.
#[derive(Debug, Default)]
pub struct LazyTimer {
    /// Set for the end of this wait, or of an earlier one.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl LazyTimer {
    /// Waits until a time; forever without one. Cancel safe.
    pub async fn wait_until(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return std::future::pending().await };
        poll_fn(|context| self.poll_until(due, context)).await;
    }

    /// Ready once the time has come. Until then it wakes the task, at the latest at that time.
    pub fn poll_until(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

/// Waits until a time; forever without one. For waits that are rare: each sets a timer.
pub(crate) async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The time that a wait of this length takes.
    async fn wait(timer: &mut LazyTimer, length: Duration) -> Duration {
        let begin = Instant::now();
        timer.wait_until(Some(begin + length)).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn every_wait_takes_its_time() {
        let mut timer = LazyTimer::default();
        for length in [5, 1, 60, 2, 2] {
            let length = SECOND * length;
            let taken = wait(&mut timer, length).await;
            assert!(taken >= length && taken < length + SECOND / 100, "{length:?}: {taken:?}");
        }
        assert!(wait(&mut timer, Duration::ZERO).await < SECOND / 100);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_that_end_early_do_not_shorten_the_next() {
        let mut timer = LazyTimer::default();
        for _ in 0..10 {
            assert!(timeout(SECOND, wait(&mut timer, SECOND * 4)).await.is_err());
        }
        let taken = wait(&mut timer, SECOND * 4).await;
        assert!(taken >= SECOND * 4 && taken < SECOND * 5, "{taken:?}");
        assert!(timeout(SECOND * 60, timer.wait_until(None)).await.is_err());
    }
}
