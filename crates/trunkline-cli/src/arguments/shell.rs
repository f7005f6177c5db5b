//! Arguments of `completions`, `man` and `schema`, and of the command by which the scripts ask for words.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use crate::output_schema;

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

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Writes a page for every command to this directory
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,

    /// Writes them to the directory of the user, where `man` finds them
    #[arg(long, conflicts_with = "directory")]
    pub(crate) install: bool,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Prints the schema of what this command prints with --format json
    #[arg(long, value_name = "COMMAND", value_parser = PossibleValuesParser::new(output_schema::commands()))]
    pub(crate) output: Option<String>,
}

/// Arguments of `complete-line`.
#[derive(Debug, Args)]
pub(crate) struct CompleteLineArguments {
    /// The command line up to the cursor
    pub(crate) line: String,
}
