//! The commands, each with its arguments. Doc comments are the help text.

use clap::Subcommand;

use super::call::{
    CallArguments, CompleteArguments, ExplainArguments, ListArguments, PromptArguments,
    ReadArguments, SearchCommandArguments, SkillArguments, TokensArguments, ToolArguments,
    TypesArguments,
};
use super::host_files::{AddArguments, ImportArguments, InstallArguments, RemoveArguments};
use super::lazy_arguments::LazyArguments;
use super::login::{LoginArguments, LogoutArguments};
use super::page::PageArguments;
use super::secret::SecretCommand;
use super::serve::{DemoArguments, ServeArguments, TokenCommand};
#[cfg(unix)]
use super::service::{ConnectArguments, LogsArguments, RestartArguments, UpArguments};
use super::shell::{CompleteLineArguments, CompletionsArguments, ManArguments, SchemaArguments};
use super::toggle::ToggleArguments;
use super::trust::TrustArguments;
use super::{CheckArguments, DemoServerArguments, StatusArguments};

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Checks a configuration file and prints every problem in it
    ///
    /// Starts no server. Also checks that programs, directories, variables and files
    /// that the servers refer to exist here. Exits with 1 if there is an error; with
    /// --strict also if there is a warning or a hint, such as an unknown key. The codes
    /// in brackets, such as error[bad-url], are explained in docs/diagnostics.md.
    #[command(after_help = "Examples:
  trunkline check                          check the configuration of this directory
  trunkline check ~/.cursor/mcp.json       check a file of another host
  trunkline check --strict --format json   check in a build")]
    Check(LazyArguments<CheckArguments>),

    /// Prints the effective configuration, with the file and line of each server
    ///
    /// Starts no server. All layers are merged, as they are for a run. Secrets are
    /// printed as ***, and references such as ${TOKEN} as they are written.
    #[command(after_help = "Examples:
  trunkline config                 print the configuration of this directory
  trunkline config -v              print all settings of each server
  trunkline config --format json   print it as JSON")]
    Config,

    /// Starts all servers, and prints the state of each
    ///
    /// Prints the protocol version and the number of tools of each server, or why it
    /// failed, and stops the servers again. Exits with 1 if a server failed.
    #[command(after_help = "Examples:
  trunkline status                 start all servers and print their state
  trunkline status --format json   print it as JSON
  trunkline status --watch         print every change, until Ctrl-C")]
    Status(LazyArguments<StatusArguments>),

    /// Lists the tools of all servers
    ///
    /// Prints the names and descriptions that a model gets, and how many tools are
    /// hidden by rules of the configuration or by the caller options. Starts servers
    /// whose tools are not cached from an earlier run.
    #[command(after_help = "Examples:
  trunkline tools                      list the visible tools
  trunkline tools github               list the tools of one server
  trunkline tools -- npx -y @modelcontextprotocol/server-everything
  trunkline tools https://example.com/mcp
  trunkline tools --all                list hidden tools too, each with the reason
  trunkline tools --agent reviewer     list the tools that this agent sees
  trunkline tools --access read-only   leave out tools that declare that they write
  trunkline tools --format raw         print one definition per line")]
    #[command(visible_alias = "ls", alias = "list")]
    Tools(LazyArguments<ListArguments>),

    /// Describes one tool: its arguments, their types and limits, and an example call
    #[command(after_help = "Examples:
  trunkline tool words_shout
  trunkline tool words shout          the same, by server and its own name
  trunkline tool fetch -- uvx mcp-server-fetch")]
    Tool(LazyArguments<ToolArguments>),

    /// Finds tools by what they do
    ///
    /// Ranks the tools of all servers by their names, descriptions and parameters, as
    /// the tool `trunkline_search` does for a model. Several short queries find more
    /// than one long one.
    #[command(after_help = "Examples:
  trunkline search 'create github issue'
  trunkline search 'read file' 'list folder' --limit 3
  trunkline search 'send message' --server slack --explain")]
    Search(LazyArguments<SearchCommandArguments>),

    /// Counts the tokens that the tools cost a model
    ///
    /// Counts the definitions in the vocabulary o200k_base, per server, directly and in
    /// meta mode.
    #[command(after_help = "Examples:
  trunkline tokens                 per server
  trunkline tokens --tools         also per tool
  trunkline tokens --format json   for a program")]
    Tokens(LazyArguments<TokensArguments>),

    /// Writes types of the tools for programs, in TypeScript or Python
    ///
    /// Types of the arguments and of the structured result of each tool that the caller
    /// sees, under the names that models get.
    #[command(after_help = "Examples:
  trunkline types > tools.d.ts
  trunkline types --lang py --server github > github_tools.py")]
    Types(LazyArguments<TypesArguments>),

    /// Writes a skill file, by which an agent calls the tools of a server from its shell
    ///
    /// Names the tools with their parameters, and the commands that call and describe
    /// them. An agent reads it when it is needed, instead of all definitions.
    #[command(after_help = "Examples:
  trunkline skill github > .claude/skills/github/SKILL.md
  trunkline skill -- uvx mcp-server-time > .claude/skills/time/SKILL.md")]
    Skill(LazyArguments<SkillArguments>),

    /// Sends one `tools/call`, and prints the result
    ///
    /// Starts only the server of the tool. Arguments are written as key=value, with the
    /// types of the tool's schema: a.b=1 for nested ones, list[]=x for items of a list,
    /// key=@file for the content of a file, key:=JSON for anything else. One value
    /// without a name is for the only argument that is required. All of them can be one
    /// JSON object (--json), or JSON on standard input (-). They are validated before
    /// they are sent. On a terminal, you are asked for missing ones and for input
    /// that a server requests (elicitation); other server requests are declined. Ctrl-C
    /// cancels the call.
    #[command(after_help = "Examples:
  trunkline call words_shout hello
  trunkline call time get_current_time timezone=Europe/Vienna
  trunkline call files_write_file path=/tmp/x content=@notes.txt
  trunkline call numbers_add --json '{\"a\": 1, \"b\": 2}'
  echo '{\"a\": 1, \"b\": 2}' | trunkline call numbers_add -
  trunkline call https://example.com/mcp search query=mcp
  trunkline call echo message=hi -- npx -y @modelcontextprotocol/server-everything")]
    Call(LazyArguments<CallArguments>),

    /// Lists the resources and resource templates of all servers
    #[command(after_help = "Examples:
  trunkline resources                 list the resources of all servers
  trunkline resources --server docs   list the resources of one server")]
    Resources(LazyArguments<ListArguments>),

    /// Sends one `resources/read`, and prints the content
    ///
    /// A URI does not name its server, so all servers are started to find it, unless
    /// --server names one.
    #[command(after_help = "Examples:
  trunkline read docs://pages/start
  trunkline read docs://pages/start --server docs   start only this server")]
    Read(LazyArguments<ReadArguments>),

    /// Lists the prompts of all servers
    #[command(after_help = "Examples:
  trunkline prompts                 list the prompts of all servers
  trunkline prompts --format json   print the definitions as JSON")]
    Prompts(LazyArguments<ListArguments>),

    /// Sends one `prompts/get`, and prints the messages
    #[command(after_help = "Examples:
  trunkline prompt docs_summarise page=start
  trunkline prompt docs summarise page=start")]
    Prompt(LazyArguments<PromptArguments>),

    /// Sends one `completion/complete`, and prints the values for an argument
    ///
    /// Completes an argument of a prompt or of a resource template, one value per line.
    #[command(after_help = "Examples:
  trunkline complete docs_summarise page=st
  trunkline complete docs summarise page=st
  trunkline complete 'docs://pages/{name}' name")]
    Complete(LazyArguments<CompleteArguments>),

    /// Explains why a tool, prompt or resource is visible or hidden
    ///
    /// Prints every rule with its result, and the file and line where it is written.
    /// The first rule that does not pass decides.
    #[command(after_help = "Examples:
  trunkline explain files_write_file
  trunkline explain files_write_file --agent reviewer --bundle reading")]
    Explain(LazyArguments<ExplainArguments>),

    /// Copies the servers of other hosts on this machine into Trunkline's own file
    ///
    /// Reads the files of Claude, Cursor, VS Code, Zed, Codex, goose and others, of the
    /// user and of this directory, prints what is in them, and asks. Nothing in those
    /// files is changed. Everything that has no effect here is named.
    #[command(after_help = "Examples:
  trunkline import                       print what is found, and ask
  trunkline import cursor --dry-run      print the change, and write nothing
  trunkline import --all                 import everything
  trunkline import --project claude-code import into trunkline.json of this directory")]
    Import(LazyArguments<ImportArguments>),

    /// Puts Trunkline into the configuration of a host
    ///
    /// The host then starts `trunkline connect`. Comments and order of its file are
    /// kept, and the file as it was is kept beside it.
    #[command(after_help = "Examples:
  trunkline install cursor
  trunkline install vscode --project     in the file of this directory
  trunkline install codex --dry-run      print the change, and write nothing")]
    Install(LazyArguments<InstallArguments>),

    /// Takes Trunkline out of the configuration of a host
    #[command(after_help = "Example:
  trunkline uninstall cursor")]
    Uninstall(LazyArguments<InstallArguments>),

    /// Adds a server to the configuration
    #[command(after_help = "Examples:
  trunkline add time -- uvx mcp-server-time
  trunkline add docs https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  trunkline add files --project -- npx -y @modelcontextprotocol/server-filesystem .")]
    Add(LazyArguments<AddArguments>),

    /// Removes a server from the configuration
    #[command(after_help = "Example:
  trunkline remove time")]
    Remove(LazyArguments<RemoveArguments>),

    /// Creates trunkline.json in the working directory
    #[command(after_help = "Example:
  trunkline init")]
    Init,

    /// Switches servers, tools or prompts off, in this project or in one conversation
    ///
    /// They do not exist for clients any more, and running gateways notify theirs. Kept until
    /// `trunkline enable`; the configuration stays as it is.
    #[command(after_help = "Examples:
  trunkline disable github                          in this project
  trunkline disable time_now --conversation chat-7  in one conversation
  trunkline disable                                 print what is switched off")]
    Disable(LazyArguments<ToggleArguments>),

    /// Switches on what `trunkline disable` has switched off
    ///
    /// In a conversation, also what is off in the project.
    #[command(after_help = "Examples:
  trunkline enable github
  trunkline enable github --conversation chat-7")]
    Enable(LazyArguments<ToggleArguments>),

    /// Prints a link that opens the page of the background service
    ///
    /// The page shows servers, tools, calls, conversations and files to trust. The link
    /// works once, and for ten minutes. `trunkline serve` prints one for its own page.
    #[command(after_help = "Examples:
  trunkline page
  trunkline page --address http://127.0.0.1:7420   the page of a `trunkline serve`
  curl -H \"Authorization: Bearer $(trunkline page --token)\" http://127.0.0.1:7421/api/v1/servers")]
    Page(LazyArguments<PageArguments>),

    /// Connects a host to the background service, over stdio
    ///
    /// The command for the configuration of a host. The service runs each server once
    /// for all hosts, and is started if needed. The configuration is the one of the
    /// working directory, or of --project. A restart of the service is not visible to
    /// the host, except for calls that were running.
    #[cfg(unix)]
    #[command(after_help = "Example, in the configuration of a host:
  { \"mcpServers\": { \"trunkline\": { \"command\": \"trunkline\", \"args\": [\"connect\"] } } }")]
    Connect(LazyArguments<ConnectArguments>),

    /// Starts the background service, which runs the servers of all hosts
    ///
    /// `trunkline connect` starts it by itself. It ends when no client has been connected
    /// for 15 minutes.
    #[cfg(unix)]
    #[command(after_help = "Examples:
  trunkline up
  trunkline up --print-unit systemd   let systemd start it")]
    Up(LazyArguments<UpArguments>),

    /// Ends the background service and its servers
    ///
    /// Hosts that are connected start it again with their next message.
    #[cfg(unix)]
    #[command(after_help = "Example:
  trunkline down")]
    Down,

    /// Lists the clients and servers of the background service, and gateways
    ///
    /// Starts nothing. Also prints why a changed configuration is not in use.
    #[cfg(unix)]
    #[command(after_help = "Examples:
  trunkline ps
  trunkline ps --format json   for a program")]
    Ps,

    /// Restarts the background service, or one of its servers
    #[cfg(unix)]
    #[command(after_help = "Examples:
  trunkline restart          the service, with all servers
  trunkline restart browser  one server")]
    Restart(LazyArguments<RestartArguments>),

    /// Prints the log of the background service, or of one of its servers
    #[cfg(unix)]
    #[command(after_help = "Examples:
  trunkline logs -f        the log of the service, and new lines as they come
  trunkline logs browser   what this server wrote to standard error")]
    Logs(LazyArguments<LogsArguments>),

    /// Serves all servers as one MCP server, over HTTP or stdio
    ///
    /// Runs until Ctrl-C. The endpoint /mcp has all items, /mcp/agents/NAME those that
    /// an agent sees, /mcp/bundles/NAME those of a bundle. Clients of both protocol
    /// eras can connect. The first line of the output is the URL. A changed
    /// configuration file is applied at once; unchanged servers keep running.
    #[command(after_help = "Examples:
  trunkline serve                             serve at http://127.0.0.1:7420/mcp
  trunkline serve --listen 127.0.0.1:0        serve at a free port, and print it
  trunkline serve --tokens                    require a token from every client
  trunkline serve --stdio                     serve the client that starts this program
  trunkline serve --stdio --agent reviewer    serve what this agent sees")]
    Serve(LazyArguments<ServeArguments>),

    /// Creates, lists and removes the tokens of `serve --tokens`
    ///
    /// A token is printed once, when it is created; the file contains only its digest.
    /// A running gateway applies changes at once.
    #[command(
        subcommand_value_name = "COMMAND",
        after_help = "Examples:
  trunkline token add ann                                      create a token without limits
  trunkline token add ci --agent reviewer --access read-only   create one for this agent
  trunkline token list                                         list the tokens
  trunkline token remove ann                                   reject requests of this token"
    )]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },

    /// Logs in to a remote server with OAuth
    ///
    /// Opens the page of the server's authorization server in your browser, and waits
    /// for it to come back. The login is kept in the store for secrets, and renewed by
    /// itself; a running gateway uses it within seconds. Servers that need no login
    /// say so.
    #[command(after_help = "Examples:
  trunkline login docs                 log in with the browser of this machine
  trunkline login docs --headless      log in with a browser of another machine
  trunkline login docs --device        enter a short code on another device
  trunkline login docs --scope write   request more rights
  trunkline login --status             list the logins")]
    Login(LazyArguments<LoginArguments>),

    /// Ends a login: revokes its tokens, and removes it
    #[command(after_help = "Example:
  trunkline logout docs")]
    Logout(LazyArguments<LogoutArguments>),

    /// Stores, lists and removes secrets for `${secret:NAME}`
    ///
    /// Secrets are in the keychain of the system, or in encrypted files if there is
    /// none. A value is read from the terminal without echo, or from standard input.
    /// No command prints a value.
    #[command(
        subcommand_value_name = "COMMAND",
        after_help = "Examples:
  trunkline secret set GITHUB_TOKEN            ask for a value and store it
  pass show token | trunkline secret set CI    store a value from another program
  trunkline secret list                        list the names
  trunkline secret store                       say which store is used, and why
  trunkline secret migrate --to file           move all secrets to encrypted files"
    )]
    Secret {
        #[command(subcommand)]
        command: SecretCommand,
    },

    /// Allows a discovered configuration file to start its servers
    ///
    /// A file that is found in or above the working directory starts no server until it
    /// is trusted. This prints the programs, URLs and files that it uses, and asks.
    /// Trust covers this content at this path: a changed file has to be trusted again.
    /// Your own file, and files named by --config or a variable, need no trust. Files
    /// that other users can change are never used.
    #[command(after_help = "Examples:
  trunkline trust                       review the file of this directory, and ask
  trunkline trust ~/project --yes       trust a file without a prompt, in scripts
  trunkline trust --outside-files       let it read the files it names elsewhere
  trunkline trust --list                list the trusted files
  trunkline trust --revoke ~/project    trust a file no longer")]
    Trust(LazyArguments<TrustArguments>),

    /// Shows status, tools, a call and a gateway with two built-in servers
    ///
    /// Needs no configuration and no network. One demo server uses stdio, the other
    /// HTTP on a loopback address, and a gateway on another loopback address serves
    /// both. On a terminal it serves until Ctrl-C, so that you can connect a client.
    #[command(after_help = "Examples:
  trunkline demo          serve until Ctrl-C on a terminal, else end by itself
  trunkline demo --stay   serve until Ctrl-C in any case")]
    Demo(LazyArguments<DemoArguments>),

    /// Prints the JSON Schema of configuration files, or of the JSON output of a command
    ///
    /// An editor with the schema of configuration files completes keys and marks errors.
    #[command(after_help = "Examples:
  trunkline schema > trunkline.schema.json
  trunkline schema --output tools")]
    Schema(LazyArguments<SchemaArguments>),

    /// Prints the completion script of a shell
    #[command(after_help = "Examples:
  trunkline completions bash > ~/.local/share/bash-completion/completions/trunkline
  trunkline completions zsh  > \"${fpath[1]}/_trunkline\"
  trunkline completions fish > ~/.config/fish/completions/trunkline.fish")]
    Completions(LazyArguments<CompletionsArguments>),

    /// Prints the manual page, or writes the pages of all commands
    #[command(after_help = "Examples:
  trunkline man | man -l -
  trunkline man --install")]
    Man(LazyArguments<ManArguments>),

    /// Prints the words that can follow on a command line
    #[command(hide = true)]
    CompleteLine(LazyArguments<CompleteLineArguments>),

    /// Runs a demo server
    #[command(hide = true)]
    DemoServer(LazyArguments<DemoServerArguments>),
}
