//! Outcome of one step of the test command.

/// Outcome of a step that did not fail.
pub(crate) enum StepOutcome {
    Checked,
    /// Not checked, with the reason why that is no failure.
    Skipped(String),
}
