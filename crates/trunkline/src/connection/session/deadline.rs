//! When an answer is too late. The time in which questions of the server are open does not count.

use std::time::Duration;

use tokio::time::Instant;

/// How many times as long as one question all questions of a request may take together. A server that
/// asks again and again does not keep a request open for ever.
pub(in crate::connection) const QUESTIONS: u32 = 6;

/// When an answer is too late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    /// When it is, if no question is open.
    until: Instant,
    /// When it is, whatever is asked.
    latest: Instant,
    /// How long one question may be open.
    question: Duration,
    /// The questions that are open.
    open: Option<OpenInputs>,
}

#[derive(Clone, Copy, Debug)]
struct OpenInputs {
    count: usize,
    /// When the first of them was asked, and the last.
    since: Instant,
    last: Instant,
}

impl Deadline {
    /// This long from now, and in no case later than that.
    pub(super) fn new(until: Instant, question: Duration) -> Self {
        Self { until, latest: until + question * QUESTIONS, question, open: None }
    }

    /// The time at which it passes, as things are.
    pub(super) fn time(&self) -> Instant {
        match self.open {
            // Whoever answers watches the time of the question; this is for when they are gone.
            Some(open) => (self.until + (open.last - open.since) + self.question).min(self.latest),
            None => self.until,
        }
    }

    /// Since when a question waits for its answer, if one does.
    pub(super) fn paused_since(&self) -> Option<Instant> {
        self.open.map(|open| open.since)
    }

    /// The server asks something.
    pub(super) fn pause(&mut self, now: Instant) {
        let open = self.open.get_or_insert(OpenInputs { count: 0, since: now, last: now });
        open.count += 1;
        open.last = now;
    }

    /// A question of the server has been answered.
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

    /// A deadline of ten seconds, with a minute for each question.
    fn begun() -> (Instant, Deadline) {
        let now = Instant::now();
        (now, Deadline::new(now + 10 * SECOND, 60 * SECOND))
    }

    #[test]
    fn after_questions_there_is_what_remained() {
        let (now, mut deadline) = begun();
        assert_eq!(deadline.time(), now + 10 * SECOND);
        deadline.pause(now + 4 * SECOND);
        // Six seconds remain for the server, and a minute for whoever answers.
        assert_eq!(deadline.time(), now + (4 + 60 + 6) * SECOND);
        deadline.pause(now + 14 * SECOND);
        assert_eq!(deadline.time(), now + (14 + 60 + 6) * SECOND);
        deadline.resume(now + 20 * SECOND);
        assert_eq!(deadline.time(), now + (14 + 60 + 6) * SECOND);
        deadline.resume(now + 30 * SECOND);
        assert_eq!(deadline.time(), now + (30 + 6) * SECOND);
        // An answer to nothing changes nothing.
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
