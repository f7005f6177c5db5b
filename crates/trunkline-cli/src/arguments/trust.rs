//! Arguments of `trust`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Configuration file, or a directory to search it from [default: the working directory]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,

    /// Trusts the file without a prompt
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) yes: bool,

    /// Lets `${file:…}` and `envFile` read files outside of its directory
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) outside_files: bool,

    /// Trusts the file no longer; a running gateway stops its servers
    #[arg(long)]
    pub(crate) revoke: bool,

    /// Lists the trusted files
    #[arg(long, conflicts_with_all = ["path", "yes", "outside_files", "revoke"])]
    pub(crate) list: bool,
}
