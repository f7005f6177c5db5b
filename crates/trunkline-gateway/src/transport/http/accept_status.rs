//! Whether connections can be accepted: said once when that begins to fail, and once when it is over.

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How long nothing may have failed before it is over. A connection that comes and goes while there is
/// room for just one more is the end of nothing.
const CALM: Duration = Duration::from_secs(3);

/// What whoever looks after a listener should know of it.
#[derive(Debug)]
pub enum AcceptStatus {
    /// The system has no connection to give, because too many files are open, most likely. Whoever
    /// connects waits.
    Fails(io::Error),
    /// It gives them again.
    Works,
}

/// How accepting goes, and whom to tell.
pub(super) struct AcceptHealth<R> {
    report: R,
    /// When it last failed, unless that is over.
    failed: Option<Instant>,
}

impl<R: FnMut(AcceptStatus)> AcceptHealth<R> {
    pub(super) fn new(report: R) -> Self {
        Self { report, failed: None }
    }

    /// Notes that it failed. However often that is tried again, it is one failure.
    pub(super) fn report_failing(&mut self, error: io::Error) {
        if self.failed.replace(Instant::now()).is_none() {
            (self.report)(AcceptStatus::Fails(error));
        }
    }

    /// Waits until a failure is over; for ever, if there is none.
    pub(super) async fn recovered(&self) {
        match self.failed {
            Some(failed) => sleep_until(failed + CALM).await,
            None => pending().await,
        }
    }

    /// Notes that a failure is over.
    pub(super) fn report_recovered(&mut self) {
        self.failed = None;
        (self.report)(AcceptStatus::Works);
    }
}
