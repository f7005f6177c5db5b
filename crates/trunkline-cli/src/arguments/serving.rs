//! Arguments of commands that serve.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Listen for HTTP on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    pub(crate) listen: SocketAddr,

    /// Serve one client over standard input and output instead
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// With --stdio: serve what this agent sees; over HTTP this is /mcp/agents/NAME
    #[arg(long, value_name = "NAME", requires = "stdio")]
    pub(crate) agent: Option<String>,

    /// With --stdio: serve what is in this bundle; over HTTP this is /mcp/bundles/NAME
    #[arg(long = "bundle", value_name = "NAME", requires = "stdio")]
    pub(crate) bundles: Vec<String>,

    /// Let in only bearers of the tokens in this file (see `trunkline token`)
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    pub(crate) tokens: Option<PathBuf>,

    /// A name under which the gateway is asked, beside those of this machine
    #[arg(long = "allow-host", value_name = "HOST", conflicts_with = "stdio")]
    pub(crate) hosts: Vec<String>,

    /// An origin whose web pages may ask, such as https://example.com
    #[arg(long = "allow-origin", value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) origins: Vec<String>,

    /// Requests a token may make in a second; all clients together where there are no tokens
    #[arg(long, value_name = "NUMBER", conflicts_with = "stdio")]
    pub(crate) rate: Option<u32>,
}
