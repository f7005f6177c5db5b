//! How the program ends: one table from what happened to the exit code.

use std::process::ExitCode;

use crate::terminal::Terminal;

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything is as it should be.
    Good,
    /// Something is wrong and has been reported.
    Bad,
}

/// The exit code for a result; reports an error that nothing else has reported.
pub(crate) fn code(result: anyhow::Result<Outcome>, terminal: &mut Terminal) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Err(error) => {
            terminal.say(&format!("error: {error:#}\n"));
            ExitCode::from(1)
        }
    }
}
