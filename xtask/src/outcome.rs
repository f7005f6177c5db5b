//! Outcome of one step of the test command.

/// Outcome of a step that did not fail.
pub(crate) enum StepOutcome {
    Checked,
    /// Not checked, for a reason that is not a failure.
    Skipped(String),
}
