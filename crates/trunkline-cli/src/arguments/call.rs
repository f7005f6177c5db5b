//! Arguments of the commands that list and use items of servers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use trunkline::config::Access;
use trunkline::name::{ConversationName, InvalidName};

use super::command_line_server::{is_url, split_url};
use super::quoting::quoted;

/// Units of a duration, in milliseconds.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// The caller of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Caller options")]
pub(crate) struct CallerArguments {
    /// Acts as this agent of the configuration
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// Limits the command to the items of this bundle; may be repeated
    #[arg(long = "bundle", value_name = "BUNDLE")]
    pub(crate) bundles: Vec<String>,

    /// Acts in this conversation: leaves out what `trunkline disable` has switched off there
    #[arg(long, value_name = "NAME", value_parser = conversation)]
    pub(crate) conversation: Option<ConversationName>,

    /// Applies the toggles of this file, such as {"servers": {"github": false}}
    #[arg(long, value_name = "FILE")]
    pub(crate) toggles: Option<PathBuf>,

    /// Switches this server off for the command; may be repeated
    #[arg(long, value_name = "SERVER")]
    pub(crate) off: Vec<String>,

    /// Starts servers even if the background service or a gateway has kept a process of them
    #[arg(long)]
    pub(crate) no_service: bool,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Rules for one run, which go over those of the configuration.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Replaces `access` of the configuration for this run
    #[arg(long, value_name = "ACCESS", value_enum)]
    pub(crate) access: Option<AccessArgument>,

    /// Uses this server instead of a configuration: a program with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) program: Vec<String>,
}

/// Which tools may be seen.
#[expect(clippy::enum_variant_names, reason = "they are the words of the configuration")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessArgument {
    /// Hides tools that declare that they write
    ReadOnly,
    /// Shows only tools that declare that they do not write
    ReadOnlyStrict,
    /// Shows all tools
    ReadWrite,
}

impl From<AccessArgument> for Access {
    fn from(argument: AccessArgument) -> Self {
        match argument {
            AccessArgument::ReadOnly => Self::ReadOnly,
            AccessArgument::ReadOnlyStrict => Self::ReadOnlyStrict,
            AccessArgument::ReadWrite => Self::ReadWrite,
        }
    }
}

impl CallerArguments {
    /// The same options as they would be written on a command line, each after a space.
    pub(crate) fn written(&self) -> String {
        let agent = self.agent.iter().map(|it| ("agent", it.clone()));
        let bundles = self.bundles.iter().map(|it| ("bundle", it.clone()));
        let conversation = self.conversation.iter();
        let conversation = conversation.map(|it| ("conversation", it.as_str().to_owned()));
        let toggles = self.toggles.iter();
        let toggles = toggles.map(|it| ("toggles", it.to_string_lossy().into_owned()));
        let off = self.off.iter().map(|it| ("off", it.clone()));
        let access = self.run.access.map(Access::from);
        let access = access.iter().map(|it| ("access", it.as_str().to_owned()));
        let all = agent.chain(bundles).chain(conversation).chain(toggles).chain(off).chain(access);
        all.map(|(option, it)| format!(" --{option} {}", quoted(&it))).collect()
    }
}

/// Parses the name of a conversation.
pub(crate) fn conversation(text: &str) -> Result<ConversationName, InvalidName> {
    ConversationName::new(text)
}

/// Arguments of `tools`, `resources` and `prompts`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Lists only items of this server, and starts no other; a URL is a server without a configuration
    #[arg(value_name = "SERVER|URL", conflicts_with = "only")]
    pub(crate) target: Option<String>,

    /// Lists only items of this server, and starts no other
    #[arg(long = "server", value_name = "SERVER", id = "only")]
    pub(crate) only: Option<String>,

    /// Lists hidden items too, each with the rule that hides it
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) lists: RefreshArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// How the lists of servers are loaded.
#[derive(Debug, Args)]
pub(crate) struct RefreshArguments {
    /// Starts every server, also those whose lists are cached (at most 7 days old)
    #[arg(long)]
    pub(crate) refresh: bool,

    /// Limits the time of the starts and the lists, as in 500ms, 30s, 5m or 1h [default: the configured `timeouts`]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

impl ListArguments {
    /// The only server to list.
    pub(crate) fn server(&self) -> Option<&str> {
        self.only.as_deref().or_else(|| self.target.as_deref().filter(|it| !is_url(it)))
    }
}

/// Arguments of `tool`.
#[derive(Debug, Args)]
pub(crate) struct ToolArguments {
    /// Name of the tool, as listed by `trunkline tools`, or without its prefix; the server or its URL may come first
    #[arg(required = true, num_args = 1..=3, value_name = "[SERVER|URL] TOOL")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) lists: RefreshArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

impl ToolArguments {
    /// The URL of a server on the command line, and the words after it.
    pub(crate) fn split_url(&self) -> (Option<&str>, &[String]) {
        split_url(&self.words)
    }
}

/// Arguments of `search`.
#[derive(Debug, Args)]
pub(crate) struct SearchCommandArguments {
    /// What the tool should do; each argument is one query
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) queries: Vec<String>,

    /// Searches only the tools of this server
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,

    /// Number of results, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub(crate) limit: u8,

    /// Prints the score of each result and the words that it has
    #[arg(long)]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) lists: RefreshArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// Arguments of `tokens`.
#[derive(Debug, Args)]
pub(crate) struct TokensArguments {
    /// Lists every tool, too
    #[arg(long)]
    pub(crate) tools: bool,

    #[command(flatten)]
    pub(crate) lists: RefreshArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// Arguments of `types`.
#[derive(Debug, Args)]
pub(crate) struct TypesArguments {
    /// Language of the types
    #[arg(long = "lang", value_name = "LANGUAGE", value_enum, default_value_t = LanguageArgument::Ts)]
    pub(crate) language: LanguageArgument,

    /// Only the tools of this server; no other is started
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) lists: RefreshArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// Arguments of `skill`.
#[derive(Debug, Args)]
pub(crate) struct SkillArguments {
    /// Server whose tools the skill is for; a URL is a server without a configuration
    #[arg(value_name = "SERVER|URL", required_unless_present = "program")]
    pub(crate) target: Option<String>,

    #[command(flatten)]
    pub(crate) lists: RefreshArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

impl SkillArguments {
    /// The server of the configuration.
    pub(crate) fn server(&self) -> Option<&str> {
        self.target.as_deref().filter(|it| !is_url(it))
    }
}

/// A language of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageArgument {
    /// TypeScript
    Ts,
    /// Python, 3.11 and later
    Py,
}

impl LanguageArgument {
    /// The word on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Py => "py",
        }
    }
}

/// The time limit of a command, and the directory for files.
#[derive(Debug, Args)]
pub(crate) struct TimeoutArguments {
    /// Limits the time of the start, the lists and the call, as in 500ms, 30s, 5m or 1h [default: the configured `timeouts`]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Saves images, audio and other binary content of the result as files in this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) artifacts: Option<PathBuf>,

    /// Shows images of the result in a terminal that can (kitty, Ghostty, iTerm2, WezTerm)
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ImagesArgument::Auto)]
    pub(crate) images: ImagesArgument,
}

/// When to show images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImagesArgument {
    /// On a terminal that can
    Auto,
    /// Never
    Never,
}

/// Arguments of `call`.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// Name of the tool, as listed by `trunkline tools`, or without its prefix; the server or its URL may come first
    #[arg(required = true, value_name = "[SERVER|URL] TOOL", allow_negative_numbers = true)]
    pub(crate) words: Vec<String>,

    /// Argument of the tool, as key=value; may be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE", conflicts_with = "json")]
    pub(crate) arguments: Vec<String>,

    /// All arguments as one JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) json: Option<String>,

    /// Calls a tool of this server, by the server's own name for it
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,

    /// Sends the arguments without validating them against the schema of the tool
    #[arg(long)]
    pub(crate) no_check: bool,

    /// Tells servers of this directory (MCP roots); may be repeated
    #[arg(long = "root", value_name = "DIRECTORY")]
    pub(crate) roots: Vec<PathBuf>,

    /// Asks nothing, also on a terminal
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) bounds: TimeoutArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// Arguments of `read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArguments {
    /// URI of the resource, as listed by `trunkline resources`, or one that matches a template; the URL of a server
    /// may come first
    #[arg(required = true, num_args = 1..=2, value_name = "[URL] URI")]
    pub(crate) words: Vec<String>,

    /// Reads from this server, and starts no other
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) bounds: TimeoutArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// Arguments of `prompt`.
#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// Name of the prompt, as listed by `trunkline prompts`, and its arguments as name=text; the URL of a server may come
    /// first
    #[arg(required = true, value_name = "[URL] PROMPT")]
    pub(crate) words: Vec<String>,

    /// Argument of the prompt, a string; may be repeated
    #[arg(long = "arg", value_name = "NAME=TEXT")]
    pub(crate) arguments: Vec<String>,

    /// Sends the arguments without comparing them with those that the prompt has
    #[arg(long)]
    pub(crate) no_check: bool,

    /// Asks nothing, also on a terminal
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) bounds: TimeoutArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

/// Arguments of `complete`.
#[derive(Debug, Args)]
pub(crate) struct CompleteArguments {
    /// Name of the prompt, or resource template
    pub(crate) name: String,

    /// Argument to complete, with the beginning of its value
    #[arg(value_name = "ARGUMENT[=TEXT]")]
    pub(crate) argument: String,

    /// The argument, after a server and its own name for a prompt
    #[arg(value_name = "ARGUMENT[=TEXT]", hide = true)]
    pub(crate) last: Option<String>,

    /// Another argument whose value is known; may be repeated
    #[arg(long = "arg", value_name = "NAME=TEXT")]
    pub(crate) arguments: Vec<String>,

    /// Completes for a prompt or template of this server, by the server's own name for it
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,

    /// Sends the arguments without comparing them with those that the prompt or template has
    #[arg(long)]
    pub(crate) no_check: bool,

    #[command(flatten)]
    pub(crate) bounds: TimeoutArguments,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

impl CompleteArguments {
    /// The server, if it is named, the name of the prompt or template, and the argument.
    pub(crate) fn words(&self) -> (Option<&str>, &str, &str) {
        match &self.last {
            Some(last) => (Some(&self.name), &self.argument, last),
            None => (self.server.as_deref(), &self.name, &self.argument),
        }
    }
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Name of a tool or prompt, or URI of a resource
    pub(crate) name: String,

    /// Searches only this server, also by its own names and URIs
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,

    /// Starts the server, also if its lists are cached (at most 7 days old)
    #[arg(long)]
    pub(crate) refresh: bool,

    /// Limits the time of the start and the lists, as in 500ms, 30s, 5m or 1h [default: the configured `timeouts`]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) who: CallerArguments,
}

impl CallArguments {
    /// The URL of a server on the command line, and the words after it.
    pub(crate) fn split_url(&self) -> (Option<&str>, &[String]) {
        split_url(&self.words)
    }
}

impl ReadArguments {
    /// The URL of a server on the command line.
    pub(crate) fn url(&self) -> Option<&str> {
        split_url(&self.words).0
    }

    /// The URI to read.
    pub(crate) fn address(&self) -> &str {
        self.words.last().map(String::as_str).unwrap_or_default()
    }
}

impl PromptArguments {
    /// The URL of a server on the command line, and the words after it: the name and its arguments.
    pub(crate) fn split_url(&self) -> (Option<&str>, &[String]) {
        split_url(&self.words)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, milliseconds)| milliseconds);
    let milliseconds = unit.zip(number.parse::<u64>().ok());
    let milliseconds = milliseconds.and_then(|(unit, number)| number.checked_mul(*unit));
    let is_some_time = |milliseconds: &u64| *milliseconds > 0;
    let found = milliseconds.filter(is_some_time).map(Duration::from_millis);
    found.ok_or_else(|| "it is a number and a unit, as in 500ms, 30s, 5m or 1h".to_owned())
}
