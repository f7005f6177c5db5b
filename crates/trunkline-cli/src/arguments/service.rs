//! Arguments of the background service: `up`, `down`, `restart`, `logs` and `connect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trunkline::name::ConversationName;

use super::call::conversation;
use super::serve::ModeArgument;

/// Arguments of `up`.
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// Runs the service in this process, until a signal ends it
    #[arg(long)]
    pub(crate) foreground: bool,

    /// With --foreground: does not end when there is no client for long, for supervisors
    #[arg(long, requires = "foreground")]
    pub(crate) supervised: bool,

    /// Prints unit files for a supervisor instead of starting anything
    #[arg(long, value_name = "SUPERVISOR", value_enum, conflicts_with = "foreground")]
    pub(crate) print_unit: Option<Supervisor>,

    /// Starts the service as a process of its own, and ends
    #[arg(long, hide = true)]
    pub(crate) detach: bool,

    /// Logs to this file instead of standard error
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Reports on standard output when the service listens
    #[arg(long, hide = true)]
    pub(crate) report: bool,
}

/// A program that starts services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Supervisor {
    /// A socket and a service of systemd
    Systemd,
    /// A launch agent of macOS
    Launchd,
}

/// Arguments of `restart`.
#[derive(Debug, Args)]
pub(crate) struct RestartArguments {
    /// The server to restart; without one, the whole service
    pub(crate) server: Option<String>,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// Prints what this server wrote to standard error, instead of the log of the service
    pub(crate) server: Option<String>,

    /// Prints new lines as they come, until it is interrupted
    #[arg(short, long, conflicts_with = "server")]
    pub(crate) follow: bool,

    /// Prints this many lines
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) lines: usize,
}

/// Arguments of `connect`.
#[derive(Debug, Args)]
pub(crate) struct ConnectArguments {
    /// The directory whose configuration is used [default: the working directory]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,

    /// Serves the items that this agent sees
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Serves the items of this bundle; may be repeated
    #[arg(long = "bundle", value_name = "NAME")]
    pub(crate) bundles: Vec<String>,

    /// Serves this conversation: leaves out what `trunkline disable` has switched off there
    #[arg(long, value_name = "NAME", value_parser = conversation)]
    pub(crate) conversation: Option<ConversationName>,

    /// Presents tools to models in this mode, where agents and bundles have none of their own [default:
    /// that of the configuration]
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) mode: Option<ModeArgument>,
}
