//! A slow tool that detects cancellation.

use std::time::Duration;

use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::time::{Instant, interval};

use super::Outcome;
use super::live::progress;
use crate::call::Call;
use crate::content::text;

/// Interval of progress notifications; the first is sent at once, as a sign that the tool runs.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

pub(super) async fn call(call: &Call) -> Outcome {
    let seconds = call.arguments.get("seconds").and_then(Value::as_f64).unwrap_or(1.0);
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| ErrorData::invalid_params("seconds is not a length of time", None))?;
    let mut unfinished = CancelReporter { call, is_done: false };
    let is_cancelled = tokio::select! {
        () = report_for(call, time) => false,
        () = call.context.ct.cancelled() => true,
    };
    unfinished.is_done = !is_cancelled;
    Ok(text(if is_cancelled { "Cancelled" } else { "Done in time" }))
}

/// Sends progress notifications until the time has passed.
async fn report_for(call: &Call, time: Duration) {
    let started = Instant::now();
    let mut reports = interval(BETWEEN_REPORTS);
    while started.elapsed() < time {
        reports.tick().await;
        let done = started.elapsed().as_secs_f64() / time.as_secs_f64();
        progress(call, 100.0 * done.min(1.0)).await;
    }
}

/// Counts the call as cancelled if it ends early, also when `rmcp` drops it because the stream was
/// closed.
struct CancelReporter<'a> {
    call: &'a Call,
    is_done: bool,
}

impl Drop for CancelReporter<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.call.world.count_cancelled(self.call.text("label"));
        }
    }
}
