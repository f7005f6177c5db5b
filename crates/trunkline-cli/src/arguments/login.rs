//! Arguments of `trunkline login` and `trunkline logout`.

use clap::Args;

/// Arguments of `login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    /// Server to log in to
    #[arg(value_name = "SERVER", required_unless_present = "status")]
    pub(crate) server: Option<String>,

    /// Prints the link, and reads the address that the browser is redirected to, for a machine
    /// without a browser
    #[arg(long, conflicts_with = "device")]
    pub(crate) headless: bool,

    /// Prints a short code to enter on another device, where the server offers that
    #[arg(long)]
    pub(crate) device: bool,

    /// Requests this scope too; repeatable
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// Lists the logins, and sends nothing
    #[arg(long, conflicts_with_all = ["headless", "device", "scopes"])]
    pub(crate) status: bool,
}

/// Arguments of `logout`.
#[derive(Debug, Args)]
pub(crate) struct LogoutArguments {
    /// Server to log out of
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
}
