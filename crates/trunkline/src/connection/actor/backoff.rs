//! Backoff between restarts of a server, with jitter.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use crate::config::{Backoff, Restart};
use crate::error::Error;

/// Default for a remote server that was reachable before: retried without a limit. Otherwise its
/// subscribers would not receive notifications again.
const REACHING: Backoff =
    Backoff { limit: u32::MAX, delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) };

/// Counts attempts to restart a server.
pub(in crate::connection) struct RestartAttempts {
    /// The setting as it is configured.
    configured: Restart,
    rule: Restart,
    in_a_row: u32,
}

impl RestartAttempts {
    pub(in crate::connection) fn new(rule: Restart) -> Self {
        Self { configured: rule, rule, in_a_row: 0 }
    }

    /// Applies another setting, if the configuration changed.
    pub(in crate::connection) fn apply_settings(&mut self, rule: Restart) {
        if rule != self.configured {
            (self.configured, self.rule) = (rule, rule);
        }
    }

    /// Retries without a limit from now on, unless a limit or delays are configured: for a remote
    /// server that was ready, or has subscriptions.
    pub(in crate::connection) fn keep_reaching(&mut self) {
        if self.rule == Restart::Never || self.rule == Restart::default() {
            self.rule = Restart::OnFailure(REACHING);
        }
    }

    /// Number of consecutive attempts.
    pub(in crate::connection) fn consecutive(&self) -> u32 {
        self.in_a_row
    }

    /// Resets the count: the server was requested explicitly, or has proved stable.
    pub(in crate::connection) fn reset(&mut self) {
        self.in_a_row = 0;
    }

    /// Records for how long the server ran before it failed. If that exceeds the maximum delay, the
    /// count is reset.
    pub(in crate::connection) fn record_lifetime(&mut self, uptime: Duration) {
        if let Restart::OnFailure(backoff) = self.rule
            && uptime > backoff.max_delay
        {
            self.reset();
        }
    }

    /// Delay before the next attempt after an error; `None` if there is none.
    pub(in crate::connection) fn pause_after(&mut self, error: &Error) -> Option<Duration> {
        let Restart::OnFailure(backoff) = self.rule else { return None };
        // A problem in the configuration does not go away by itself.
        if !error.kind().is_retryable() || self.in_a_row >= backoff.limit {
            return None;
        }
        self.in_a_row += 1;
        Some(pause(&backoff, self.in_a_row))
    }
}

/// Delay before an attempt: doubled each time, up to a limit, less a jitter of up to half, so that
/// servers that failed together do not restart together.
fn pause(backoff: &Backoff, attempt: u32) -> Duration {
    let factor = 1_u32 << attempt.saturating_sub(1).min(16);
    let longest = backoff.delay.saturating_mul(factor).min(backoff.max_delay);
    jittered(longest)
}

/// A random duration between half of `longest` and all of it.
pub(in crate::connection) fn jittered(longest: Duration) -> Duration {
    // Every hasher of the standard library starts from random keys.
    let random = RandomState::new().build_hasher().finish();
    let share = f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    longest.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn attempts() -> RestartAttempts {
        RestartAttempts::new(Restart::OnFailure(Backoff {
            limit: 4,
            delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(3),
        }))
    }

    fn exited() -> Error {
        Error::new(ErrorKind::Exited, "it ended")
    }

    #[test]
    fn pauses_grow_up_to_a_limit_and_end() {
        let mut attempts = attempts();
        for seconds in [1, 2, 3, 3] {
            let longest = Duration::from_secs(seconds);
            let pause = attempts.pause_after(&exited()).unwrap();
            assert!(pause >= longest / 2 && pause <= longest, "{pause:?}");
        }
        assert_eq!(attempts.pause_after(&exited()), None);
        attempts.record_lifetime(Duration::from_secs(2));
        assert_eq!(attempts.pause_after(&exited()), None);
        attempts.record_lifetime(Duration::from_secs(4));
        assert!(attempts.pause_after(&exited()).is_some());
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        let missing = Error::new(ErrorKind::CommandNotFound, "it is not there");
        assert_eq!(attempts().pause_after(&missing), None);
        assert_eq!(RestartAttempts::new(Restart::Never).pause_after(&exited()), None);
    }

    #[test]
    fn an_address_that_was_there_is_tried_for_as_long_as_it_takes() {
        let away = Error::new(ErrorKind::Unreachable, "it is away");
        let mut attempts = RestartAttempts::new(Restart::Never);
        attempts.keep_reaching();
        let pauses: Vec<_> = (0..1000).map(|_| attempts.pause_after(&away).unwrap()).collect();
        assert!(pauses[0] <= REACHING.delay && pauses[999] >= REACHING.max_delay / 2);
        let mut limited = self::attempts();
        limited.keep_reaching();
        assert_eq!((0..9).filter_map(|_| limited.pause_after(&away)).count(), 4);
    }

    #[test]
    fn servers_that_failed_together_do_not_come_back_together() {
        let pauses: std::collections::HashSet<_> =
            (0..32).map(|_| attempts().pause_after(&exited())).collect();
        assert!(pauses.len() > 1);
    }
}
