//! How the program ends: one table from what happened to the exit code.

use std::fmt;
use std::process::ExitCode;

use trunkline::call::{CallError, CallErrorKind};
use trunkline::config::printable;
use trunkline::error::Error;
use trunkline::policy::NoSuchCaller;

use crate::terminal::Terminal;

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything is as it should be.
    Good,
    /// Something is wrong and has been reported.
    Bad,
    /// A tool was called, and its result says that it failed.
    ToolFailed,
}

/// What kept a command from coming to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Nothing has that name.
    Unknown,
    /// Its server cannot be used now.
    Unavailable,
    /// The arguments of the call do not fit.
    BadArguments,
    /// The server refused.
    Refused,
    /// The server gave no answer.
    NoAnswer,
}

/// Why a command came to nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A server that cannot be used.
    pub(crate) fn unavailable(error: &Error) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::new(FailureKind::Unavailable, error.to_string()) }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let kind = match error.kind() {
            CallErrorKind::Unknown => FailureKind::Unknown,
            CallErrorKind::Unavailable => FailureKind::Unavailable,
            CallErrorKind::BadArguments => FailureKind::BadArguments,
            CallErrorKind::Refused(_) => FailureKind::Refused,
            CallErrorKind::Failed(_) => FailureKind::NoAnswer,
        };
        Self { kind, message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

impl From<NoSuchCaller> for Failure {
    fn from(error: NoSuchCaller) -> Self {
        Self::new(FailureKind::Unknown, error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |text: &str| text.lines().map(printable).collect::<Vec<_>>().join("\n");
        f.write_str(&lines(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {}", lines(hint)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// The exit code for a result; reports an error that nothing else has reported.
pub(crate) fn code(result: anyhow::Result<Outcome>, terminal: &mut Terminal) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Ok(Outcome::ToolFailed) => ExitCode::from(3),
        Err(error) => {
            terminal.say(&format!("error: {error:#}\n"));
            let kind = error.downcast_ref::<Failure>().map(|failure| failure.kind);
            ExitCode::from(kind.map_or(1, failure_code))
        }
    }
}

fn failure_code(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Unknown => 4,
        FailureKind::Unavailable => 5,
        FailureKind::BadArguments => 6,
        FailureKind::Refused => 7,
        FailureKind::NoAnswer => 8,
    }
}
