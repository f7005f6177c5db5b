//! Reports when connections cannot be accepted any more, and when they can again, once each.

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How long `accept` must not fail before recovery is reported; a single freed descriptor is not a
/// recovery.
const CALM: Duration = Duration::from_secs(3);

/// Whether a listener accepts connections.
#[derive(Debug)]
pub enum AcceptStatus {
    /// The system accepts no more connections, most likely because too many files are open. Clients
    /// that connect have to wait.
    Fails(io::Error),
    /// Connections are accepted again.
    Works,
}

/// The last failure of `accept`, and the callback for reports.
pub(super) struct AcceptHealth<R> {
    report: R,
    /// When `accept` last failed, until it recovers.
    failed: Option<Instant>,
}

impl<R: FnMut(AcceptStatus)> AcceptHealth<R> {
    pub(super) fn new(report: R) -> Self {
        Self { report, failed: None }
    }

    /// Records a failure. Reports only the first of a series.
    pub(super) fn report_failing(&mut self, error: io::Error) {
        if self.failed.replace(Instant::now()).is_none() {
            (self.report)(AcceptStatus::Fails(error));
        }
    }

    /// Waits until a failure has recovered; forever if there is none.
    pub(super) async fn recovered(&self) {
        match self.failed {
            Some(failed) => sleep_until(failed + CALM).await,
            None => pending().await,
        }
    }

    pub(super) fn report_recovered(&mut self) {
        self.failed = None;
        (self.report)(AcceptStatus::Works);
    }
}
