//! Command line arguments, as parsed by clap. Doc comments of commands and options are the help
//! text.

mod call;
mod serve;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use trunkline_gateway::demo::DemoServer;

pub(crate) use call::{
    CallArguments, CallerArguments, CompleteArguments, ExplainArguments, ListArguments,
    PromptArguments, ReadArguments, RunArguments, SearchCommandArguments, TimeoutArguments,
    TokensArguments, quoted,
};

pub(crate) use serve::{DemoArguments, ServeArguments, TokenAddArguments, TokenCommand};

const EXIT_CODES: &str = "\
Exit codes:
  0  everything is as it should be
  1  something is wrong, and the messages say what
  2  the command line cannot be understood
  3  the tool was called, and its result says that it failed
  4  there is no tool, prompt, resource, server, agent, bundle or token of that name
  5  its server cannot be used now
  6  the arguments of the call do not fit
  7  the server refused the request
  8  the server gave no answer: it ended, broke off or took too long
  78 it would start itself without end, or is nested too deep

Configuration is taken from --config, else the variables TRUNKLINE_CONFIG or
MCP_CONFIG_PATH, else the nearest trunkline.json, .trunkline/mcp.json, .mcp.json,
.dispatch/mcp.json or opencode.json in this folder or above, else your own file.
TRUNKLINE_CONFIG_JSON goes over the file, whichever it is. A file that was found,
not named, starts nothing until `trunkline trust` has allowed it.";

/// One line to every MCP server.
///
/// Trunkline joins many MCP servers behind one safe, fast, observable surface.
/// It reads the configuration you already have: entries of Claude, Cursor,
/// VS Code, Zed, opencode and others work unchanged.
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

impl Command {
    /// The `RunArguments` of commands that list, call or serve.
    pub(crate) fn run_arguments(&self) -> Option<&RunArguments> {
        Some(match self {
            Self::Status(arguments) => &arguments.run,
            Self::Serve(arguments) => &arguments.run,
            Self::Tools(arguments) | Self::Resources(arguments) | Self::Prompts(arguments) => {
                &arguments.who.run
            }
            Self::Search(arguments) => &arguments.who.run,
            Self::Tokens(arguments) => &arguments.who.run,
            Self::Call(arguments) => &arguments.who.run,
            Self::Read(arguments) => &arguments.who.run,
            Self::Prompt(arguments) => &arguments.who.run,
            Self::Complete(arguments) => &arguments.who.run,
            Self::Explain(arguments) => &arguments.who.run,
            Self::Check(_)
            | Self::Config
            | Self::Token { .. }
            | Self::Trust(_)
            | Self::Demo(_)
            | Self::Schema
            | Self::Completions { .. }
            | Self::DemoServer(_) => return None,
        })
    }
}

/// Options that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArguments {
    /// Use this configuration file and look for no other
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How results are printed
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Say only what failed
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print details and a log on standard error: -v requests and servers, -vv messages, -vvv
    /// bytes; TRUNKLINE_LOG sets a filter for the log
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// When to use colours; NO_COLOR and CLICOLOR_FORCE are honoured
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,

    /// Show no progress on the terminal
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON document on standard output
    Json,
    /// What the server sent, byte for byte; else JSON on one line
    Raw,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// When the output is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration and report every problem in it
    ///
    /// Nothing is started. Errors make the exit code 1; under --strict, hints
    /// (such as unknown keys) and warnings do as well. Every code in brackets,
    /// such as error[bad-url], is explained in docs/diagnostics.md.
    #[command(after_help = "Examples:
  trunkline check                          the configuration used in this folder
  trunkline check ~/.cursor/mcp.json       a file of another host
  trunkline check --strict --format json   for a build")]
    Check(CheckArguments),

    /// Show the effective configuration and where each server comes from
    ///
    /// All layers are merged as they would be to run. Secrets are shown as ***;
    /// references such as ${TOKEN} are shown as they are written.
    #[command(after_help = "Examples:
  trunkline config                 what would run in this folder
  trunkline config -v              with all settings of each server
  trunkline config --format json   for a program")]
    Config,

    /// Start the servers and show how each is doing
    ///
    /// Servers are stopped again at the end. A server that cannot be used makes
    /// the exit code 1; the others are shown all the same.
    #[command(after_help = "Examples:
  trunkline status                 every server of this folder
  trunkline status --format json   for a program
  trunkline status --watch         and every change, until Ctrl-C")]
    Status(StatusArguments),

    /// List the tools, as a model would get them
    ///
    /// What is hidden depends on the configuration and on who asks; --access
    /// read-only leaves out tools that declare they write.
    #[command(after_help = "Examples:
  trunkline tools                   everything that may be seen
  trunkline tools --all             and what is hidden, with the reason of each
  trunkline tools --agent reviewer  what this agent sees
  trunkline tools --format raw      one definition a line")]
    Tools(ListArguments),

    /// Find tools by what they do
    ///
    /// Ranks the tools of all servers by their names, descriptions and parameters, as
    /// the tool `trunkline_search` does for a model. Several short queries find more
    /// than one long one.
    #[command(after_help = "Examples:
  trunkline search 'create github issue'
  trunkline search 'read file' 'list folder' --limit 3
  trunkline search 'send message' --server slack --explain")]
    Search(SearchCommandArguments),

    /// Count the tokens that the tools cost a model
    ///
    /// Counts the definitions in the vocabulary o200k_base, per server, directly and in
    /// meta mode.
    #[command(after_help = "Examples:
  trunkline tokens                 per server
  trunkline tokens --tools         also per tool
  trunkline tokens --format json   for a program")]
    Tokens(TokensArguments),

    /// Call a tool and print its result
    ///
    /// Arguments are given one by one, as one JSON object, or as JSON on standard
    /// input. A value that is JSON, such as 5, true or [1,2], is taken as that;
    /// anything else is a text. Ctrl-C cancels the call. What the server asks in
    /// return is declined.
    #[command(after_help = "Examples:
  trunkline call time_get_current_time --arg timezone=Europe/Vienna
  trunkline call files_read_text_file --json '{\"path\": \"/tmp/x\"}'
  echo '{\"a\": 1}' | trunkline call numbers_add -
  trunkline call charts_draw --artifacts ./pictures")]
    Call(CallArguments),

    /// List the resources and their templates
    #[command(after_help = "Examples:
  trunkline resources                 of every server
  trunkline resources --server docs   of one")]
    Resources(ListArguments),

    /// Read a resource and print it
    #[command(after_help = "Examples:
  trunkline read docs://pages/start
  trunkline read docs://pages/start --server docs   without asking the others")]
    Read(ReadArguments),

    /// List the prompts
    #[command(after_help = "Examples:
  trunkline prompts                 of every server
  trunkline prompts --format json   for a program")]
    Prompts(ListArguments),

    /// Get a prompt, filled in with arguments
    #[command(after_help = "Example:
  trunkline prompt docs_summarise --arg page=start")]
    Prompt(PromptArguments),

    /// Ask what an argument of a prompt or a template may be
    #[command(after_help = "Examples:
  trunkline complete docs_summarise page=st
  trunkline complete 'docs://pages/{name}' name")]
    Complete(CompleteArguments),

    /// Say why something can be seen and called, or why not
    ///
    /// Every rule is shown with what it says and where it was written. The first
    /// that does not pass decides.
    #[command(after_help = "Examples:
  trunkline explain files_write_file
  trunkline explain files_write_file --agent reviewer --bundle reading")]
    Explain(ExplainArguments),

    /// Serve all servers as one MCP server
    ///
    /// Over HTTP, the endpoint is /mcp for everything, /mcp/agents/NAME for what an
    /// agent sees, /mcp/bundles/NAME for what is in a bundle. Clients of either
    /// generation of the protocol can use it, whatever the servers behind it speak.
    /// The endpoint is printed on the first line. When the configuration changes, it
    /// is taken up; servers that are the same in it do not notice.
    #[command(after_help = "Examples:
  trunkline serve                             at http://127.0.0.1:7420/mcp
  trunkline serve --listen 127.0.0.1:0        at a port that is free, printed first
  trunkline serve --tokens                    only for bearers of a token
  trunkline serve --stdio                     for one client that starts this program
  trunkline serve --stdio --agent reviewer    with what this agent sees")]
    Serve(ServeArguments),

    /// Make, list and remove tokens for `serve --tokens`
    ///
    /// A token is shown once, when it is made; kept is only its digest. A gateway
    /// that runs takes up what has changed.
    #[command(
        subcommand_value_name = "WHAT",
        after_help = "Examples:
  trunkline token add ann                                      for everything
  trunkline token add ci --agent reviewer --access read-only   for less
  trunkline token list
  trunkline token remove ann"
    )]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },

    /// Let a configuration file that was found run its servers
    ///
    /// A file that is found in a folder starts nothing until it was trusted. What
    /// it would run, reach and read is shown, and then asked for. Trusted is
    /// exactly this content under this path: a change is shown and asked about
    /// again. A file given with --config, or by a variable, and your own file need
    /// no trust. Files that other users can change are never used.
    #[command(after_help = "Examples:
  trunkline trust                       the file that is found here
  trunkline trust ~/project --yes       without asking, for scripts
  trunkline trust --outside-files       and give it the files it names elsewhere
  trunkline trust --list                all files that are trusted
  trunkline trust --revoke ~/project    not any more")]
    Trust(TrustArguments),

    /// See Trunkline at work with two demo servers of its own
    ///
    /// Needs no configuration and no network: one server is this program itself
    /// over stdio, the other listens on a loopback address, and both are served as
    /// one by a gateway on another, for as long as the demonstration runs. On a
    /// terminal it goes on until Ctrl-C, so that a client can be tried on it.
    #[command(after_help = "Examples:
  trunkline demo          on a terminal, until Ctrl-C
  trunkline demo --stay   also where there is no terminal")]
    Demo(DemoArguments),

    /// Print the JSON Schema of configuration files
    ///
    /// Point your editor at it to complete keys and mark mistakes.
    #[command(after_help = "Example:
  trunkline schema > trunkline.schema.json")]
    Schema,

    /// Print completions for a shell
    #[command(after_help = "Examples:
  trunkline completions bash > ~/.local/share/bash-completion/completions/trunkline
  trunkline completions zsh  > \"${fpath[1]}/_trunkline\"
  trunkline completions fish > ~/.config/fish/completions/trunkline.fish")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },

    /// Be one of the demo servers
    #[command(hide = true)]
    DemoServer(DemoServerArguments),
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Keep the servers running and show every change; as JSON, one object a line
    #[arg(long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// The file, or a folder in or above which it is found; by default this one
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,

    /// Trust it without asking
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) yes: bool,

    /// Let it read files outside of its folder as well
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) outside_files: bool,

    /// Trust it no longer; a gateway that runs it stops its servers
    #[arg(long)]
    pub(crate) revoke: bool,

    /// Show which files are trusted
    #[arg(long, conflicts_with_all = ["path", "yes", "outside_files", "revoke"])]
    pub(crate) list: bool,
}

/// Arguments of `demo-server`.
#[derive(Debug, Args)]
pub(crate) struct DemoServerArguments {
    /// Which one: words or numbers
    #[arg(value_parser = demo_server)]
    pub(crate) server: DemoServer,

    /// Listen for HTTP on this loopback address instead of speaking over stdio
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
    /// The file to check instead of the one used here
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Fail on hints and warnings as well
    #[arg(long)]
    pub(crate) strict: bool,
}
