//! The timer of a connection, for the waits of its requests one after another: for the head of the next request, and
//! for the first message of a response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;
use trunkline::timer::LazyTimer;

/// The timer of a connection. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct ConnectionTimer {
    timer: Arc<Mutex<LazyTimer>>,
}

impl ConnectionTimer {
    /// Waits for a time.
    pub(super) fn elapsed(&self, time: Duration) -> ConnectionSleep {
        self.until(Instant::now() + time)
    }

    fn until(&self, due: Instant) -> ConnectionSleep {
        ConnectionSleep { timer: Arc::clone(&self.timer), due }
    }
}

/// A wait on a connection.
pub(super) struct ConnectionSleep {
    timer: Arc<Mutex<LazyTimer>>,
    due: Instant,
}

impl Future for ConnectionSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        timer.poll_until(self.due, context)
    }
}

impl Sleep for ConnectionSleep {}

impl Timer for ConnectionTimer {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.elapsed(time))
    }

    fn sleep_until(&self, due: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.until(due.into()))
    }

    fn now(&self) -> std::time::Instant {
        // The time of the runtime, which tests may stop.
        Instant::now().into_std()
    }
}
