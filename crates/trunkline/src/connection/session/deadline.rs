//! Deadline of a pending request, which stops while server requests are open.

use std::time::Duration;

use tokio::time::Instant;

/// Total time of server requests within one request, in multiples of the timeout of one. Keeps a
/// server from extending a request forever with new server requests.
pub(in crate::connection) const QUESTIONS: u32 = 6;

/// Deadline of a pending request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    /// The deadline while no server request is open.
    until: Instant,
    /// The limit, however many server requests are sent.
    latest: Instant,
    /// Timeout of one server request.
    question: Duration,
    /// The open server requests.
    open: Option<OpenInputs>,
}

#[derive(Clone, Copy, Debug)]
struct OpenInputs {
    count: usize,
    /// Times of the first and the last of them.
    since: Instant,
    last: Instant,
}

impl Deadline {
    /// Creates a deadline at `until`, extended by server requests at most [`QUESTIONS`] times
    /// `question`.
    pub(super) fn new(until: Instant, question: Duration) -> Self {
        Self { until, latest: until + question * QUESTIONS, question, open: None }
    }

    /// The current time of expiry.
    pub(super) fn time(&self) -> Instant {
        match self.open {
            // The handler enforces the timeout of the server request; this applies when it is gone.
            Some(open) => (self.until + (open.last - open.since) + self.question).min(self.latest),
            None => self.until,
        }
    }

    /// Time since which a server request is open, if one is.
    pub(super) fn paused_since(&self) -> Option<Instant> {
        self.open.map(|open| open.since)
    }

    /// Stops the deadline: the server sent a request.
    pub(super) fn pause(&mut self, now: Instant) {
        let open = self.open.get_or_insert(OpenInputs { count: 0, since: now, last: now });
        open.count += 1;
        open.last = now;
    }

    /// Resumes the deadline once the last open server request has a response.
    pub(super) fn resume(&mut self, now: Instant) {
        let Some(open) = &mut self.open else { return };
        open.count -= 1;
        if open.count == 0 {
            self.until = (self.until + (now - open.since)).min(self.latest);
            self.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A deadline of ten seconds, with a minute for each server request.
    fn begun() -> (Instant, Deadline) {
        let now = Instant::now();
        (now, Deadline::new(now + 10 * SECOND, 60 * SECOND))
    }

    #[test]
    fn deadline_keeps_the_remaining_time_after_a_server_request() {
        let (now, mut deadline) = begun();
        assert_eq!(deadline.time(), now + 10 * SECOND);
        deadline.pause(now + 4 * SECOND);
        // Six seconds remain for the server, and a minute for the handler.
        assert_eq!(deadline.time(), now + (4 + 60 + 6) * SECOND);
        deadline.pause(now + 14 * SECOND);
        assert_eq!(deadline.time(), now + (14 + 60 + 6) * SECOND);
        deadline.resume(now + 20 * SECOND);
        assert_eq!(deadline.time(), now + (14 + 60 + 6) * SECOND);
        deadline.resume(now + 30 * SECOND);
        assert_eq!(deadline.time(), now + (30 + 6) * SECOND);
        // A response without an open server request changes nothing.
        deadline.resume(now + 31 * SECOND);
        assert_eq!(deadline.time(), now + (30 + 6) * SECOND);
    }

    #[test]
    fn a_server_that_never_stops_asking_is_late_in_the_end() {
        let (now, mut deadline) = begun();
        let latest = now + 10 * SECOND + 60 * SECOND * QUESTIONS;
        for minute in 0..20 {
            deadline.pause(now + SECOND + 60 * SECOND * minute);
            assert!(deadline.time() <= latest, "{minute}");
            deadline.resume(now + SECOND + 60 * SECOND * (minute + 1));
            assert!(deadline.time() <= latest, "{minute}");
        }
        assert_eq!(deadline.time(), latest);
    }
}
