//! Arguments of `import`, `install`, `uninstall`, `add`, `remove` and `init`.

use clap::Args;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Hosts to import from, such as cursor or claude-code [default: all that are found]
    #[arg(value_name = "HOST")]
    pub(crate) hosts: Vec<String>,

    /// Imports everything without asking
    #[arg(long)]
    pub(crate) all: bool,

    /// Prints the servers and the change, and writes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Moves literal credentials to the store for secrets, without asking
    #[arg(long)]
    pub(crate) move_secrets: bool,

    #[command(flatten)]
    pub(crate) target: TargetArguments,
}

/// Which file of Trunkline is changed.
#[derive(Debug, Args)]
pub(crate) struct TargetArguments {
    /// Changes trunkline.json in the working directory
    #[arg(long)]
    pub(crate) project: bool,

    /// Changes your own configuration file
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,
}

/// Arguments of `install` and `uninstall`.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// Host, such as cursor or claude-code
    #[arg(value_name = "HOST")]
    pub(crate) host: String,

    /// Changes the file of the project in the working directory, not that of the user
    #[arg(long)]
    pub(crate) project: bool,

    /// Prints the change, and writes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Replaces or removes an entry of that name that is not Trunkline
    #[arg(long)]
    pub(crate) force: bool,

    /// Name of the entry
    #[arg(long, value_name = "NAME", default_value = "trunkline")]
    pub(crate) name: String,
}

/// Arguments of `add`.
#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// Name of the server
    pub(crate) name: String,

    /// The URL of a remote server
    #[arg(value_name = "URL", value_parser = super::url, conflicts_with = "program")]
    pub(crate) url: Option<String>,

    /// Variable of the program, as in TOKEN=${TOKEN}; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", requires = "program")]
    pub(crate) variables: Vec<String>,

    /// Header of a remote server, as in 'Authorization: Bearer ${TOKEN}'; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,

    /// Replaces a server of that name
    #[arg(long)]
    pub(crate) force: bool,

    /// Prints the change, and writes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) target: TargetArguments,

    /// The program of the server with its arguments; ${NAME} is a reference to a variable
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) program: Vec<String>,
}

/// Arguments of `remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// Name of the server
    pub(crate) name: String,

    /// Prints the change, and writes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) target: TargetArguments,
}
