//! Maps results and errors of commands to exit codes.

use std::fmt;
use std::process::ExitCode;

use serde_json::{Value, json};
use trunkline::call::{CallError, CallErrorKind};
use trunkline::config::{ChainError, MISCONFIGURED_EXIT_STATUS, escape_control};
use trunkline::error::Error;
use trunkline::name::ServerName;
use trunkline::policy::UnknownCaller;
use trunkline::secrets::StoreError;

use super::report;
use super::terminal::Terminal;
use crate::arguments::Format;

/// The result of a command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success.
    Good,
    /// Problems were found and have been reported.
    Bad,
    /// A tool was called, and its result has `isError`.
    ToolFailed,
}

/// The kind of an error, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Invalid command line.
    Usage,
    /// No item has that name.
    Unknown,
    /// The server is unavailable.
    Unavailable,
    /// Invalid arguments for the call.
    BadArguments,
    /// The server returned an error.
    Refused,
    /// The server did not respond.
    NoAnswer,
    /// The store for secrets cannot be used.
    Store,
    /// The configuration is in use by an ancestor of this process.
    Nested,
}

impl FailureKind {
    /// The name of the kind in JSON output.
    fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Unknown => "unknown",
            Self::Unavailable => "unavailable",
            Self::BadArguments => "bad-arguments",
            Self::Refused => "refused",
            Self::NoAnswer => "no-answer",
            Self::Store => "store",
            Self::Nested => "nested",
        }
    }

    fn exit_code(self) -> u8 {
        match self {
            Self::Store => 1,
            Self::Usage => 2,
            Self::Unknown => 4,
            Self::Unavailable => 5,
            Self::BadArguments => 6,
            Self::Refused => 7,
            Self::NoAnswer => 8,
            Self::Nested => MISCONFIGURED_EXIT_STATUS,
        }
    }
}

/// An error that ends a command.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    message: String,
    hint: Option<String>,
    /// The server that it concerns.
    server: Option<ServerName>,
    /// Names that may have been meant.
    suggestions: Vec<String>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, hint: None, server: None, suggestions: Vec::new() }
    }

    pub(crate) fn server(&self) -> Option<&ServerName> {
        self.server.as_ref()
    }

    /// Replaces the message.
    #[must_use]
    pub(crate) fn saying(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Adds a hint for the user.
    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the server that it concerns.
    #[must_use]
    pub(crate) fn of(self, server: &ServerName) -> Self {
        Self { server: Some(server.clone()), ..self }
    }

    /// Adds the suggestions that the message contains.
    #[must_use]
    pub(crate) fn suggesting(self, suggestions: Vec<String>) -> Self {
        Self { suggestions, ..self }
    }

    /// Adds the suggestions of another error as a hint, if there are any.
    #[must_use]
    pub(crate) fn with_suggestions_of(self, other: &Self) -> Self {
        let meant: Vec<_> = other.suggestions.iter().map(|it| format!("`{it}`")).collect();
        if meant.is_empty() {
            return self;
        }
        let meant = format!("did you mean {}?", meant.join(" or "));
        let hint = self.hint.as_deref().map(|hint| format!("{hint}\n  {meant}"));
        Self { hint: Some(hint.unwrap_or(meant)), suggestions: other.suggestions.clone(), ..self }
    }

    /// The error for an unavailable server.
    pub(crate) fn unavailable(error: &Error) -> Self {
        let (hint, server) = (error.hint().map(str::to_owned), error.server().cloned());
        Self { hint, server, ..Self::new(FailureKind::Unavailable, error.to_string()) }
    }

    /// The error as JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "kind": self.kind.as_str(),
            "message": self.message,
            "server": self.server.as_ref().map(ServerName::as_str),
            "hint": self.hint,
            "suggestions": self.suggestions,
        })
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let kind = match error.kind() {
            CallErrorKind::Unknown => FailureKind::Unknown,
            CallErrorKind::Unavailable => FailureKind::Unavailable,
            CallErrorKind::BadArguments => FailureKind::BadArguments,
            CallErrorKind::Refused(_) => FailureKind::Refused,
            CallErrorKind::Failed(kind) if kind.needs_user_login() => FailureKind::Unavailable,
            CallErrorKind::Failed(_) => FailureKind::NoAnswer,
        };
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::new(kind, error.to_string()) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::new(FailureKind::Store, error.to_string()) }
    }
}

impl From<UnknownCaller> for Failure {
    fn from(error: UnknownCaller) -> Self {
        let message = error.to_string();
        Self::new(FailureKind::Unknown, message).suggesting(error.suggestion.into_iter().collect())
    }
}

impl From<ChainError> for Failure {
    fn from(error: ChainError) -> Self {
        Self::new(FailureKind::Nested, error.to_string()).with_hint(error.hint())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |text: &str| text.lines().map(escape_control).collect::<Vec<_>>().join("\n");
        f.write_str(&lines(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {}", lines(hint)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// The exit code of a result; reports an error that has not been reported yet.
pub(crate) fn code(
    result: anyhow::Result<Outcome>,
    format: Format,
    terminal: &mut Terminal,
) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Ok(Outcome::ToolFailed) => ExitCode::from(3),
        Err(error) => {
            terminal.say(&format!("error: {error:#}\n"));
            let kind = error.downcast_ref::<Failure>().map(|failure| failure.kind);
            let code = kind.map_or(1, FailureKind::exit_code);
            // A partial result followed by an error would not be valid JSON.
            if format != Format::Text && !terminal.has_printed() {
                // A failure to print this cannot be reported either.
                let _ = terminal.print(&report::document(&error_json(&error, code), format));
            }
            ExitCode::from(code)
        }
    }
}

/// The error as a JSON document, in place of a result.
fn error_json(error: &anyhow::Error, code: u8) -> Value {
    let mut json = match error.downcast_ref::<Failure>() {
        Some(failure) => failure.as_json(),
        None => json!({
            "kind": "failed", "message": format!("{error:#}"),
            "server": null, "hint": null, "suggestions": [],
        }),
    };
    json["exitCode"] = code.into();
    json!({ "error": json })
}
