//! Arguments of `serve`, `demo` and `token`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use trunkline::config::ToolMode;
use trunkline::name::ConversationName;

use super::call::{AccessArgument, RunArguments, conversation};

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Listens for HTTP on this address; a port alone, such as 8080, is one of 127.0.0.1
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// Serves one client over standard input and output instead of HTTP
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// With --stdio: serves the items that this agent sees (over HTTP: /mcp/agents/NAME)
    #[arg(long, value_name = "NAME", requires = "stdio")]
    pub(crate) agent: Option<String>,

    /// With --stdio: serves the items of this bundle (over HTTP: /mcp/bundles/NAME); may be repeated
    #[arg(long = "bundle", value_name = "NAME", requires = "stdio")]
    pub(crate) bundles: Vec<String>,

    /// With --stdio: serves this conversation (over HTTP: /mcp?conversation=NAME)
    #[arg(long, value_name = "NAME", requires = "stdio", value_parser = conversation)]
    pub(crate) conversation: Option<ConversationName>,

    /// Requires a token of this file from every client [default file: that of `trunkline token`]
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    #[expect(clippy::option_option, reason = "the option may be there without a file")]
    pub(crate) tokens: Option<Option<PathBuf>>,

    /// Accepts requests with this `Host`, besides those of this machine; may be repeated
    #[arg(long = "allow-host", value_name = "HOST", conflicts_with = "stdio")]
    pub(crate) hosts: Vec<String>,

    /// Accepts requests of web pages with this `Origin`, such as https://example.com; may be repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) origins: Vec<String>,

    /// Presents tools to models in this mode, where agents and bundles have none of their own [default:
    /// that of the configuration]
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) mode: Option<ModeArgument>,

    /// Limits the requests per second of each token, or of all clients without --tokens [default: no limit]
    #[arg(long, value_name = "NUMBER", conflicts_with = "stdio",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,

    /// The URL of a server, instead of a configuration
    #[arg(value_name = "URL", value_parser = super::url)]
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// How tools are presented to models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArgument {
    /// Lists each tool
    Direct,
    /// Lists a few tools to search, describe and call the others
    Meta,
    /// Lists each tool while all of them fit into `tokenBudget`
    Auto,
}

impl From<ModeArgument> for ToolMode {
    fn from(argument: ModeArgument) -> Self {
        match argument {
            ModeArgument::Direct => Self::Direct,
            ModeArgument::Meta => Self::Meta,
            ModeArgument::Auto => Self::Auto,
        }
    }
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
    /// Serves until Ctrl-C, also if standard input is not a terminal
    #[arg(long)]
    pub(crate) stay: bool,
}

/// The commands for tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Creates a token, prints it, and saves its digest
    #[command(after_help = "Examples:
  trunkline token add ann                                      create a token without limits
  trunkline token add ci --agent reviewer --access read-only   create one for this agent")]
    Add(TokenAddArguments),

    /// Lists the tokens, with the limits of each
    #[command(after_help = "Examples:
  trunkline token list                 list names, limits and dates
  trunkline token list --format json   print them as JSON")]
    List {
        #[command(flatten)]
        file: TokenFileArguments,
    },

    /// Removes a token; its requests are rejected at once
    #[command(after_help = "Example:
  trunkline token remove ann")]
    Remove {
        /// Name of the token
        name: String,

        #[command(flatten)]
        file: TokenFileArguments,
    },
}

/// The file of tokens.
#[derive(Debug, Args)]
pub(crate) struct TokenFileArguments {
    /// File of tokens [default: tokens.json beside your own configuration file]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Arguments of `token add`.
#[derive(Debug, Args)]
pub(crate) struct TokenAddArguments {
    /// Name of the token, such as its user
    pub(crate) name: String,

    /// Limits the token to the items that this agent sees
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// Limits the token to the items of this bundle; may be repeated
    #[arg(long = "bundle", value_name = "BUNDLE")]
    pub(crate) bundles: Vec<String>,

    /// Limits the tools of the token, within `access` of the configuration
    #[arg(long, value_name = "ACCESS", value_enum)]
    pub(crate) access: Option<AccessArgument>,

    #[command(flatten)]
    pub(crate) file: TokenFileArguments,
}
