//! How the program ends: one table from what happened to the exit code.

use std::io;
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
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.say(&format!("error: {error:#}\n"));
            ExitCode::from(1)
        }
    }
}

/// Whether the reader of our output went away, which is its right.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
