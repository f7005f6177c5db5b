//! Arguments of all commands.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Options that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArguments {
    /// Uses this configuration file, and looks for no other
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Prints results in this format
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Prints errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Prints details and a log on standard error: -v requests and servers, -vv messages, -vvv
    /// bytes; TRUNKLINE_LOG sets a filter for the log
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Uses colours in the output; `auto` also follows NO_COLOR and CLICOLOR_FORCE
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,

    /// Uses no colours; the same as --color never
    #[arg(long, global = true, conflicts_with = "color")]
    pub(crate) no_color: bool,

    /// Prints long lists without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    /// Shows no progress on the terminal
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Text,
    /// One JSON document on standard output
    Json,
    /// The bytes that the server sent; for other results, JSON on one line
    Raw,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
