//! Arguments of `page`.

use clap::Args;

/// Arguments of `page`.
#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// Opens the page of the `trunkline serve` at this address, not that of the service
    #[arg(long, value_name = "URL", conflicts_with = "token")]
    pub(crate) address: Option<String>,

    /// Prints the token of the control API and the metrics, for programs
    #[arg(long)]
    pub(crate) token: bool,
}
