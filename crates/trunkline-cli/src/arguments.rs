//! Command line arguments, as parsed by clap. Doc comments of commands and options are the help
//! text.

mod quoting;
mod command_line_server;
mod call;
mod global;
mod login;
mod page;
mod secret;
mod serve;
#[cfg(unix)]
mod service;
mod toggle;
mod trust;
mod host_files;
mod shell;
mod lazy_arguments;
mod command;
mod command_options;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser};
use trunkline_gateway::demo::DemoServer;

pub(crate) use call::{
    CallArguments, CallerArguments, CompleteArguments, ExplainArguments, ImagesArgument,
    LanguageArgument, ListArguments, PromptArguments, ReadArguments, RefreshArguments,
    RunArguments, SearchCommandArguments, SkillArguments, TimeoutArguments, TokensArguments,
    ToolArguments, TypesArguments,
};

pub(crate) use command::Command;
pub(crate) use command_line_server::CommandLineServer;
pub(crate) use global::{ColorChoice, Format, GlobalArguments};
pub(crate) use host_files::{
    AddArguments, ImportArguments, InstallArguments, RemoveArguments, TargetArguments,
};
pub(crate) use login::{LoginArguments, LogoutArguments};
pub(crate) use page::PageArguments;
pub(crate) use quoting::quoted;
pub(crate) use secret::{SecretCommand, StoreArgument};
pub(crate) use serve::{DemoArguments, ServeArguments, TokenAddArguments, TokenCommand};

#[cfg(unix)]
pub(crate) use service::{
    ConnectArguments, LogsArguments, RestartArguments, Supervisor, UpArguments,
};
pub(crate) use shell::{
    CompleteLineArguments, CompletionShell, CompletionsArguments, ManArguments, SchemaArguments,
};
pub(crate) use toggle::ToggleArguments;
pub(crate) use trust::TrustArguments;

const EXIT_CODES: &str = "\
Examples:
  trunkline demo                                 try it: needs no configuration
  trunkline status                               start all servers and print their state
  trunkline tools                                list the tools of all servers
  trunkline call words_shout text=hello          call one of them
  trunkline tools -- npx -y some-mcp-server      list the tools of any server
  trunkline serve                                serve all servers as one, over HTTP

Exit codes:
  0  success
  1  a problem, which the messages describe; also an interruption
  2  the command line is invalid
  3  the tool was called, and its result has `isError`
  4  no tool, prompt, resource, server, agent, bundle, token or secret has this name
  5  the server is unavailable, or its configuration file is not trusted
  6  the arguments of the call are invalid
  7  the server responded with an error
  8  the server did not respond: it ended, closed the connection or timed out
  78 the configuration would start itself without end, or is nested too deep

Configuration file, the first of these:
  1. --config FILE
  2. the file named by TRUNKLINE_CONFIG, or by MCP_CONFIG_PATH
  3. trunkline.json, .trunkline/mcp.json, .mcp.json, .dispatch/mcp.json or opencode.json
     in the working directory or the nearest directory above it; starts no server until
     `trunkline trust` has allowed it
  4. your own file: trunkline/mcp.json in the configuration directory of your system
The variable TRUNKLINE_CONFIG_JSON holds JSON that is merged over the file.";

/// One line to every MCP server.
///
/// Runs the MCP servers of a configuration file: lists and calls their tools, checks
/// the file, and serves all of them as one MCP server. Entries of Claude, Cursor,
/// VS Code, Zed, opencode and other hosts work unchanged.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArguments,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Rejects conflicts that clap cannot express: between options before and after the command.
    pub(crate) fn check(&self) -> Result<(), clap::Error> {
        let message = match &self.command {
            Command::Check(check) if check.file.is_some() && self.global.config.is_some() => {
                "give the file to check as `--config FILE` or as `FILE`, not both"
            }
            Command::Trust(_) if self.global.config.is_some() => {
                "a file given as `--config FILE` needs no trust; name it as `trunkline trust FILE` \
                 to let it run where it is found"
            }
            Command::Tools(list) | Command::Resources(list) | Command::Prompts(list)
                if list.all && self.global.format == Format::Raw =>
            {
                "`--format raw` is the list as a model gets it, without what is hidden; \
                 use `--all` with `--format json`"
            }
            command if self.global.config.is_some() && command.server().is_some() => {
                "give a configuration with `--config FILE`, or a server on the command line, not both"
            }
            command if command.has_two_servers() => {
                "give the URL of a server, or a program after `--`, not both"
            }
            _ => return Ok(()),
        };
        Err(Self::command().error(ErrorKind::ArgumentConflict, message))
    }
}

impl Arguments {
    /// An error about a variable that belongs to the command line.
    pub(crate) fn usage_error(message: &str) -> clap::Error {
        Self::command().error(ErrorKind::ValueValidation, message)
    }
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Keeps the servers running, and prints every change; as JSON, one object per line
    #[arg(long)]
    pub(crate) watch: bool,

    /// The URL of a server, instead of a configuration
    #[arg(value_name = "URL", value_parser = url)]
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Parses the URL of a server.
fn url(text: &str) -> Result<String, String> {
    match command_line_server::is_url(text) {
        true => Ok(text.to_owned()),
        false => Err("a URL begins with https:// or http://".to_owned()),
    }
}

/// Arguments of `demo-server`.
#[derive(Debug, Args)]
pub(crate) struct DemoServerArguments {
    /// Demo server: words or numbers
    #[arg(value_parser = demo_server)]
    pub(crate) server: DemoServer,

    /// Listens for HTTP on this loopback address, instead of stdio
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
}

fn demo_server(name: &str) -> Result<DemoServer, String> {
    DemoServer::from_name(name).ok_or_else(|| {
        let names: Vec<_> = DemoServer::ALL.iter().map(|server| server.name()).collect();
        format!("there are {}", names.join(" and "))
    })
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// File to check [default: the configuration that is used here]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Exits with 1 on warnings and hints too
    #[arg(long)]
    pub(crate) strict: bool,
}
