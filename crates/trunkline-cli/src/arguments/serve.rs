//! Arguments of `serve`, `demo` and `token`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::call::{AccessArgument, RunArguments};

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Listen for HTTP on this address; a port alone is one of this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420", value_parser = address)]
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

    /// Let in only bearers of the tokens in this file, or in that of `trunkline token`
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    #[expect(clippy::option_option, reason = "the option may be there without a file")]
    pub(crate) tokens: Option<Option<PathBuf>>,

    /// A name under which the gateway is asked, beside those of this machine
    #[arg(long = "allow-host", value_name = "HOST", conflicts_with = "stdio")]
    pub(crate) hosts: Vec<String>,

    /// An origin whose web pages may ask, such as https://example.com
    #[arg(long = "allow-origin", value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) origins: Vec<String>,

    /// Requests a token may make in a second; all clients together where there are no tokens
    #[arg(long, value_name = "NUMBER", conflicts_with = "stdio",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Parses an address to listen on; a port alone is on the loopback interface.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let advice = "an address and a port are needed, such as 127.0.0.1:7420 or [::1]:7420";
    text.parse().map_err(|_| advice.to_owned())
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Go on serving until Ctrl-C, also where standard input is no terminal
    #[arg(long)]
    pub(crate) stay: bool,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, print it once and keep its digest
    Add(TokenAddArguments),

    /// List the tokens there are, with what each is for
    List {
        #[command(flatten)]
        file: TokenFileArguments,
    },

    /// Revoke a token: its requests are rejected from then on
    Remove {
        /// What it is called by
        name: String,

        #[command(flatten)]
        file: TokenFileArguments,
    },
}

/// Where tokens are kept.
#[derive(Debug, Args)]
pub(crate) struct TokenFileArguments {
    /// The file of tokens, instead of tokens.json beside your own configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Arguments of `token add`.
#[derive(Debug, Args)]
pub(crate) struct TokenAddArguments {
    /// What to call it by: who or what will bear it
    pub(crate) name: String,

    /// Its bearer is this agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// Its bearer sees only what this bundle holds; may be repeated
    #[arg(long = "bundle", value_name = "BUNDLE")]
    pub(crate) bundles: Vec<String>,

    /// The most its bearer may see, if that is less than the configuration allows
    #[arg(long, value_name = "ACCESS", value_enum)]
    pub(crate) access: Option<AccessArgument>,

    #[command(flatten)]
    pub(crate) file: TokenFileArguments,
}
