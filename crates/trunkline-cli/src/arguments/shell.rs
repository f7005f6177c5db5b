//! Arguments of `completions`, and of the command by which the scripts ask for words.

use clap::{Args, ValueEnum};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to print the script for
    #[arg(value_enum)]
    pub(crate) shell: CompletionShell,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
}

/// Arguments of `complete-line`.
#[derive(Debug, Args)]
pub(crate) struct CompleteLineArguments {
    /// The command line up to the cursor
    pub(crate) line: String,
}
