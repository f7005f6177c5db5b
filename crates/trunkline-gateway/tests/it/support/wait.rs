//! Waiting for a condition that has no signal of its own.

use std::time::Duration;

use tokio::time::{advance, pause, resume, sleep, timeout};

/// Timeout of every wait in these tests: nothing in them takes nearly as long.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until there is a value, and fails with the name of the condition if it never comes.
pub(crate) async fn until<T>(condition: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    let reached = timeout(LONGEST, polling).await;
    reached.unwrap_or_else(|_| panic!("timed out waiting until {condition}"))
}

/// Awaits a future that waits for the clock of the gateway, and passes that time in steps meanwhile.
pub(crate) async fn passing_time<T>(step: Duration, future: impl Future<Output = T>) -> T {
    let passing = async {
        loop {
            sleep(POLL_INTERVAL).await;
            pass_time(step).await;
        }
    };
    tokio::select! {
        biased;
        value = future => value,
        never = passing => never,
    }
}

/// Lets time pass for the gateway without waiting for it. Other processes, such as its stdio servers,
/// notice nothing: wait for what they send.
pub(crate) async fn pass_time(duration: Duration) {
    pause();
    advance(duration).await;
    resume();
}
